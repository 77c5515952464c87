package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func testCreate(t *testing.T, h Harness) {
	e := h.cluster(t)
	spec := h.member(0, "wait")
	start(t, e, spec, h.member(1, "wait"))
	observed := h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)
	o := observed[0]
	if o.Name != spec.Name || o.Group != h.group || o.Role != "worker" || o.Index != 0 || o.Host != spec.Host ||
		o.Address != spec.Address || o.Hash != spec.Hash || o.Run != spec.Run || o.StartedAt == nil ||
		o.FinishedAt != nil {
		t.Errorf("observed %+v, started from %+v", o, spec)
	}
	all, err := e.Observe(t.Context(), "")
	must(t, err)
	if len(all) != 2 {
		t.Errorf("all members of the cluster are %v", all)
	}
	if others, err := e.Observe(t.Context(), "other"); err != nil || len(others) != 0 {
		t.Errorf("the members of another group are %v (%v)", others, err)
	}
}

func testStaged(t *testing.T, h Harness) {
	e := h.cluster(t)
	must(t, e.Stage(t.Context(), []domain.MemberSpec{h.member(0, "wait"), h.member(1, "wait")}))
	observed, err := e.Observe(t.Context(), h.group)
	must(t, err)
	for _, o := range observed {
		if o.State != domain.StatePending || o.Hash == "first" {
			t.Errorf("a member that is only staged is observed as %+v", o)
		}
	}
	if n := h.Alive(t, e, h.group); n != 0 {
		t.Errorf("%d processes run before the start", n)
	}
	// A start of an earlier run does not start them.
	must(t, e.Start(acctest.Bounded(t), h.group, 0))
	must(t, e.Start(acctest.Bounded(t), h.group, 1))
	h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)
	// Staging over a running member leaves it as it is, and removing the member removes what was staged.
	changed := h.member(0, "wait")
	changed.Hash, changed.Run = "second", 2
	must(t, e.Stage(t.Context(), []domain.MemberSpec{changed}))
	if o := h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)[0]; o.Hash != "first" {
		t.Errorf("a member restarted without a start: %+v", o)
	}
	must(t, e.Remove(acctest.Bounded(t), []string{changed.Name}))
	h.awaitStates(t, e, domain.StateRunning)
}

func testChange(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "print:old", "wait"), h.member(1, "wait"))
	before := h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)
	changed := h.member(0, "print:new", "wait")
	changed.Hash, changed.Run = "second", 2
	start(t, e, changed)
	after := h.await(t, e, "the new specification", func(observed []domain.Observed) bool {
		return len(observed) == 2 && observed[0].Hash == "second" && observed[0].State == domain.StateRunning
	})
	if !after[1].StartedAt.Equal(*before[1].StartedAt) {
		t.Error("a member that did not change was restarted")
	}
	if after[0].Restarts != 0 {
		t.Errorf("a change counted as %d restarts", after[0].Restarts)
	}
	acctest.Eventually(t, "the new output", func() bool {
		lines := logs(t, e, changed.Name, engine.LogOptions{})
		return slices.Contains(lines, "new")
	})
	h.awaitAlive(t, e, 2)
}

// testRepeat repeats calls, as after a caller that died before it saw the result.
func testRepeat(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "wait"))
	first := h.awaitStates(t, e, domain.StateRunning)[0]
	start(t, e, h.member(0, "wait"))
	// A second member, started later, shows that the first call has been handled.
	start(t, e, h.member(1, "wait"))
	if again := h.awaitStates(t, e, domain.StateRunning,
		domain.StateRunning)[0]; !again.StartedAt.Equal(*first.StartedAt) {
		t.Error("a member whose specification did not change was started again")
	}
	h.awaitAlive(t, e, 2)
}

func testGrowShrink(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "wait"))
	h.awaitStates(t, e, domain.StateRunning)
	start(t, e, h.member(1, "wait"), h.member(2, "wait"))
	h.awaitStates(t, e, domain.StateRunning, domain.StateRunning, domain.StateRunning)
	must(t, e.Remove(acctest.Bounded(t), []string{h.memberName(1), h.memberName(2)}))
	if left := h.awaitStates(t, e, domain.StateRunning); left[0].Index != 0 {
		t.Errorf("left is %v", left[0])
	}
	must(t, e.Remove(acctest.Bounded(t), []string{h.memberName(1)}))
	h.awaitAlive(t, e, 1)
}

func testComplete(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "print:done", "exit:0"))
	o := h.awaitStates(t, e, domain.StateCompleted)[0]
	if o.ExitCode == nil || *o.ExitCode != 0 || o.FinishedAt == nil || o.Restarts != 0 || o.LastError != "" {
		t.Errorf("a completed member is %+v", o)
	}
	// Neither another start nor a stop request changes that.
	must(t, e.Start(acctest.Bounded(t), h.group, 1))
	must(t, e.Stop(acctest.Bounded(t), map[string]int{o.Name: 1}, domain.StopCompleted))
	start(t, e, h.member(1, "exit:0"))
	again := h.awaitStates(t, e, domain.StateCompleted, domain.StateCompleted)[0]
	if !again.StartedAt.Equal(*o.StartedAt) {
		t.Error("a completed member was started again")
	}
}

func testFail(t *testing.T, h Harness) {
	e := h.cluster(t)
	never := h.member(1, "exit:137")
	never.Restart.Condition = domain.RestartNever
	absent := h.member(2)
	absent.Command = []string{"/no/such/program"}
	final := h.member(0, "print:it broke", "exit:3")
	final.Restart.Final = domain.ExitCodes{"3"}
	start(t, e, final, never, absent)
	observed := h.awaitStates(t, e, domain.StateFailed, domain.StateFailed, domain.StateFailed)
	for i, want := range []int{3, 137, 127} {
		o := observed[i]
		if o.ExitCode == nil || *o.ExitCode != want || o.LastError == "" || o.Restarts != 0 {
			t.Errorf("a member that failed with %d is %+v", want, o)
		}
	}
	if lines := logs(t, e, h.memberName(0), engine.LogOptions{}); !slices.Contains(lines, "it broke") {
		t.Errorf("the log of a failed member is %q", lines)
	}
}

func testRestart(t *testing.T, h Harness) {
	e := h.cluster(t)
	quick := domain.RestartRule{
		Condition: domain.RestartOnFailure, MaxAttempts: 2, Delay: domain.Duration(time.Millisecond),
		Final: domain.DefaultFinalExitCodes,
	}
	recovers := h.member(0, "once:"+h.Scratch(t), "exit:0")
	recovers.Restart = quick
	exhausts := h.member(1, "exit:139")
	exhausts.Restart = quick
	always := h.member(2, "exit:0")
	always.Restart = domain.RestartRule{Condition: domain.RestartAlways, Delay: domain.Duration(time.Millisecond)}
	start(t, e, recovers, exhausts, always)
	observed := h.await(t, e, "the restarts", func(observed []domain.Observed) bool {
		return len(observed) == 3 && observed[0].State == domain.StateCompleted &&
			observed[1].State == domain.StateFailed && observed[2].Restarts >= 2
	})
	if observed[0].Restarts != 1 {
		t.Errorf("a member that failed once was restarted %d times", observed[0].Restarts)
	}
	if observed[1].Restarts != 2 || !strings.Contains(observed[1].LastError, "2 restarts") {
		t.Errorf("a member with two attempts is %+v", observed[1])
	}
}

func testStop(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "print:here", "wait"), h.member(1, "wait"))
	h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)
	acctest.Eventually(t, "the member's first line", func() bool {
		lines := logs(t, e, h.memberName(0), engine.LogOptions{})
		return len(lines) == 1
	})
	must(t, e.Stop(acctest.Bounded(t), map[string]int{h.memberName(0): 1}, domain.StopCompleted))
	o := h.awaitStates(t, e, domain.StateStopped, domain.StateRunning)[0]
	if o.StopReason != domain.StopCompleted || o.FinishedAt == nil {
		t.Errorf("a stopped member is %+v", o)
	}
	lines := logs(t, e, o.Name, engine.LogOptions{})
	if !slices.Equal(lines, []string{"here", "told to stop"}) {
		t.Errorf("the log of a stopped member is %q", lines)
	}
	// A new run starts it again.
	again := h.member(0, "wait")
	again.Run = 2
	start(t, e, again)
	h.awaitStates(t, e, domain.StateRunning, domain.StateRunning)
	// A stop of an earlier run does not affect this one. The other member's end shows that the request has been
	// handled.
	must(t, e.Stop(acctest.Bounded(t), map[string]int{h.memberName(0): 1, h.memberName(1): 1}, domain.StopFailed))
	h.awaitStates(t, e, domain.StateRunning, domain.StateStopped)
}

// testStopPaused stops a paused member: it has its grace period, but doesn't take it.
func testStopPaused(t *testing.T, h Harness) {
	e := h.cluster(t)
	if !e.Traits().Supports.Pause {
		t.Skip("this engine can't pause members")
	}
	paused := h.member(0, "print:here", "wait")
	paused.GracePeriod = domain.Duration(time.Hour)
	start(t, e, paused)
	h.awaitStates(t, e, domain.StateRunning)
	acctest.Eventually(t, "the member's first line", func() bool {
		return len(logs(t, e, paused.Name, engine.LogOptions{})) == 1
	})
	must(t, engine.Pause(acctest.Bounded(t), e, []string{paused.Name}))
	must(t, e.Stop(acctest.Bounded(t), map[string]int{paused.Name: 1}, domain.StopDeadline))
	o := h.awaitStates(t, e, domain.StateStopped)[0]
	if o.ExitCode == nil || *o.ExitCode != 0 || o.LastError != "" {
		t.Errorf("a paused member that was stopped is %+v", o)
	}
}

func testRemoveTree(t *testing.T, h Harness) {
	e := h.cluster(t)
	stubborn := h.member(0, "child", "ignore", "wait")
	stubborn.GracePeriod = domain.Duration(50 * time.Millisecond)
	start(t, e, stubborn)
	h.awaitAlive(t, e, 2)
	must(t, e.Remove(acctest.Bounded(t), []string{stubborn.Name}))
	h.awaitStates(t, e)
	h.awaitAlive(t, e, 0)
	if _, err := e.Logs(t.Context(), stubborn.Name, engine.LogOptions{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the log of a removed member: %v, not ErrNotFound", err)
	}
	// When a command ends, its leftover children are killed.
	start(t, e, h.member(1, "child", "exit:0"))
	h.awaitStates(t, e, domain.StateCompleted)
	if n := h.Alive(t, e, h.group); n != 0 {
		t.Errorf("%d processes outlived a completed member", n)
	}
}

// logs returns the log of a member. An engine that has been too busy to return it in time is asked again.
func logs(t *testing.T, e engine.Engine, member string, options engine.LogOptions) (lines []string) {
	t.Helper()
	acctest.Eventually(t, "the log of "+member, func() bool {
		var err error
		if lines, err = e.Logs(t.Context(), member, options); !errors.Is(err, context.DeadlineExceeded) {
			must(t, err)
		}
		return err == nil
	})
	return lines
}

func testLogs(t *testing.T, h Harness) {
	e := h.cluster(t)
	start(t, e, h.member(0, "print:one", "print:two", "print:three", "exit:0"), h.member(1, "exit:0"))
	h.awaitStates(t, e, domain.StateCompleted, domain.StateCompleted)
	for _, c := range []struct {
		member  string
		options engine.LogOptions
		want    []string
	}{
		{h.memberName(0), engine.LogOptions{}, []string{"one", "two", "three"}},
		{h.memberName(0), engine.LogOptions{Tail: 2}, []string{"two", "three"}},
		{h.memberName(0), engine.LogOptions{Since: time.Now().Add(-time.Hour)}, []string{"one", "two", "three"}},
		{h.memberName(1), engine.LogOptions{}, nil},
	} {
		lines := logs(t, e, c.member, c.options)
		if !slices.Equal(lines, c.want) {
			t.Errorf("the log of %s with %+v is %q, not %q", c.member, c.options, lines, c.want)
		}
	}
	if _, err := e.Logs(t.Context(), h.memberName(9), engine.LogOptions{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the log of no member: %v, not ErrNotFound", err)
	}
}

func testEvents(t *testing.T, h Harness) {
	e := h.cluster(t)
	events, err := e.Watch(t.Context())
	must(t, err)
	start(t, e, h.member(0, "exit:0"))
	deadline := time.After(patience.Limit)
	for {
		select {
		case _, open := <-events:
			if !open {
				t.Fatal("the stream of events ended")
			}
		case <-deadline:
			t.Fatal("no event reported a member's end")
		}
		observed, err := e.Observe(t.Context(), h.group)
		must(t, err)
		if len(observed) == 1 && observed[0].State == domain.StateCompleted {
			return
		}
	}
}

func testForeign(t *testing.T, h Harness) {
	e := h.cluster(t)
	untouched := h.Foreign(t, e, h.group)
	start(t, e, h.member(0, "wait"))
	h.awaitStates(t, e, domain.StateRunning)
	must(t, e.Remove(acctest.Bounded(t), []string{h.memberName(0)}))
	h.awaitStates(t, e)
	must(t, e.Dissolve(acctest.Bounded(t)))
	must(t, untouched())
}
