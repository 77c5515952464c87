//go:build linux

package statedir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const member = "mnist-worker-0"

// at is the time n seconds into these tests.
func at(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0) }

// logbook is a member's log that the supervisor maintains each time something was written.
type logbook struct {
	Dir
	t    *testing.T
	file *os.File
	size int64
}

func newLogbook(t *testing.T) *logbook {
	d := create(t)
	file, err := d.OpenLog(member)
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	return &logbook{Dir: d, t: t, file: file}
}

// write makes the member write some text, and the supervisor maintain the log at that time.
func (l *logbook) write(now time.Time, text string) {
	l.t.Helper()
	_, err := l.file.WriteString(text)
	must(l.t, err)
	l.size, err = l.KeepLog(member, l.size, now)
	must(l.t, err)
}

// expect fails unless the options select these lines.
func (l *logbook) expect(options engine.LogOptions, want ...string) {
	l.t.Helper()
	got, err := l.ReadLog(member, options)
	must(l.t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("with %+v (-want +got):\n%s", options, diff)
	}
}

func TestReadLog(t *testing.T) {
	l := newLogbook(t)
	l.expect(engine.LogOptions{})
	l.write(at(1), "one\n")
	l.write(at(2), "two\n\nthr")
	l.write(at(3), "ee\n"+strings.Repeat("x", 1<<17)+"\n")
	l.write(at(4), "unfinished")
	long := strings.Repeat("x", 1<<17)

	l.expect(engine.LogOptions{}, "one", "two", "", "three", long, "unfinished")
	l.expect(engine.LogOptions{Tail: 2}, long, "unfinished")
	l.expect(engine.LogOptions{Tail: 6}, "one", "two", "", "three", long, "unfinished")
	l.expect(engine.LogOptions{Tail: 100}, "one", "two", "", "three", long, "unfinished")

	l.expect(engine.LogOptions{Since: at(0)}, "one", "two", "", "three", long, "unfinished")
	l.expect(engine.LogOptions{Since: at(1)}, "two", "", "three", long, "unfinished")
	l.expect(engine.LogOptions{Since: at(1).Add(time.Millisecond)}, "two", "", "three", long, "unfinished")
	l.expect(engine.LogOptions{Since: at(2)}, "ee", long, "unfinished")
	l.expect(engine.LogOptions{Since: at(3)}, "unfinished")
	l.expect(engine.LogOptions{Since: at(4)})
	l.expect(engine.LogOptions{Since: at(2), Tail: 1}, "unfinished")
}

// TestLinesThatWereNotNoted: a member ended before the supervisor recorded its last lines.
func TestLinesThatWereNotNoted(t *testing.T) {
	l := newLogbook(t)
	l.write(at(1), "one\n")
	_, err := l.file.WriteString("last\n")
	must(t, err)
	must(t, os.Chtimes(l.Log(member), at(5), at(5)))
	l.expect(engine.LogOptions{Since: at(0)}, "one", "last")
	l.expect(engine.LogOptions{Since: at(5)}, "last")
	l.expect(engine.LogOptions{Since: at(6)})
}

func TestLogFiles(t *testing.T) {
	l := newLogbook(t)
	if _, err := l.KeepLog("mnist-worker-9", 7, at(1)); !os.IsNotExist(err) {
		t.Errorf("looking after a log that is not there: %v", err)
	}
	l.write(at(1), "one\n")
	for range 3 { // nothing new: no further record
		size, err := l.KeepLog(member, l.size, at(2))
		must(t, err)
		if size != l.size {
			t.Errorf("the size of an unchanged log went from %d to %d", l.size, size)
		}
	}
	index, err := os.ReadFile(l.Log(member) + timesSuffix)
	must(t, err)
	if want := fmt.Sprintf("%d 4\n", at(1).UnixNano()); string(index) != want {
		t.Errorf("the index is %q, not %q", index, want)
	}
	for _, name := range filesIn(t, l.Path(logs)) {
		info, err := os.Stat(l.Path(logs, name))
		must(t, err)
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", name, mode)
		}
	}
}

// TestDamagedIndex: an index whose writer died is used as far as it can be read.
func TestDamagedIndex(t *testing.T) {
	l := newLogbook(t)
	l.write(at(1), "one\n")
	l.write(at(2), "two\n")
	l.write(at(3), "three\n")
	for index, want := range map[string][]string{
		"":                                {"one", "two", "three"},
		"nonsense\n":                      {"one", "two", "three"},
		fmt.Sprint(at(1).UnixNano()):      {"one", "two", "three"},
		fmt.Sprintln(at(1).UnixNano(), 4): {"two", "three"},
		fmt.Sprintln(at(1).UnixNano(), 4) + "17\n" + fmt.Sprintln(at(2).UnixNano(), 8): {"three"},
		// the log was truncated since
		fmt.Sprintln(at(1).UnixNano(), 4000): nil,
	} {
		write(t, l.Log(member)+timesSuffix, index)
		l.expect(engine.LogOptions{Since: at(9)}, want...)
	}
}

// TestCopyOfAnEndlessLog: a member may write its log faster than that is copied.
func TestCopyOfAnEndlessLog(t *testing.T) {
	older := filepath.Join(t.TempDir(), "m.log.1")
	must(t, copyFile(older, "/dev/zero", 1000))
	if info, err := os.Stat(older); err != nil || info.Size() != 1000 {
		t.Errorf("the copy is %+v (%v)", info, err)
	}
}

func TestLogRotation(t *testing.T) {
	l := newLogbook(t)
	full := strings.Repeat(strings.Repeat("x", 1023)+"\n", maxLogSize/1024-1)
	l.write(at(1), "start\n")
	l.write(at(2), full)
	if names := filesIn(t, l.Path(logs)); len(names) != 2 {
		t.Fatalf("a log that is not full was rotated: %v", names)
	}
	l.write(at(3), strings.Repeat("y", 1023)+"\nend\n")
	if l.size != 0 {
		t.Errorf("after the rotation the log's size is %d", l.size)
	}
	if info, err := os.Stat(l.Log(member)); err != nil || info.Size() != 0 {
		t.Errorf("after the rotation the log is %+v (%v)", info, err)
	}
	l.expect(engine.LogOptions{Tail: 1}, "end")

	// The member keeps writing to the same file.
	l.write(at(4), "after\n")
	l.write(at(5), "later\n")
	l.expect(engine.LogOptions{Tail: 3}, "end", "after", "later")
	l.expect(engine.LogOptions{Since: at(2)}, strings.Repeat("y", 1023), "end", "after", "later")
	l.expect(engine.LogOptions{Since: at(3)}, "after", "later")
	l.expect(engine.LogOptions{Since: at(4)}, "later")
	l.expect(engine.LogOptions{Since: at(4), Tail: 3}, "later")

	// The next rotation drops the older log, with its index.
	l.write(at(6), full)
	l.write(at(7), full)
	l.write(at(8), "last\n")
	all, err := l.ReadLog(member, engine.LogOptions{})
	must(t, err)
	if all[0] != "after" || all[len(all)-1] != "last" || len(all) != 2*(maxLogSize/1024-1)+3 {
		t.Errorf("after the second rotation there are %d lines, from %.10q to %.10q", len(all), all[0], all[len(all)-1])
	}
	l.expect(engine.LogOptions{Since: at(7)}, "last")

	// A member's log is removed with it, and no other.
	other, err := l.OpenLog("mnist-worker-00")
	must(t, err)
	must(t, other.Close())
	must(t, l.Forget(member))
	if names := filesIn(t, l.Path(logs)); !cmp.Equal(names, []string{filepath.Base(l.Log("mnist-worker-00"))}) {
		t.Errorf("after the member was forgotten there are %v", names)
	}
}
