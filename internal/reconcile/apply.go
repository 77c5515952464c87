package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// ExistsError means that a group to be created already exists with another specification. From is the prefix of its
// import ID, see [engine.Traits].
type ExistsError struct{ Cluster, Group, From string }

// Error says what to do about it.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("cluster %q already has a group %q with another specification; choose another name, or import "+
		"it: terraform import <address> %s",
		e.Cluster, e.Group, e.From+domain.GroupID(e.Cluster, e.Group))
}

// Create applies spec as [Reconciler.Update] does, for a group that is not in the Terraform state. It adopts what an
// interrupted apply left behind, and a group with an equal specification, and reports that as adopted. Any other
// existing group is an [*ExistsError].
func (r Reconciler) Create(ctx context.Context, spec domain.Group) (adopted bool, err error) {
	existing, err := engine.Get[domain.GroupDocument](ctx, r.Engine, spec.Name)
	switch {
	case errors.Is(err, engine.ErrNotFound):
	case err != nil:
		return false, err
	case existing.Applying:
		adopted = true
	case existing.Spec.Equal(spec):
		adopted = true
		r.Planned = nil // it was planned without the places that this group has
		// A failed group is adopted as it is: only a change or a trigger runs it again.
		group, err := r.Read(ctx, spec.Name)
		if err != nil || group.Progress.Phase == domain.PhaseFailed && len(Diff(group.Decision, group.Observed)) == 0 {
			return adopted, err
		}
	default:
		return false, &ExistsError{spec.Cluster, spec.Name, r.Engine.Traits().ImportFrom}
	}
	return adopted, r.Update(ctx, spec)
}

// Update makes the group match spec. It returns once all members run, or once the group has completed if spec waits for
// that. A failed member is a [*MemberError]; what was done until then is left in place.
func (r Reconciler) Update(ctx context.Context, spec domain.Group) error {
	decision, err := r.start(ctx, spec)
	if err != nil || spec.WaitFor != domain.WaitCompleted {
		return err
	}
	_, err = r.await(ctx, decision, domain.PhaseCompleted, asTheyAre)
	return err
}

// start gets all members running, under the group's lock. It releases the lock before completion, which
// the controller watches for.
func (r Reconciler) start(ctx context.Context, spec domain.Group) (decision Decision, err error) {
	release, err := r.lock(ctx, GroupLock(spec.Name), "apply of group "+spec.Name)
	if err != nil {
		return Decision{}, err
	}
	defer func() {
		unlocked := release()
		// The final document was stored by compare and swap, so nobody who held the lock during an outage has changed
		// the group. A lock that can't be released expires by itself.
		outage := errors.Is(unlocked, engine.ErrLockLost) || errors.Is(unlocked, engine.ErrLockUnreleased)
		if err != nil || !outage || !decision.Document.Spec.Equal(spec) {
			err = errors.Join(err, unlocked)
		}
	}()

	decision, observed, err := r.allocate(ctx, spec, nil)
	if err != nil {
		return Decision{}, err
	}
	if err := engine.KeepRegistryLogins(ctx, r.Engine, spec.Name, decision.Document.Spec.PulledImages()); err != nil {
		return Decision{}, err
	}
	if err := r.Engine.StartController(ctx); err != nil {
		return Decision{}, err
	}
	decision, err = r.bring(ctx, decision, observed)
	if err != nil && goesBack(decision, err) {
		return Decision{}, r.goBack(ctx, decision, err)
	}
	return decision, err
}

// bring gets all members of a decided group running, and records that in the document.
func (r Reconciler) bring(ctx context.Context, d Decision, observed []domain.Observed) (Decision, error) {
	if err := r.converge(ctx, d, observed); err != nil {
		return d, err
	}
	d, err := r.release(ctx, d)
	if err != nil {
		return d, err
	}
	if d, err = r.roll(ctx, d, observed); err != nil {
		return d, err
	}
	if d, err = r.await(ctx, d, domain.PhaseRunning, asTheyAre); err != nil {
		return d, err
	}
	d.Document.Applying, d.Document.Before = false, nil
	if d.Document, err = r.finish(ctx, d.Document); err == nil {
		r.pruneFilesAfter(ctx)
	}
	return d, err
}

// release stores that removed members are gone. It does not wait for the others to run, as they may fail.
func (r Reconciler) release(ctx context.Context, d Decision) (_ Decision, err error) {
	places := d.places()
	if len(places) == len(d.Document.Assignments) {
		return d, nil
	}
	d.Document.Assignments = places
	d.Document, err = engine.Put(ctx, r.Engine, d.Document)
	return d, err
}

// allocateNow is allocate for a group that does not wait for room.
func (r Reconciler) allocateNow(
	ctx context.Context, spec domain.Group, back *domain.GroupDocument,
) (decision Decision, observed []domain.Observed, err error) {
	err = r.asking(ctx, spec, func(by *gpuReport) error {
		decision, observed, err = r.allocateBy(ctx, by, spec, back)
		return err
	})
	return decision, observed, err
}

// allocateBy is allocateNow with the GPUs that the hosts reported. It returns [errUnreportedGPUs] if
// they have to be asked first.
func (r Reconciler) allocateBy(
	ctx context.Context, by *gpuReport, spec domain.Group, back *domain.GroupDocument,
) (decision Decision, observed []domain.Observed, err error) {
	release, err := r.lock(ctx, allocationLock, "allocation for group "+spec.Name)
	if err != nil {
		return Decision{}, nil, err
	}
	defer func() { err = errors.Join(err, release()) }()

	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return Decision{}, nil, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	view, err := r.View(ctx, cluster.Spec, spec)
	if err != nil {
		return Decision{}, nil, err
	}
	places := view.Groups[spec.Name].Assignments
	if back != nil {
		earlier := *back
		earlier.Revision = view.Groups[spec.Name].Revision
		view.Groups[spec.Name] = earlier
	}
	if observed, err = r.Engine.Observe(ctx, spec.Name); err != nil {
		return Decision{}, nil, err
	}
	doc, stored := view.Groups[spec.Name]
	previous := Group{Decision: Current(view.Traits, view.Inventory.Hosts, doc), Trouble: troubleIn(view.Pools)}
	previous.see(observed)
	view.Leave = previous.Leaving()
	decision, problems, err := r.decide(view, spec, by.of(view.Inventory.Hosts))
	if err := errors.Join(err, problems.Err()); err != nil {
		return Decision{}, nil, err
	}
	if back == nil {
		if decision, err = r.behindClaims(ctx, view, decision, by.of(view.Inventory.Hosts)); err != nil {
			return Decision{}, nil, err
		}
	}
	if stored {
		decision.rerunIfEnded(previous.Decision, observed)
	} else {
		for _, o := range observed { // of a document that was lost
			decision.Document.EarlierRuns = max(decision.Document.EarlierRuns, o.Run)
		}
	}
	// Repeat the preflight checks of the plan, so that a group is never started in part.
	problems, err = r.Preflight(ctx, decision, upToDate(decision, observed))
	if err := errors.Join(err, problems.Err()); err != nil {
		return Decision{}, nil, err
	}
	decision.Document.Applying = true
	decision.Document.Assignments = decision.withLeaving(places, observed)
	decision.Document, err = engine.Put(ctx, r.Engine, decision.Document)
	return decision, observed, err
}

// rerunIfEnded makes a completed or failed group run again as a whole if any member has to start, or if it has not
// ended by its new completion rule: a new worker is useless without the parameter servers that were stopped. A group
// with stopped members has ended even if one seems to run: a Swarm may retry a task once more after its last attempt.
func (d *Decision) rerunIfEnded(previous Decision, observed []domain.Observed) {
	ended := Progress(previous, observed).Phase.Ended() || slices.ContainsFunc(observed, func(o domain.Observed) bool {
		return o.State == domain.StateStopped && o.Run >= previous.Document.MinRun
	})
	starts := slices.ContainsFunc(Diff(*d, observed), func(c Change) bool { return c.Action != ActionMend })
	if ended && (starts || !Progress(*d, observed).Phase.Ended()) {
		d.Document.Rerun()
	}
}

// finish stores the document of a completed change and prunes what the members no longer need. Pruning
// has to wait until then because a rollback needs it, such as a secret's former value. If pruning fails,
// the next change retries it.
func (r Reconciler) finish(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	stored, err := engine.Put(ctx, r.Engine, doc)
	if err != nil {
		return stored, err
	}
	if err := r.Engine.Prune(ctx, stored.Spec.Name, &stored.Spec); err != nil {
		r.say(ctx, stored.Spec.Name, "cleanup after the change failed", slog.String("error", err.Error()))
	}
	return stored, nil
}

// converge executes the difference between decision and observation, except for running members that wait for their
// turn in [Reconciler.roll].
func (r Reconciler) converge(ctx context.Context, d Decision, observed []domain.Observed) error {
	waiting := d.rolling(observed)
	running := map[string]bool{}
	for _, o := range observed {
		running[o.Name] = o.State == domain.StateRunning
	}
	return r.carryOut(ctx, d,
		slices.DeleteFunc(Diff(d, observed), func(c Change) bool { return waiting[c.Member] && running[c.Member] }))
}

// carryOut executes changes; all members among them start at once.
func (r Reconciler) carryOut(ctx context.Context, d Decision, changes []Change) error {
	r.say(ctx, d.Document.Spec.Name, "changing members",
		append([]any{slog.Int("revision", d.Document.Revision)}, byAction(changes)...)...)
	var remove []string
	var stage []domain.MemberSpec
	// The current run is started even if nothing is staged: that drops what an interrupted apply
	// staged and never started.
	runs := map[int]bool{d.Document.Run(): true}
	for _, change := range changes {
		if change.Action == ActionRemove {
			remove = append(remove, change.Member)
			continue
		}
		spec, err := d.Layout.Spec(change.Index)
		if err != nil {
			return err
		}
		spec.Run, spec.Secrets = cmp.Or(change.Run, d.Document.Run()), r.Secrets
		runs[spec.Run] = true
		stage = append(stage, spec)
	}
	if len(remove) > 0 {
		if err := r.remove(ctx, d.Document.Spec.Name, remove); err != nil {
			return err
		}
	}
	// Dependencies first, as an engine may start a few members at a time.
	wave := waveOf(topology.StopOrder(d.Document.Spec))
	slices.SortStableFunc(stage, func(a, b domain.MemberSpec) int { return cmp.Compare(wave[b.Role], wave[a.Role]) })
	if len(stage) > 0 {
		if err := r.Engine.Stage(ctx, stage); err != nil {
			return err
		}
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		if err := r.Engine.Start(ctx, d.Document.Spec.Name, run); err != nil {
			return err
		}
	}
	return nil
}

// remove removes members and returns once they are gone. It repeats the removal of those that stay,
// as an engine may lose one.
func (r Reconciler) remove(ctx context.Context, group string, names []string) error {
	if err := r.Engine.Remove(ctx, names); err != nil {
		return err
	}
	again := time.Now().Add(lookAtLatest)
	return r.watch(ctx, group, func(observed []domain.Observed) (_ bool, next time.Time, err error) {
		there := map[string]bool{}
		for _, o := range observed {
			there[o.Name] = true
		}
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !there[name] })
		if len(left) > 0 && !time.Now().Before(again) {
			again = time.Now().Add(lookAtLatest)
			err = r.Engine.Remove(ctx, left)
		}
		return len(left) == 0, again, err
	})
}

// Destroy removes a group's members, role by role, then its policies and its document. It does nothing
// if there is no such group.
func (r Reconciler) Destroy(ctx context.Context, name string) (err error) {
	release, err := r.lock(ctx, GroupLock(name), "destroy of group "+name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // the cluster itself is gone
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()

	var waves [][]string
	switch doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, name); {
	case err == nil:
		waves = topology.StopOrder(doc.Spec)
	case !errors.Is(err, engine.ErrNotFound):
		return err
	}
	observed, err := r.Engine.Observe(ctx, name)
	if err != nil {
		return err
	}
	for _, names := range byWave(waves, observed) {
		if err := r.remove(ctx, name, names); err != nil {
			return err
		}
	}
	// Before the group's document is deleted: once that is gone, a repeated destroy finds nothing to do.
	if err := r.deletePolicies(ctx, name); err != nil {
		return err
	}
	if err := r.Engine.Prune(ctx, name, nil); err != nil {
		return err
	}
	return engine.Delete[domain.GroupDocument](ctx, r.Engine, name)
}

// waveOf maps each role to the index of its wave.
func waveOf(waves [][]string) map[string]int {
	wave := map[string]int{}
	for i, roles := range waves {
		for _, role := range roles {
			wave[role] = i
		}
	}
	return wave
}

// byWave sorts members into the waves of their roles; members of unknown roles come last.
func byWave(waves [][]string, observed []domain.Observed) [][]string {
	wave := waveOf(waves)
	names := make([][]string, len(waves)+1)
	for _, o := range observed {
		i, known := wave[o.Role]
		if !known {
			i = len(waves)
		}
		names[i] = append(names[i], o.Name)
	}
	var filled [][]string
	for _, wave := range names {
		if len(wave) > 0 {
			filled = append(filled, wave)
		}
	}
	return filled
}
