package reconcile

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// Sweep is a sweep as it was read.
type Sweep struct {
	Document domain.SweepDocument
	// Spec includes the runs.
	Spec domain.Sweep
	// Runs is the stored state of the runs; nil if it was not read.
	Runs map[string]domain.Run
	// Parallelism is the stored search for the best number of parallel runs, if it was read.
	Parallelism domain.SweepParallelism
}

// SweepLock returns the name of the lock for changing a sweep or starting its runs.
func SweepLock(sweep string) string { return "sweep " + sweep }

// sweepLooks bounds how often a sweep is read again because it was changed meanwhile.
const sweepLooks = 10

// ErrRunsMissing means that runs of a sweep were lost from the store. The others are returned with it.
var ErrRunsMissing = errors.New("some of its runs are missing")

// Sweep returns a sweep as declared, or [engine.ErrNotFound]. It takes a constant number of engine calls. A sweep whose
// destroy was interrupted may lack runs; any other that does is an [ErrRunsMissing].
func (r Reconciler) Sweep(ctx context.Context, name string) (found Sweep, err error) {
	store := engine.Store(r.Engine)
	for range sweepLooks {
		if found.Document, err = engine.Get[domain.SweepDocument](ctx, store, name); err != nil {
			return found, err
		}
		chunks, err := engine.List[domain.SweepRuns](ctx, store)
		if err != nil {
			return found, err
		}
		var missing []string
		if found.Spec, missing = sweep.Join(found.Document, chunks); len(missing) == 0 || found.Document.Ending {
			return found, nil
		}
	}
	return found, fmt.Errorf("sweep %q exists, but %w: apply it alone to restore them (-target)", name, ErrRunsMissing)
}

// SweepRuns returns a sweep with the state of its runs, or an error as [Reconciler.Sweep] does.
func (r Reconciler) SweepRuns(ctx context.Context, name string) (Sweep, error) {
	found, incomplete := r.Sweep(ctx, name)
	if incomplete != nil && !errors.Is(incomplete, ErrRunsMissing) {
		return found, incomplete
	}
	var err error
	if found.Runs, err = r.remembered(ctx, found.Document); err == nil && found.Spec.Progress != nil {
		found.Parallelism, err = engine.Get[domain.SweepParallelism](ctx, r.Engine, name)
		if errors.Is(err, engine.ErrNotFound) {
			err = nil // nothing measured yet
		}
	}
	return found, cmp.Or(err, incomplete)
}

// AllSweeps returns the sweeps of a cluster with the state of their runs, by name, without those destroyed meanwhile.
func (r Reconciler) AllSweeps(ctx context.Context) (map[string]Sweep, error) {
	documents, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	sweeps := make(map[string]Sweep, len(documents))
	for name := range documents {
		found, err := r.SweepRuns(ctx, name)
		if errors.Is(err, engine.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sweeps[name] = found
	}
	return sweeps, nil
}

// remembered returns the stored state of a sweep's runs, by key.
func (r Reconciler) remembered(ctx context.Context, doc domain.SweepDocument) (map[string]domain.Run, error) {
	records, err := engine.List[domain.SweepRecord](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	return sweep.Remembered(doc, records), nil
}

// occupiedBySweeps returns what the runs of all sweeps occupy, as group documents: the active ones, and those whose
// members have yet to end. It observes members only if there may be such.
func (r Reconciler) occupiedBySweeps(ctx context.Context) (map[string]domain.GroupDocument, error) {
	sweeps, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil || len(sweeps) == 0 {
		return nil, err
	}
	records, err := engine.List[domain.SweepRecord](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	occupied, queues := make(map[string]domain.GroupDocument, len(sweeps)), map[string]sweep.Queue{}
	unsure := map[string]domain.GroupDocument{}
	for name, doc := range sweeps {
		q := sweep.Queue{
			Spec: doc.Spec, Runs: sweep.Remembered(doc, records), Leaving: map[string]domain.Assignment{},
		}
		occupied[name] = q.Occupancy()
		if q.MayLeave() {
			queues[name], unsure[name] = q, occupied[name]
		}
	}
	if len(unsure) == 0 {
		return occupied, nil
	}
	members, err := r.observeAll(ctx, unsure)
	for name, observed := range members {
		q := queues[name]
		for _, o := range observed {
			if run := q.Runs[o.Role]; !run.Active() {
				q.Leaving[o.Role] = sweep.LeavingAt(o, run)
			}
		}
		occupied[name] = q.Occupancy()
	}
	return occupied, err
}

// SweepPlan is what an apply of a sweep would do.
type SweepPlan struct {
	// Total is the number of runs, New of those to be added, and Gone of those to be removed.
	Total, New, Gone int
	// Reruns is the number of runs that have been started before and start again.
	Reruns int
	// Lost are the keys of those that start again because their results are gone.
	Lost []string
}

// CheckSweep returns what an apply of a sweep would do, and what prevents it on the cluster as it
// is, or is planned to be.
func (r Reconciler) CheckSweep(
	ctx context.Context, view View, spec domain.Sweep,
) (plan SweepPlan, problems domain.Problems, err error) {
	if problems = sweep.Validate(spec); problems.Err() != nil {
		return plan, problems, nil
	}
	plan.Total = len(spec.Runs)
	stored, err := r.SweepRuns(ctx, spec.Name)
	if errors.Is(err, ErrRunsMissing) {
		err = nil // the apply adds them
	}
	if err != nil && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrNotFormed) {
		return plan, problems, err
	}
	if err == nil {
		next := sweep.Change(stored.Document, domain.SweepDocument{Spec: sweep.WithoutRuns(spec)})
		if plan.Lost, err = r.LostResults(ctx, stored); err != nil {
			return plan, problems, err
		}
		next = sweep.Again(stored.Document, next, plan.Lost)
		plan.Reruns = sweep.Reruns(next, spec, stored.Runs)
		for key := range stored.Spec.Runs {
			if _, stays := spec.Runs[key]; !stays {
				plan.Gone++
			}
		}
		plan.New = plan.Total - (len(stored.Spec.Runs) - plan.Gone)
	} else {
		plan.New = plan.Total
	}
	if _, taken := view.Groups[spec.Name]; taken {
		problems.Add(domain.Path{"name"}, "Name in use",
			"cluster %q has a group %q; choose another name: the runs of a sweep are members of a group of that name",
			spec.Cluster, spec.Name)
	}
	if spec.OnFinish != nil {
		checkProgram(&problems, view.Traits, domain.Path{"on_finish", "command"}, spec.OnFinish.Command, "url")
	}
	problems = append(problems, sweep.CheckResults(spec, siteFor(view.Traits, nil), view.Traits.Name)...)
	problems = append(problems, r.checkRuns(view, spec)...)
	preflight, err := r.preflightSweep(ctx, view, spec)
	return plan, append(problems, preflight...), err
}

// checkRuns checks the names of runs, and whether they fit the cluster when it is empty.
func (r Reconciler) checkRuns(view View, spec domain.Sweep) (problems domain.Problems) {
	names := map[string]string{}
	for group, doc := range view.occupants() {
		if group != spec.Name {
			for member := range doc.Assignments {
				names[member] = group
			}
		}
	}
	for _, key := range spec.Keys() {
		name := domain.RunName(spec.Name, key)
		whose := view.Inventory.Taken[name]
		if group := names[name]; group != "" {
			whose = "a member of group " + group
		}
		if whose != "" {
			problems.Add(domain.Path{"runs", domain.Key(key)}, "Member name in use",
				"the run would be named %q, which is the name of %s; choose another key, or another name for the sweep",
				name, whose)
		}
	}
	return append(problems, sweep.Fits(spec, siteOf(view))...)
}

// siteOf returns the cluster as the runs of a sweep see it.
func siteOf(view View) sweep.Cluster {
	return sweep.Cluster{
		Hosts: view.Inventory.Hosts, SharedAddress: view.Traits.MemberAddress == nil,
		Images: view.Traits.Supports.Images, BusyPorts: view.Inventory.BusyPorts, Closed: view.Inventory.Closed,
		Reserved: view.Inventory.Reserved, Room: view.Inventory.Addresses, Pools: view.Pools,
		Groups: sized(view.Groups),
	}
}

// preflightSweep asks the engine about one run on each eligible host: the others only differ in their environment.
func (r Reconciler) preflightSweep(ctx context.Context, view View, spec domain.Sweep) (domain.Problems, error) {
	if len(view.Inventory.Hosts) == 0 {
		return nil, nil // reported by Fits
	}
	problems := view.Traits.CheckResidents(domain.Path{"cluster"})
	var specs []domain.MemberSpec
	for _, host := range slices.Sorted(maps.Keys(sweep.HostsFor(spec, siteOf(view)))) {
		assigned := domain.Assignment{Host: host, Port: 1}
		if spec.GPUs != nil {
			assigned.GPUs = domain.DeviceSet(view.Pools[spec.GPUs.Pool].Devices[host][0].UUID)
		}
		rendered, err := sweep.Spec(spec, spec.Keys()[0], domain.Run{Assignment: &assigned},
			siteFor(view.Traits, view.Inventory.Hosts))
		if err != nil {
			return nil, err
		}
		specs = append(specs, r.withoutArriving(rendered))
		problems = append(problems, view.Traits.CheckMember(rendered)...)
	}
	found, err := r.Engine.Preflight(ctx, specs)
	return sweep.OfRuns(append(problems, found...).Distinct()), err
}

// PutSweep stores a sweep, whose runs the controller starts. If created is set, an existing sweep is an error unless it
// has the same specification; that one is reported as adopted.
func (r Reconciler) PutSweep(ctx context.Context, spec domain.Sweep, created bool) (adopted bool, err error) {
	if err := sweep.Validate(spec).Err(); err != nil {
		return false, err
	}
	release, err := r.lock(ctx, SweepLock(spec.Name), "apply of sweep "+spec.Name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()

	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return false, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	stored, err := r.Sweep(ctx, spec.Name)
	switch {
	case errors.Is(err, engine.ErrNotFound):
	case stored.Document.Revision == 0:
		return false, err
	case stored.Document.Ending:
		// A destroy was interrupted. Keep the results, as they may not have been collected.
		stored.Document.Spec.Results = nil
		if err := r.endSweep(ctx, spec.Name, stored.Document, nil); err != nil {
			return false, err
		}
		stored = Sweep{}
	case created && (err != nil || !stored.Spec.Equal(spec)):
		return false, fmt.Errorf("cluster %q already has a sweep %q with another specification; choose another name, "+
			"or import it: terraform import <address> %s",
			spec.Cluster, spec.Name, r.Engine.Traits().ImportFrom+domain.GroupID(spec.Cluster, spec.Name))
	default:
		adopted = created
	}
	view, err := r.View(ctx, cluster.Spec, sweep.GroupOf(spec, spec.Keys()[0]))
	if err != nil {
		return false, err
	}
	plan, problems, err := r.CheckSweep(ctx, view, spec)
	if err := errors.Join(err, problems.Err()); err != nil {
		return false, err
	}
	// Before the controller sees the sweep, as it has no registry credentials.
	if err := engine.KeepRegistryLogins(ctx, r.Engine, spec.Name,
		sweep.GroupOf(spec, spec.Keys()[0]).PulledImages()); err != nil {
		return adopted, err
	}
	if err := r.storeSweep(ctx, stored.Document, spec, plan.Lost); err != nil {
		return adopted, err
	}
	r.pruneFilesAfter(ctx)
	return adopted, r.Engine.StartController(ctx)
}

// storeSweep replaces a sweep, or the zero document for a new one. It stores the runs first, so that the document never
// refers to missing ones. The runs in anew start again in any case.
func (r Reconciler) storeSweep(
	ctx context.Context, stored domain.SweepDocument, spec domain.Sweep, anew []string,
) error {
	bare, chunks, err := sweep.Split(spec)
	if err != nil {
		return err
	}
	next := domain.SweepDocument{Spec: bare, Count: len(spec.Runs)}
	for _, chunk := range chunks {
		// exists already
		if _, err := engine.Put(ctx, r.Engine, chunk); err != nil && !errors.Is(err, engine.ErrConflict) {
			return err
		}
		next.Chunks = append(next.Chunks, chunk.Name)
	}
	next = sweep.Again(stored, sweep.Change(stored, next), anew)
	maps.DeleteFunc(next.Anew, func(key string, since int) bool {
		_, stays := spec.Runs[key]
		return !stays || since <= next.MinRun
	})
	if stored.Revision == 0 {
		next.ID, next.Since, next.By = rand.Text(), time.Now().UTC(), who()
	}
	r.say(ctx, spec.Name, "sweep stored", slog.Int("runs", next.Count))
	if next, err = engine.Put(ctx, r.Engine, next); err != nil {
		return err
	}
	return r.pruneRuns(ctx, next)
}

// pruneRuns removes chunks that a sweep no longer uses.
func (r Reconciler) pruneRuns(ctx context.Context, doc domain.SweepDocument) error {
	return r.deleteOf(ctx, domain.SweepRunsKind, doc.Spec.Name,
		func(chunk string) bool { return !slices.Contains(doc.Chunks, chunk) })
}

// deleteOf deletes a sweep's items of a kind if the part of their name after the slash is among those.
func (r Reconciler) deleteOf(ctx context.Context, kind domain.Kind, name string, among func(part string) bool) error {
	items, err := r.Engine.List(ctx, kind)
	if err != nil {
		return err
	}
	for _, item := range items {
		if of, part, _ := strings.Cut(item.Name, "/"); of == name && among(part) {
			if err := r.Engine.Delete(ctx, item.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// AwaitSweep returns once all runs of a sweep have ended. If some did not succeed, it returns an [*UnsuccessfulError].
func (r Reconciler) AwaitSweep(ctx context.Context, name string) error {
	var last sweep.Summary
	err := r.watch(ctx, name, func([]domain.Observed) (bool, time.Time, error) {
		found, err := r.SweepRuns(ctx, name)
		if err != nil {
			return false, time.Time{}, err
		}
		last = sweep.Summarise(found.Document, found.Spec, found.Runs)
		return last.Ended(), time.Now().Add(lookAtLatest), nil
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("sweep %q continues, with %s: %w", name, last, context.Cause(ctx))
	}
	if err == nil && last.Counts[domain.RunSucceeded] < last.Total {
		return &UnsuccessfulError{name, last}
	}
	return err
}

// UnsuccessfulError means that runs of a sweep did not succeed.
type UnsuccessfulError struct {
	Sweep   string
	Summary sweep.Summary
}

// Error counts the runs, and names some that did not succeed, with the reasons.
func (e *UnsuccessfulError) Error() string {
	return fmt.Sprintf("sweep %q has ended with %s: %s", e.Sweep, e.Summary, e.Summary.Unsuccessful)
}

// Collect saves the results of a sweep whose runs have ended, before it is deleted.
type Collect func(ctx context.Context, found Sweep) error

// DeleteSweep ends a sweep's runs, and deletes it with all stored state. It calls collect in between unless that is
// nil. It does nothing if there is no such sweep.
func (r Reconciler) DeleteSweep(ctx context.Context, name string, collect Collect) (err error) {
	release, err := r.lock(ctx, SweepLock(name), "destroy of sweep "+name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // the cluster itself is gone
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	doc, err := engine.Get[domain.SweepDocument](ctx, r.Engine, name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.endSweep(ctx, name, doc, collect)
}

// endSweep deletes a sweep whose lock is held, so that nobody starts another run.
func (r Reconciler) endSweep(
	ctx context.Context, name string, doc domain.SweepDocument, collect Collect,
) (err error) {
	if !doc.Ending {
		doc.Ending = true
		if _, err = engine.Put(ctx, r.Engine, doc); err != nil {
			return err
		}
	}
	// Nobody should yield to it any more. The request is the sweep's, as no group can have its name.
	if err = engine.Delete[domain.RoomRequest](ctx, r.Engine, name); err != nil {
		return err
	}
	observed, err := r.Engine.Observe(ctx, name)
	if err != nil {
		return err
	}
	names := make([]string, len(observed))
	for i, o := range observed {
		names[i] = o.Name
	}
	if len(names) > 0 {
		if err := r.remove(ctx, name, names); err != nil {
			return err
		}
	}
	if err := r.Engine.Prune(ctx, name, nil); err != nil {
		return err
	}
	if collect != nil {
		found, err := r.SweepRuns(ctx, name)
		if err != nil {
			return err
		}
		if err := collect(ctx, found); err != nil {
			return err // keep sweep and results, so that the next destroy can collect them
		}
	}
	if results := doc.Spec.Results; results != nil && results.OnDestroy == domain.DeleteResults {
		if err := r.removeResults(ctx, doc); err != nil {
			return err
		}
	}
	for _, kind := range []domain.Kind{
		domain.SweepRequestKind, domain.SweepLogKind, domain.SweepRecordKind, domain.SweepParallelismKind,
		domain.SweepRunsKind,
	} {
		if err := r.deleteOf(ctx, kind, name, func(string) bool { return true }); err != nil {
			return err
		}
	}
	return engine.Delete[domain.SweepDocument](ctx, r.Engine, name)
}
