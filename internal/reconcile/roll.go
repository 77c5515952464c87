package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// rolling returns the members that get another specification in turn, a few of their role at a time. Members
// that have to start for another reason start at once, as do those with trouble on their host. The engine
// updates pools by itself.
func (d Decision) rolling(observed []domain.Observed) map[string]bool {
	named := byName(observed)
	rolling := map[string]bool{}
	for i, m := range d.Members {
		o, found := named[m.Name]
		if found && !m.Shared() && d.update(m.Role).Parallelism > 0 &&
			o.Hash != "" && o.Hash != d.Layout.Hash(i) && o.Run >= d.Document.MinRun && o.HostTrouble == "" {
			rolling[m.Name] = true
		}
	}
	return rolling
}

// update returns the update rule of a role.
func (d Decision) update(role string) domain.Update { return d.Document.Spec.Roles[role].Update }

// turn returns the changes of the members whose turn it is, and their role; none if all have had theirs. Members whose
// failure is tolerated do not count against the parallelism.
func (d Decision) turn(observed []domain.Observed, failed map[string]bool) (changes []Change, role string) {
	rolling := d.rolling(observed)
	away := map[string]int{} // by role: members that had their turn and do not run yet
	for _, o := range observed {
		if !rolling[o.Name] && o.State != domain.StateRunning && o.State != domain.StateCompleted && !failed[o.Name] {
			away[o.Role]++
		}
	}
	for _, change := range Diff(d, observed) {
		if !rolling[change.Member] {
			continue
		}
		of := d.Members[change.Index].Role
		if role == "" {
			role = of
		}
		if of == role && away[role]+len(changes) < d.update(role).Parallelism {
			changes = append(changes, change)
		}
	}
	return changes, role
}

// arriving reports whether a member was just started without any trouble.
func arriving(o domain.Observed) bool {
	return o.State == domain.StatePending && o.Restarts == 0 && o.LastError == "" && o.HostTrouble == ""
}

// roll updates the members that wait for their turn: role by role, and within each as many at a time as its update rule
// says, by index. The next member follows as soon as one runs, or the next batch after a pause once all run. It
// continues where an interrupted apply stopped.
func (r Reconciler) roll(ctx context.Context, d Decision, observed []domain.Observed) (_ Decision, err error) {
	if len(d.rolling(observed)) == 0 {
		return d, nil
	}
	failed := map[string]bool{} // whose failure is tolerated
	regarded := func(d Decision, observed []domain.Observed) []domain.Observed { return inTurn(d, observed, failed) }
	var last string
	for {
		if d, err = r.await(ctx, d, domain.PhaseRunning, regarded); err != nil {
			failure, is := errors.AsType[*MemberError](err)
			if !is || d.update(failure.Member.Role).OnFailure != domain.UpdateContinue || failed[failure.Member.Name] {
				return d, err
			}
			failed[failure.Member.Name] = true
			continue
		}
		observed, err := r.Engine.Observe(ctx, d.Document.Spec.Name)
		if err != nil {
			return d, err
		}
		if len(d.rolling(observed)) == 0 {
			return d, nil
		}
		changes, role := d.turn(observed, failed)
		if len(changes) == 0 {
			continue // one has gone down since
		}
		if wait := d.update(role).Wait(); wait > 0 && role == last {
			if err := pause(ctx, wait); err != nil {
				return d, err
			}
			last = "" // check after the pause that they still run
			continue
		}
		if err := r.carryOut(ctx, d, changes); err != nil {
			return d, err
		}
		last = role
	}
}

// inTurn returns the members as they count during an update: those that wait for their turn run as they should,
// whatever became of them under their old specification, and those whose failure is tolerated run. Members that were
// just started also count as running while others can follow.
func inTurn(d Decision, observed []domain.Observed, failed map[string]bool) []domain.Observed {
	rolling := d.rolling(observed)
	hashes := make(map[string]string, len(d.Members))
	for i, m := range d.Members {
		hashes[m.Name] = d.Layout.Hash(i)
	}
	changes, role := d.turn(observed, failed)
	others := len(changes) > 0 && d.update(role).Wait() == 0
	seen := slices.Clone(observed)
	for i := range seen {
		if rolling[seen[i].Name] {
			seen[i].Hash, seen[i].State = hashes[seen[i].Name], domain.StateRunning
		}
		if others && seen[i].Role == role && arriving(seen[i]) {
			seen[i].State = domain.StateRunning
		}
		if failed[seen[i].Name] && seen[i].State.Ended() {
			seen[i].State = domain.StateRunning
		}
	}
	return seen
}

// pause sleeps, or returns the context's error.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// goesBack reports whether the failure of a member rolls the group back.
func goesBack(d Decision, err error) bool {
	failure, is := errors.AsType[*MemberError](err)
	return is && d.update(failure.Member.Role).OnFailure == domain.UpdateRollback
}

// goBack restores the group's previous specification after a failed change, and returns the failure.
func (r Reconciler) goBack(ctx context.Context, d Decision, failure error) error {
	before := d.Document.Before
	if before == nil {
		return fmt.Errorf("%w\n\nThere is nothing to roll back to: the group has never run with another specification",
			failure)
	}
	r.say(ctx, d.Document.Spec.Name, "rolling back group", slog.String("failure", failure.Error()))
	r.Planned = nil // planned for the failed change
	decision, observed, err := r.allocate(ctx, before.Spec, before)
	if err == nil {
		_, err = r.bring(ctx, decision, observed)
	}
	if err != nil {
		// The error is that of the member, whatever kind this one is.
		return fmt.Errorf("%w\n\nThe rollback failed, too: %s", failure, err.Error())
	}
	return &RolledBackError{failure}
}

// RolledBackError means that a group was rolled back after a failed change.
type RolledBackError struct{ Failure error }

// Error says so after the failure.
func (e *RolledBackError) Error() string {
	return fmt.Sprintf("%v\n\nThe group was rolled back to its previous specification", e.Failure)
}

// Unwrap returns the failure.
func (e *RolledBackError) Unwrap() error { return e.Failure }
