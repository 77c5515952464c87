package members

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// stamp returns the time that an Engine puts before a line, this number of seconds into these tests.
func stamp(seconds float64) string {
	at := time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
	return at.UTC().Format("2006-01-02T15:04:05.000000000Z") + " "
}

func TestLogReader(t *testing.T) {
	var mark logMark
	read := func(out, complaints []string, ended bool) []string {
		t.Helper()
		r := newLogReader(mark)
		for i, texts := range [][]string{out, complaints} {
			for _, text := range texts {
				if _, err := r.streams[i].Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ended {
			r.end()
		}
		mark = r.mark
		return r.lines
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("read %q, not %q", got, want)
		}
	}
	out := []string{stamp(1) + "same\n", stamp(1) + "same\n", stamp(2)[:9], stamp(2)[9:] + "cut", " in two\r\n"}
	expect(read(out, nil, false), "same", "same", "cut in two")
	expect(read(out, nil, false))
	// A further line of the same time, and one of the other stream that is older.
	out = append(out, stamp(2)+"more\n")
	expect(read(out, []string{stamp(1.5) + "complaint\n"}, false), "more", "complaint")
	if got, want := newLogReader(mark).since(), time.Unix(1_700_000_001, 0); !got.Equal(want) {
		t.Errorf("the next reading is since %s, not %s", got, want)
	}
	// A line of several pieces, whose end comes later.
	long := strings.Repeat("a", chunk) + strings.Repeat("b", chunk)
	out = append(out, stamp(3)+long[:chunk], stamp(3)+long[chunk:])
	expect(read(out, nil, false))
	expect(read(append(out, stamp(3)+"end\n"), nil, false), long+"end")
	expect(read([]string{stamp(4) + "no end"}, nil, true), "no end")
	expect(read([]string{stamp(4) + "no end"}, nil, true))
}

func TestLogReaderBounds(t *testing.T) {
	r := newLogReader(logMark{})
	if _, err := fmt.Fprintf(r.streams[0], "%s%s\n", stamp(1), strings.Repeat("x", bounded.LogLine+1)); err != nil {
		t.Fatal(err)
	}
	if line := r.lines[0]; !strings.HasSuffix(line, "x…") || len(line) > bounded.LogLine+len("…") {
		t.Errorf("a line of %d bytes is taken", len(line))
	}
	err := error(nil)
	for i := 0; err == nil && i < 100; i++ {
		_, err = fmt.Fprintf(r.streams[0], "%s%s\n", stamp(2), strings.Repeat("y", bounded.LogLine/2))
	}
	if !errors.Is(err, errEnough) {
		t.Fatalf("%v, not enough", err)
	}
	next := newLogReader(r.mark)
	for range r.lines[1:] {
		_, _ = fmt.Fprintf(next.streams[0], "%sy\n", stamp(2))
	}
	if _, _ = fmt.Fprintf(next.streams[0], "%sz\n", stamp(2)); !slices.Equal(next.lines, []string{"z"}) {
		t.Errorf("the next part is %q", next.lines)
	}
}
