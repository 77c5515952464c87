//go:build linux

package statedir

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// reader follows a log.
type reader struct {
	*logbook
	from engine.LogPlace
	run  time.Time
}

// read returns the new lines.
func (r *reader) read() (lines []string) {
	r.t.Helper()
	for more := true; more; {
		part, err := r.FollowLog(member, r.from, r.run)
		must(r.t, err)
		lines, r.from.Mark, more = append(lines, part.Lines...), part.Next, part.More
	}
	return lines
}

// expectNew fails unless these are the new lines.
func (r *reader) expectNew(want ...string) {
	r.t.Helper()
	if got := r.read(); !slices.Equal(got, want) {
		r.t.Errorf("new are %.200q, not %.200q", got, want)
	}
}

func TestFollowLog(t *testing.T) {
	l := newLogbook(t)
	r := &reader{logbook: l}
	r.expectNew()
	l.write(at(1), "same\nsame\n\nbeg")
	r.expectNew("same", "same", "")
	r.expectNew()
	l.write(at(2), "un\r\nsame\n")
	r.expectNew("begun", "same")
	l.write(at(3), "no end")
	r.expectNew()
	r.from.Rest = true
	r.expectNew("no end")
	r.expectNew()
	if _, err := r.FollowLog(member, engine.LogPlace{Mark: "elsewhere"}, r.run); err == nil {
		t.Error("a mark of something else is taken")
	}
}

// TestFollowRun: a run begins after the output of the previous one, even within the same second.
func TestFollowRun(t *testing.T) {
	l := newLogbook(t)
	l.write(at(1), "old\n")
	l.write(at(1).Add(time.Millisecond), "last\n")
	l.write(at(1).Add(2*time.Millisecond), "new\n")
	r := &reader{logbook: l, run: at(1).Add(time.Millisecond)}
	r.expectNew("new")
	(&reader{logbook: l}).expectNew("old", "last", "new")
}

// TestFollowRunClockSetBack: what a run has written is read although the clock was set back to before its start.
func TestFollowRunClockSetBack(t *testing.T) {
	l := newLogbook(t)
	l.write(at(5), "old\n")
	l.write(at(6), "new\n")
	l.write(at(2), "newer\n")
	(&reader{logbook: l, run: at(5).Add(time.Millisecond)}).expectNew("new", "newer")
}

// TestFollowRotation: no line is lost or read twice when a log is rotated; one above the maximum length comes in
// pieces.
func TestFollowRotation(t *testing.T) {
	l := newLogbook(t)
	r, late := &reader{logbook: l}, &reader{logbook: l}
	var want, got []string
	line := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("x", 90_000)) }
	for i := range 300 {
		want = append(want, line(i))
		l.write(at(i), line(i)+"\n")
		if i%7 == 0 {
			got = append(got, r.read()...)
		}
	}
	if got = append(got, r.read()...); !slices.Equal(got, want) {
		t.Errorf("%d lines were read of %d", len(got), len(want))
	}
	kept := late.read()
	if !slices.Equal(kept, want[len(want)-len(kept):]) || len(kept) < 100 {
		t.Errorf("%d lines are kept, and not the last ones", len(kept))
	}
	// A reader that pauses for longer than lines are kept continues with those that are left.
	for i := range 300 {
		l.write(at(300+i), line(300+i)+"\n")
	}
	if kept = r.read(); len(kept) < 100 || kept[len(kept)-1] != line(599) {
		t.Errorf("%d lines are read after a long time", len(kept))
	}
	l.write(at(600), strings.Repeat("y", bounded.LogLine)+"z\n")
	r.expectNew(strings.Repeat("y", bounded.LogLine), "z")
}
