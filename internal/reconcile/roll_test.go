package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// turns records which members are staged with which command, and which members run at that time.
type turns struct {
	*fake
	mutex sync.Mutex
	taken []string
}

func (s *turns) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	var names []string
	for _, spec := range specs {
		names = append(names, strings.TrimPrefix(spec.Name, "mnist-"))
	}
	running := 0
	for _, a := range s.cast() {
		if a.observed.State == domain.StateRunning {
			running++
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.taken = append(s.taken, fmt.Sprintf("%s: %s (%d run)", specs[0].Command[0], strings.Join(names, " "), running))
	return s.fake.Stage(ctx, specs)
}

// commanded is a group whose members run this command.
func commanded(command string, ps, workers int, changes ...func(g *domain.Group)) domain.Group {
	return group(ps, workers, append(changes, func(g *domain.Group) { g.Command = []string{command} })...)
}

// inTurns sets the parallelism of updates of the workers.
func inTurns(parallelism int, onFailure domain.OnFailure) func(g *domain.Group) {
	return role("worker",
		func(r *domain.Role) { r.Update = domain.Update{Parallelism: parallelism, OnFailure: onFailure} })
}

// lasts is the play of a member that keeps running.
var lasts = play{runs}

// TestUpdateInTurns changes the command of one parameter server and five workers, some of which fail with it.
func TestUpdateInTurns(t *testing.T) {
	for name, c := range map[string]struct {
		update   func(g *domain.Group)
		plays    map[string][]play
		turns    []string
		states   string
		commands string
		failure  []string
	}{
		"all at once by default": {
			update:   func(*domain.Group) {},
			turns:    []string{"new: ps-0 worker-0 worker-1 worker-2 worker-3 worker-4 (6 run)"},
			commands: "new new new new new new",
		},
		"two at a time": {
			update: inTurns(2, ""),
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 worker-3 (6 run)",
				"new: worker-4 (6 run)",
			},
			commands: "new new new new new new",
		},
		"the next follows when one runs": {
			update: inTurns(2, ""), plays: map[string][]play{
				"mnist-worker-0": {lasts, {waits, waits, waits, waits, waits, waits, waits, waits, runs}},
			},
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 (5 run)", "new: worker-3 (5 run)",
				"new: worker-4 (6 run)",
			},
			commands: "new new new new new new",
		},
		"one that comes and fails holds up the others": {
			update: inTurns(2, ""), plays: map[string][]play{"mnist-worker-0": {lasts, {waits, waits, exits(127)}}},
			turns:    []string{"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 (5 run)"},
			commands: "new new new new old old",
			failure:  []string{"member mnist-worker-0", "exit code 127"},
		},
		"after a pause": {
			update: role("worker",
				func(r *domain.Role) { r.Update = domain.Update{Parallelism: 3, Delay: duration(time.Millisecond)} }),
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 worker-2 (6 run)", "new: worker-3 worker-4 (6 run)",
			},
			commands: "new new new new new new",
		},
		"it stops at a failure": {
			update: inTurns(2, ""), plays: map[string][]play{"mnist-worker-1": {lasts, {exits(127)}}},
			turns:    []string{"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)"},
			commands: "new new new old old old",
			failure:  []string{"member mnist-worker-1", "exit code 127"},
		},
		"it stops before the change where others fail": {
			update: inTurns(2, ""), plays: map[string][]play{"mnist-ps-0": {lasts, {exits(127)}}},
			turns:    []string{"new: ps-0 (6 run)"},
			commands: "new old old old old old",
			failure:  []string{"member mnist-ps-0"},
		},
		"it goes on, and reports the failure": {
			update: inTurns(2, domain.UpdateContinue),
			plays:  map[string][]play{"mnist-worker-1": {lasts, {exits(127)}}},
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 worker-3 (5 run)",
				"new: worker-4 (5 run)",
			},
			commands: "new new new new new new",
			failure:  []string{"member mnist-worker-1", "exit code 127"},
		},
		"it goes back": {
			update: inTurns(2, domain.UpdateRollback),
			plays:  map[string][]play{"mnist-worker-3": {lasts, {exits(127)}, lasts}},
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 worker-3 (6 run)",
				"old: ps-0 worker-3 (5 run)", "old: worker-0 worker-1 (6 run)", "old: worker-2 (6 run)",
			},
			commands: "old old old old old old",
			failure:  []string{"member mnist-worker-3", "rolled back"},
		},
		"it goes back, as do those that do not run yet": {
			update: inTurns(2, domain.UpdateRollback),
			plays: map[string][]play{
				"mnist-worker-2": {lasts, {waits}, lasts}, "mnist-worker-3": {lasts, {exits(127)}, lasts},
			},
			turns: []string{
				"new: ps-0 (6 run)", "new: worker-0 worker-1 (6 run)", "new: worker-2 worker-3 (6 run)",
				"old: ps-0 worker-2 worker-3 (4 run)", "old: worker-0 worker-1 (6 run)",
			},
			commands: "old old old old old old",
			failure:  []string{"member mnist-worker-3", "rolled back"},
		},
		"it goes back as a whole": {
			update: inTurns(0, domain.UpdateRollback),
			plays:  map[string][]play{"mnist-worker-3": {lasts, {exits(127)}, lasts}},
			turns: []string{
				"new: ps-0 worker-0 worker-1 worker-2 worker-3 worker-4 (6 run)",
				"old: ps-0 worker-0 worker-1 worker-2 worker-3 worker-4 (5 run)",
			},
			commands: "old old old old old old",
			failure:  []string{"member mnist-worker-3", "rolled back"},
		},
		"it can't go back": {
			update: inTurns(0, domain.UpdateRollback),
			plays:  map[string][]play{"mnist-worker-3": {lasts, {exits(127)}}},
			turns: []string{
				"new: ps-0 worker-0 worker-1 worker-2 worker-3 worker-4 (6 run)",
				"old: ps-0 worker-0 worker-1 worker-2 worker-3 worker-4 (5 run)",
			},
			commands: "old old old old old old",
			failure:  []string{"exit code 127", "The rollback failed, too: member mnist-worker-3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.plays = c.plays
			// The group must not complete, as failures are handled only while it runs.
			never := func(g *domain.Group) { g.Completion.When = domain.WhenNever }
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), commanded("old", 1, 5, c.update, never)))
			s := &turns{fake: f}
			err := reconcile.Reconciler{Engine: s}.Update(within(t), commanded("new", 1, 5, c.update, never))
			if (err == nil) != (c.failure == nil) {
				t.Errorf("the update: %v", err)
			}
			for _, part := range c.failure {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
			if diff := cmp.Diff(c.turns, s.taken); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			var commands []string
			for _, member := range []string{"ps-0", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"} {
				commands = append(commands, f.cast()["mnist-"+member].spec.Command[0])
			}
			if got := strings.Join(commands, " "); got != c.commands {
				t.Errorf("the members run %s, not %s", got, c.commands)
			}
			doc := f.document(t, "mnist")
			rolledBack := err != nil && strings.Contains(err.Error(), "was rolled back")
			if doc.Applying != (err != nil && !rolledBack) || !doc.Applying && doc.Before != nil {
				t.Errorf("the document says: applying %v, before %v", doc.Applying, doc.Before)
			}
		})
	}
}

// TestUpdateGoesOn: an apply continues where one that died between two turns stopped. A rollback returns to what ran
// before the first of them.
func TestUpdateGoesOn(t *testing.T) {
	for _, last := range []play{lasts, {exits(127)}} {
		f := newFake()
		r := reconcile.Reconciler{Engine: f}
		must(t, r.Update(within(t), commanded("old", 0, 3, inTurns(1, domain.UpdateRollback))))
		f.plays = map[string][]play{"mnist-worker-2": {lasts, last, lasts}}
		dead := errors.New("dead")
		e, calls := recorded(f)
		stages := 0
		calls.before = func(call string) error {
			if call == "Stage" {
				stages++
			}
			if stages > 2 {
				return dead
			}
			return nil
		}
		if err := (reconcile.Reconciler{Engine: e}).Update(within(t),
			commanded("new", 0, 3, inTurns(1, domain.UpdateRollback))); !errors.Is(err, dead) {
			t.Fatal(err)
		}
		f.locks = map[string]engine.Holder{}
		s := &turns{fake: f}
		err := reconcile.Reconciler{
			Engine: s,
		}.Update(within(t), commanded("new", 0, 3, inTurns(1, domain.UpdateRollback)))
		want := []string{"new: worker-2 (3 run)"}
		if len(last) == 1 && last[0] == runs {
			must(t, err)
		} else {
			want = append(want, "old: worker-2 (2 run)", "old: worker-0 (3 run)", "old: worker-1 (3 run)")
			if err == nil || !strings.Contains(err.Error(), "rolled back") {
				t.Errorf("a failure: %v", err)
			}
		}
		if diff := cmp.Diff(want, s.taken); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	}
}

// TestNothingToGoBackTo: a new group that fails has not run before.
func TestNothingToGoBackTo(t *testing.T) {
	f := newFake()
	f.plays = map[string][]play{"mnist-worker-0": {{exits(127)}}}
	err := reconcile.Reconciler{Engine: f}.Update(within(t), group(0, 1, inTurns(1, domain.UpdateRollback)))
	if err == nil || !strings.Contains(err.Error(), "nothing to roll back to") {
		t.Errorf("a new group that fails: %v", err)
	}
}

// TestRefusedRollback: what prevents a rollback does not hide why it was needed.
func TestRefusedRollback(t *testing.T) {
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), commanded("old", 0, 1, inTurns(1, domain.UpdateRollback))))
	f.absent, f.plays = "old", map[string][]play{"mnist-worker-0": {lasts, {exits(127)}}}
	err := r.Update(within(t), commanded("new", 0, 1, inTurns(1, domain.UpdateRollback)))
	_, failed := errors.AsType[*reconcile.MemberError](err)
	_, refused := errors.AsType[domain.Problems](err)
	if !failed || refused || !strings.Contains(err.Error(), "The rollback failed, too: Command not found") {
		t.Errorf("failed %v, refused %v: %v", failed, refused, err)
	}
}

// down are the states of a member that does not run.
var down = map[string]func(o *domain.Observed){
	"failed":               func(o *domain.Observed) { o.State = domain.StateFailed },
	"between two attempts": func(o *domain.Observed) { o.State = domain.StateRestarting },
	"not startable":        func(o *domain.Observed) { o.State, o.Unstarted = domain.StateRestarting, true },
	"not started yet":      func(o *domain.Observed) { o.State = domain.StatePending },
	"ended":                func(o *domain.Observed) { o.State = domain.StateCompleted },
}

// TestWhatDoesNotWaitForItsTurn: new members, and a rerun.
func TestWhatDoesNotWaitForItsTurn(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(g *domain.Group)
		workers int
		want    []string
	}{
		"a new member": {
			func(*domain.Group) {}, 4,
			[]string{"new: worker-3 (3 run)", "new: worker-0 worker-1 (4 run)", "new: worker-2 (4 run)"},
		},
		"a rerun": {trigger("again"), 3, []string{"new: worker-0 worker-1 worker-2 (3 run)"}},
		"another count": {
			func(g *domain.Group) { g.Command = []string{"old"} }, 2,
			[]string{"old: worker-0 worker-1 (2 run)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			never := func(g *domain.Group) { g.Completion.When = domain.WhenNever }
			f := newFake()
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), commanded("old", 0, 3, inTurns(2, ""), never)))
			s := &turns{fake: f}
			spec := commanded("new", 0, c.workers, inTurns(2, ""), never)
			c.change(&spec)
			must(t, reconcile.Reconciler{Engine: s}.Update(within(t), spec))
			if diff := cmp.Diff(c.want, s.taken); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDownBeforeAnUpdate: a member that does not run before an update does not wait for its turn.
func TestDownBeforeAnUpdate(t *testing.T) {
	for name, falls := range down {
		t.Run(name, func(t *testing.T) {
			never := func(g *domain.Group) { g.Completion.When = domain.WhenNever }
			f := newFake()
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), commanded("old", 0, 3, inTurns(2, ""), never)))
			f.put("mnist-worker-2", falls)
			s := &turns{fake: f}
			must(t, reconcile.Reconciler{Engine: s}.Update(within(t), commanded("new", 0, 3, inTurns(2, ""), never)))
			want := []string{"new: worker-2 (2 run)", "new: worker-0 worker-1 (3 run)"}
			if diff := cmp.Diff(want, s.taken); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDownDuringAnUpdate: a member that goes down while it waits for its turn does not hold up the others.
func TestDownDuringAnUpdate(t *testing.T) {
	for name, falls := range down {
		t.Run(name, func(t *testing.T) {
			never := func(g *domain.Group) { g.Completion.When = domain.WhenNever }
			f := newFake()
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), commanded("old", 0, 3, inTurns(1, ""), never)))
			s := &turns{fake: f}
			e, calls := recorded(s)
			calls.before = func(call string) error {
				if call == "Stage" && len(s.taken) == 0 {
					f.put("mnist-worker-2", falls)
				}
				return nil
			}
			must(t, reconcile.Reconciler{Engine: e}.Update(within(t), commanded("new", 0, 3, inTurns(1, ""), never)))
			want := []string{"new: worker-0 (2 run)", "new: worker-1 (2 run)", "new: worker-2 (2 run)"}
			if diff := cmp.Diff(want, s.taken); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpdateOfPoolIsTheEngines: the update rule of members that the engine schedules is passed on to the engine.
func TestUpdateOfPoolIsTheEngines(t *testing.T) {
	f := newFake()
	f.traits = engine.Traits{Schedules: true, MemberAddress: addressed}
	spec := updated(pool(3), domain.Update{Parallelism: 2})
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), spec))
	spec.Command = []string{"new"}
	s := &turns{fake: f}
	must(t, reconcile.Reconciler{Engine: s}.Update(within(t), spec))
	if want := []string{"new: master-0 worker-0 worker-1 worker-2 (4 run)"}; !cmp.Equal(s.taken, want) {
		t.Errorf("the turns are %q", s.taken)
	}
	if update := f.cast()["mnist-worker-0"].spec.Update; update.Parallelism != 2 {
		t.Errorf("the engine was given %+v", update)
	}
}
