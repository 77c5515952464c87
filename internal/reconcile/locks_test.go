package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestLockedByAnotherApply(t *testing.T) {
	f, _ := applied(t, group(1, 1))
	holder := engine.Holder{Who: "ada@gpu1", Process: 4711, Operation: "apply of group mnist", Since: epoch}
	f.locks[reconcile.GroupLock("mnist")] = holder
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e}
	for name, do := range map[string]func() error{
		"update":  func() error { return r.Update(within(t), group(1, 2)) },
		"destroy": func() error { return r.Destroy(within(t), "mnist") },
	} {
		err := do()
		var locked *engine.LockedError
		if !errors.As(err, &locked) || !cmp.Equal(locked.Holder, holder) ||
			!strings.Contains(err.Error(), "ada@gpu1 (process 4711): apply of group mnist") {
			t.Errorf("%s of a locked group: %v", name, err)
		}
	}
	if diff := cmp.Diff([]string{"Lock", "Lock"}, calls.made()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	must(t, r.Update(within(t), group(1, 1, func(g *domain.Group) { g.Name = "other" })))
}

func TestBriefLocksAreWaitedFor(t *testing.T) {
	for name, holder := range map[string]engine.Holder{
		reconcile.GroupLock("mnist"): {Who: "the controller", Controller: true},
		"allocation":                 {Who: "ada", Operation: "allocation for group other"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.locks[name] = holder
			e, calls := recorded(f)
			attempts := 0
			calls.before = func(call string) error {
				if call == "Lock" {
					if attempts++; attempts == 4 {
						f.unlock(name)
					}
				}
				return nil
			}
			must(t, reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 1)))

			// The error of an interrupted wait names the lock's holder.
			f.locks[name] = holder
			ctx, cancel := context.WithCancel(t.Context())
			calls.before = func(call string) error {
				if call == "Lock" {
					cancel()
				}
				return nil
			}
			err := reconcile.Reconciler{Engine: e}.Update(ctx, group(1, 1))
			var locked *engine.LockedError
			if !errors.As(err, &locked) || locked.Lock != name || locked.Holder.Who != holder.Who {
				t.Errorf("cancelled while waiting for a lock: %v", err)
			}
		})
	}
}

// TestLineForALock: an apply waits for one brief holder after another, but not for one that keeps the lock. That one is
// named even if the engine no longer answers.
func TestLineForALock(t *testing.T) {
	const each, before = 40 * time.Second, 5
	for name, test := range map[string]struct {
		holder   func(since time.Duration) int // by its number
		silent   bool
		served   bool
		who      string
		notUntil time.Duration
	}{
		"a line": {
			func(since time.Duration) int { return int(since / each) }, false, true, "", before * each,
		},
		"one that keeps":   {func(time.Duration) int { return 0 }, false, false, "apply 0", each},
		"silence after it": {func(time.Duration) int { return 0 }, true, false, "apply 0", each},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, start, asked := newFake(), time.Now(), 0
				e := engine.Intercept(f, func(ctx context.Context, call engine.Call, do func() error) error {
					if call.Name != "Lock" {
						return do()
					}
					n := test.holder(time.Since(start))
					f.locks["allocation"] = engine.Holder{
						Who: fmt.Sprint("apply ", n), Process: n + 1, Since: start.Add(time.Duration(n) * each),
					}
					if n == before {
						f.unlock("allocation")
					}
					if asked++; asked > 2 && test.silent {
						<-ctx.Done()
						return ctx.Err()
					}
					return do()
				})
				err := reconcile.Reconciler{Engine: e}.Update(t.Context(), group(1, 1))
				locked, is := errors.AsType[*engine.LockedError](err)
				if took := time.Since(start); test.served != (err == nil) || is && locked.Holder.Who != test.who ||
					err != nil && !is || took < test.notUntil {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// TestPortsOfConcurrentApplies: another group is applied while the first one chooses its ports.
func TestPortsOfConcurrentApplies(t *testing.T) {
	f := newFake()
	first, calls := recorded(f)
	second, others := recorded(f)
	// The other apply is under way once it waits for the first, or reads what the first reads.
	underWay := make(chan struct{})
	others.before = func(call string) error {
		if made := others.made(); call == "Inventory" || len(made) == 3 && made[2] == "Lock" {
			close(underWay)
			others.before = nil
		}
		return nil
	}
	ended := make(chan error, 1)
	calls.before = func(call string) error {
		if call == "Put group" {
			calls.before = nil
			go func() {
				ended <- reconcile.Reconciler{
					Engine: second,
				}.Update(within(t), group(1, 1, func(g *domain.Group) { g.Name = "other" }))
			}()
			<-underWay
		}
		return nil
	}
	must(t, reconcile.Reconciler{Engine: first}.Update(within(t), group(1, 1)))
	must(t, <-ended)
	ports := map[int]string{}
	for _, group := range []string{"mnist", "other"} {
		for member, assigned := range f.document(t, group).Assignments {
			if with, taken := ports[assigned.Port]; taken {
				t.Errorf("%s and %s both have port %d", with, member, assigned.Port)
			}
			ports[assigned.Port] = member
		}
	}
}
