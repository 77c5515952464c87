package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// follower reads the log of a member, a part at a time.
type follower struct {
	*testing.T
	engine engine.Engine
	member string
	from   engine.LogPlace
	lines  []string
}

// read reads what there is, and reports whether the engine returned it in time.
func (f *follower) read() bool {
	f.Helper()
	for more := true; more; {
		part, err := f.engine.Follow(f.Context(), f.member, f.from)
		if errors.Is(err, context.DeadlineExceeded) {
			return false // a busy engine returns it the next time
		}
		must(f.T, err)
		f.lines, f.from.Mark, more = append(f.lines, part.Lines...), part.Next, part.More
	}
	return true
}

// await reads until there are as many lines as wanted, and fails unless they are equal.
func (f *follower) await(want ...string) {
	f.Helper()
	acctest.Eventually(f, "lines of the log", func() bool {
		return f.read() && len(f.lines) >= len(want)
	})
	f.read()
	if !slices.Equal(f.lines, want) {
		f.Fatalf("the log is %q, not %q", f.lines, want)
	}
}

// testFollow: a growing log is read with each line once, across restarts and into the next run.
func testFollow(t *testing.T, h Harness) {
	e := h.cluster(t)
	first, second := h.Scratch(t), h.Scratch(t)
	spec := h.member(0, "print:same", "print:same", "once:"+first, "print:again", "once:"+second, "print:done",
		"exit:3")
	spec.Restart = domain.RestartRule{
		Condition: domain.RestartOnFailure, MaxAttempts: 2, Delay: domain.Duration(time.Millisecond),
		Final: domain.ExitCodes{"3"},
	}
	start(t, e, spec)
	all := &follower{T: t, engine: e, member: spec.Name}
	all.await("same", "same", "same", "same", "again", "same", "same", "again", "done")
	h.awaitStates(t, e, domain.StateFailed)

	// The next run begins after what the previous one wrote.
	next := &follower{T: t, engine: e, member: spec.Name, from: engine.LogPlace{Run: spec.Run + 1}}
	next.await()
	again := h.member(0, "print:same", "exit:0")
	again.Run, again.Hash = spec.Run+1, "other"
	start(t, e, again)
	h.awaitStates(t, e, domain.StateCompleted)
	next.await("same")
	all.await("same", "same", "same", "same", "again", "same", "same", "again", "done", "same")
	if _, err := e.Follow(t.Context(), h.memberName(9), engine.LogPlace{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the log of no member: %v, not ErrNotFound", err)
	}
}
