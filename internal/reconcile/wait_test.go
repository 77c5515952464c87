package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestMemberErrorKeepsTheEvidence(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-1"] = []play{{runs, exits(127)}, {runs}}
	f.plays["mnist-ps-0"] = []play{{waits, waits, waits, runs}}
	for i := range 30 {
		f.logs["mnist-worker-1"] = append(f.logs["mnist-worker-1"], fmt.Sprintf("line %d", i))
	}
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e}
	err := r.Update(within(t), group(1, 2))
	var failure *reconcile.MemberError
	if !errors.As(err, &failure) {
		t.Fatalf("a member that failed: %v", err)
	}
	if failure.Member.Name != "mnist-worker-1" || failure.Cause != "exit code 127, which is final" ||
		len(failure.Log) != 20 || failure.Log[19] != "line 29" {
		t.Errorf("the error is %+v", failure)
	}
	if text := err.Error(); !strings.HasPrefix(text, "member mnist-worker-1 on host "+failure.Member.Host+
		": exit code 127, which is final\n\nIts last log lines:\n  line 10\n  line 11\n") {
		t.Errorf("the error says: %s", text)
	}
	for _, call := range []string{"Remove", "Stop", "Delete group"} {
		if slices.Contains(calls.made(), call) {
			t.Errorf("after a failure there was a call of %s", call)
		}
	}
	if doc := f.document(t, "mnist"); !doc.Applying {
		t.Error("the document says that the apply ended well")
	}
	if len(f.locks) > 0 {
		t.Errorf("the locks %v are still held", f.locks)
	}

	// The next apply gives it another run, and leaves those alone that run already.
	must(t, r.Update(within(t), group(1, 2)))
	if f.cast()["mnist-worker-1"].runs != 2 || f.cast()["mnist-worker-0"].runs != 1 {
		t.Errorf("worker 1 was started %d times, worker 0 %d times", f.cast()["mnist-worker-1"].runs,
			f.cast()["mnist-worker-0"].runs)
	}
	if f.document(t, "mnist").Applying {
		t.Error("the document says that the apply did not end well")
	}
}

func TestMemberErrorWithoutLog(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{exits(127)}}
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Logs" {
			return errors.New("no such disk")
		}
		return nil
	}
	err := reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 1))
	var failure *reconcile.MemberError
	if !errors.As(err, &failure) || failure.Member.Name != "mnist-worker-0" ||
		!strings.Contains(err.Error(), "its log could not be read: no such disk") {
		t.Errorf("the error is %v", err)
	}
	f.logs["mnist-worker-0"] = nil
	if text := (&reconcile.MemberError{Member: failure.Member, Cause: "it broke"}).Error(); strings.Contains(text,
		"log") {
		t.Errorf("without log lines the error says: %s", text)
	}
}

// TestServiceThatEnds: a member that exits with 0 is an error in a group that never completes.
func TestServiceThatEnds(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{exits(0)}}
	f.plays["mnist-ps-0"] = []play{{waits, waits, waits}}
	err := reconcile.Reconciler{
		Engine: f,
	}.Update(within(t), group(1, 1, func(g *domain.Group) { g.Completion.When = domain.WhenNever }))
	var failure *reconcile.MemberError
	if !errors.As(err, &failure) || failure.Member.Name != "mnist-worker-0" ||
		!strings.Contains(err.Error(), "exited with code 0") {
		t.Errorf("the error is %v", err)
	}
}

// TestRetriedFailuresAreNoErrors: an apply waits for members that their restart rule retries.
func TestRetriedFailuresAreNoErrors(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{exits(137), waits, runs}}
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), group(1, 1)))
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)")
}

// TestMemberThatCannotStart: an apply fails at once if a member can't be started, even if its rule allows a retry.
// The next apply succeeds.
func TestMemberThatCannotStart(t *testing.T) {
	f := newFake()
	f.plays["mnist-worker-0"] = []play{{cannotStart(128), waits, waits, waits}, {runs}}
	r := reconcile.Reconciler{Engine: f}
	err := r.Update(within(t), group(1, 1))
	var failure *reconcile.MemberError
	if !errors.As(err, &failure) || failure.Member.Name != "mnist-worker-0" ||
		failure.Member.State != domain.StateRestarting {
		t.Errorf("the error is %v", err)
	}
	must(t, r.Update(within(t), group(1, 1)))
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)")
}

func TestCancelledWhileWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		play play
		want string
	}{
		"pending": {
			play{waits, waits, waits, waits},
			`group "mnist" is pending, not running yet, and continues: context canceled`,
		},
		"degraded": {
			play{exits(137), waits, waits, waits},
			`group "mnist" is degraded (restarting: mnist-worker-0), not running yet, and continues: context canceled`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.plays["mnist-worker-0"] = []play{c.play}
			e, calls := recorded(f)
			ctx, cancel := context.WithCancel(t.Context())
			looks := 0
			calls.before = func(call string) error {
				if call == "Observe" {
					if looks++; looks == 4 {
						cancel()
					}
				}
				return nil
			}
			err := reconcile.Reconciler{Engine: e}.Update(ctx, group(1, 1))
			if err == nil || err.Error() != c.want || !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v, not %s", err, c.want)
			}
			if len(f.locks) > 0 {
				t.Errorf("the locks %v are still held", f.locks)
			}
			if !f.document(t, "mnist").Applying || slices.Contains(calls.made(), "Remove") {
				t.Error("what was done did not stay as it was")
			}
		})
	}
}
