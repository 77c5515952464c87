//go:build linux

package proctree

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
)

// stat is that of a bash with a name chosen to confuse parsers.
const stat = "4711 (a) Z (b) 1) S 4710 4711 4712 34816 4800 4194304 2209 5030 1 0 12 7 30 40 20 0 3 0 123456 8462336 1250 18446744073709551615 " +
	"94 95 140 0 0 0 65536 3686404 1266761467 1 0 0 17 1 0 0 0 0 0 96 97 98 140 141 142 143 0\n"

func TestParseStat(t *testing.T) {
	got, err := parseStat(4711, []byte(stat))
	want := Process{
		PID: 4711, StartTime: 123456, Session: 4712, Parent: 4710, CPU: 190 * time.Millisecond,
		WaitedCPU:     700 * time.Millisecond,
		ResidentBytes: 1250 * int64(os.Getpagesize()),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for name, test := range map[string]struct {
		stat            string
		kernel, loading bool
	}{
		"a program":              {"1 (sh) S 0 1 1 0 0 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 4198400", false, false},
		"another user's":         {"1 (sh) S 0 1 1 0 0 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 1", false, false},
		"loading a program":      {"1 (sh) R 0 1 1 0 0 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0", false, true},
		"ending":                 {"1 (sh) R 0 1 1 0 0 4194308 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0", false, false},
		"a thread of the kernel": {"2 (kthreadd) S 0 0 0 0 0 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0", true, false},
	} {
		if p, err := parseStat(1, []byte(test.stat)); err != nil || p.Kernel != test.kernel ||
			p.Loading != test.loading {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for name, test := range map[string]struct {
		stat string
		want error
	}{
		"a zombie":                       {"1 (sh) Z 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 1", ErrGone},
		"a zombie whose threads live on": {"1 (sh) Z 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 2 0 5 0 0 0 1", nil},
		"nothing":                        {"", errStat},
		"without a name":                 {"1 S 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 1", errStat},
		"cut off":                        {"1 (sh) S 0 1 1 0 0 0 0", errStat},
		"no number":                      {"1 (sh) S 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 five 0 0 0 1", errStat},
	} {
		if _, err := parseStat(1, []byte(test.stat)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// written matches a stat in the kernel's format: procfs and parseStat may differ on anything else.
var written = regexp.MustCompile(`(?s)^\d+ \(.*\) \w( -?(0|[1-9]\d*))+\n?$`)

// FuzzStat: parseStat reads a process's stat as procfs does.
func FuzzStat(f *testing.F) {
	f.Add([]byte(stat))
	f.Add([]byte("1 (sh) Z 0 1 1 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 1"))
	folder := f.TempDir()
	name := filepath.Join(folder, "1", "stat")
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		f.Fatal(err)
	}
	table, err := procfs.NewFS(folder)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stat []byte) {
		got, err := parseStat(1, stat)
		if err != nil || !written.Match(stat) {
			return
		}
		if err := os.WriteFile(name, stat, 0o600); err != nil {
			t.Fatal(err)
		}
		proc, notThere := table.Proc(1)
		if notThere != nil {
			t.Fatal(notThere)
		}
		theirs, unread := proc.Stat()
		if unread != nil {
			return
		}
		want := [...]string{
			strconv.Itoa(theirs.PPID), strconv.Itoa(theirs.Session), strconv.FormatUint(theirs.Starttime, 10),
			strconv.Itoa(theirs.RSS * os.Getpagesize()),
		}
		if is := [...]string{
			strconv.Itoa(got.Parent), strconv.Itoa(got.Session), strconv.FormatUint(got.StartTime, 10),
			strconv.FormatInt(got.ResidentBytes, 10),
		}; is != want {
			t.Errorf("%q is read as %v, and by procfs as %v", stat, is, want)
		}
	})
}

func BenchmarkStat(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			if _, err := readStat(procfs.DefaultMountPoint, os.Getpid()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("procfs", func(b *testing.B) {
		self, err := procfs.Self()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := self.Stat(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
