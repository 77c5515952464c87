package reconcile

import (
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
	// Spec has the runs.
	Spec domain.Sweep
	// Runs is what is remembered of runs; nil where that was not asked for.
	Runs map[string]domain.Run
	// Parallelism is what is stored of how many side by side finish most, where that was asked for, too.
	Parallelism domain.SweepParallelism
}

// SweepLock returns the name of the lock that is held by who changes a sweep, or starts runs of it.
func SweepLock(sweep string) string { return "sweep " + sweep }

// sweepLooks bounds how often a sweep is read anew because it was changed meanwhile.
const sweepLooks = 10

// Sweep returns a sweep as it is declared, or [engine.ErrNotFound]. It takes a constant number of engine calls. One
// that a destroy left half way may lack runs.
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
	return found, fmt.Errorf("sweep %q is there, but not all of its runs are: apply it again to store them anew", name)
}

// SweepRuns returns a sweep with what is remembered of its runs, or [engine.ErrNotFound].
func (r Reconciler) SweepRuns(ctx context.Context, name string) (Sweep, error) {
	found, err := r.Sweep(ctx, name)
	if err != nil {
		return found, err
	}
	if found.Runs, err = r.remembered(ctx, found.Document); err != nil || found.Spec.Progress == nil {
		return found, err
	}
	found.Parallelism, err = engine.Get[domain.SweepParallelism](ctx, r.Engine, name)
	if errors.Is(err, engine.ErrNotFound) {
		err = nil // nothing was measured yet
	}
	return found, err
}

// remembered returns what is remembered of a sweep's runs, by their keys.
func (r Reconciler) remembered(ctx context.Context, doc domain.SweepDocument) (map[string]domain.Run, error) {
	records, err := engine.List[domain.SweepRecord](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	return sweep.Remembered(doc, records), nil
}

// occupiedBySweeps returns what the active runs of all sweeps take up, as the documents of groups.
func (r Reconciler) occupiedBySweeps(ctx context.Context) (map[string]domain.GroupDocument, error) {
	sweeps, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil || len(sweeps) == 0 {
		return nil, err
	}
	records, err := engine.List[domain.SweepRecord](ctx, r.Engine)
	if err != nil {
		return nil, err
	}
	occupied := make(map[string]domain.GroupDocument, len(sweeps))
	for name, doc := range sweeps {
		occupied[name] = sweep.Occupancy(doc.Spec, sweep.Remembered(doc, records))
	}
	return occupied, nil
}

// SweepPlan is what an apply of a sweep would do.
type SweepPlan struct {
	// Total is the number of runs, New that of those that are not there yet, and Gone that of those that will no longer
	// be.
	Total, New, Gone int
	// Reruns is the number of runs that were started before, and start anew.
	Reruns int
	// Lost are the keys of those among them that start anew as their results are gone.
	Lost []string
}

// CheckSweep returns what an apply of a sweep would do, and what is in its way on a cluster as it is, or is planned to
// be.
func (r Reconciler) CheckSweep(ctx context.Context, view View, spec domain.Sweep) (plan SweepPlan, problems domain.Problems, err error) {
	if problems = sweep.Validate(spec); problems.Err() != nil {
		return plan, problems, nil
	}
	plan.Total = len(spec.Runs)
	stored, err := r.SweepRuns(ctx, spec.Name)
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
		problems.Add(domain.Path{"name"}, "Name in use", "cluster %q has a group %q; choose another name: the runs of a sweep are members of a group of its name", spec.Cluster, spec.Name)
	}
	if spec.OnFinish != nil {
		checkProgram(&problems, view.Traits, domain.Path{"on_finish", "command"}, spec.OnFinish.Command, "url")
	}
	problems = append(problems, sweep.CheckResults(spec, siteFor(view.Traits, nil), view.Traits.Name)...)
	problems = append(problems, r.checkRuns(view, spec)...)
	preflight, err := r.preflightSweep(ctx, view, spec)
	return plan, append(problems, preflight...), err
}

// checkRuns checks what runs need against the cluster when nobody else is there, and their names.
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
			problems.Add(domain.Path{"runs", domain.Key(key)}, "Member name in use", "the run would be called %q, which is the name of %s; choose another key, or another name for the sweep", name, whose)
		}
	}
	return append(problems, sweep.Fits(spec, siteOf(view))...)
}

// siteOf returns the cluster as a sweep's runs find it.
func siteOf(view View) sweep.Cluster {
	return sweep.Cluster{
		Hosts: view.Inventory.Hosts, SharedAddress: view.Traits.MemberAddress == nil, Images: view.Traits.Supports.Images, BusyPorts: view.Inventory.BusyPorts, Closed: view.Inventory.Closed,
		Reserved: view.Inventory.Reserved, Room: view.Inventory.Addresses, Pools: view.Pools, Groups: sized(view.Groups),
	}
}

// preflightSweep asks the engine about one run on each host that may have it, as all others differ in their environment
// alone.
func (r Reconciler) preflightSweep(ctx context.Context, view View, spec domain.Sweep) (domain.Problems, error) {
	if len(view.Inventory.Hosts) == 0 {
		return nil, nil // which is said by Fits
	}
	problems := view.Traits.CheckResidents(domain.Path{"cluster"})
	var specs []domain.MemberSpec
	for _, host := range slices.Sorted(maps.Keys(sweep.HostsFor(spec, siteOf(view)))) {
		assigned := domain.Assignment{Host: host, Port: 1}
		if spec.GPUs != nil {
			assigned.GPUs = domain.DeviceSet(view.Pools[spec.GPUs.Pool].Devices[host][0].UUID)
		}
		rendered, err := sweep.Spec(spec, spec.Keys()[0], domain.Run{Assignment: &assigned}, siteFor(view.Traits, view.Inventory.Hosts))
		if err != nil {
			return nil, err
		}
		specs = append(specs, r.withoutArriving(rendered))
		problems = append(problems, view.Traits.CheckMember(rendered)...)
	}
	found, err := r.Engine.Preflight(ctx, specs)
	return sweep.OfRuns(append(problems, found...).Distinct()), err
}

// PutSweep makes a sweep be as specified: the controller starts its runs. A new one must not be there yet, but as
// specified (adopted is true then: its creation went unrecorded).
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
		// A destroy died. What the runs left stays for those that come now, as it may not have been collected.
		stored.Document.Spec.Results = nil
		if err := r.endSweep(ctx, spec.Name, stored.Document, nil); err != nil {
			return false, err
		}
		stored = Sweep{}
	case created && (err != nil || !stored.Spec.Equal(spec)):
		return false, fmt.Errorf("cluster %q already has a sweep %q with another specification; choose another name, or import it: terraform import <address> %s",
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
	// Before the controller sees it, which has nothing to show to registries.
	if err := engine.KeepRegistryLogins(ctx, r.Engine, spec.Name, sweep.GroupOf(spec, spec.Keys()[0]).PulledImages()); err != nil {
		return adopted, err
	}
	if err := r.storeSweep(ctx, stored.Document, spec, plan.Lost); err != nil {
		return adopted, err
	}
	r.pruneFilesAfter(ctx)
	return adopted, r.Engine.StartController(ctx)
}

// storeSweep stores a sweep in the place of another one, the zero one for none: its runs first, so that whoever finds
// the sweep finds those. Some of them start anew in any case.
func (r Reconciler) storeSweep(ctx context.Context, stored domain.SweepDocument, spec domain.Sweep, anew []string) error {
	bare, chunks, err := sweep.Split(spec)
	if err != nil {
		return err
	}
	next := domain.SweepDocument{Spec: bare, Count: len(spec.Runs)}
	for _, chunk := range chunks {
		if _, err := engine.Put(ctx, r.Engine, chunk); err != nil && !errors.Is(err, engine.ErrConflict) { // it is there already
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
	r.say(ctx, spec.Name, "sweep is stored", slog.Int("runs", next.Count))
	if next, err = engine.Put(ctx, r.Engine, next); err != nil {
		return err
	}
	return r.pruneRuns(ctx, next)
}

// pruneRuns removes the chunks that a sweep no longer has.
func (r Reconciler) pruneRuns(ctx context.Context, doc domain.SweepDocument) error {
	return r.deleteOf(ctx, domain.SweepRunsKind, doc.Spec.Name, func(chunk string) bool { return !slices.Contains(doc.Chunks, chunk) })
}

// deleteOf deletes items of a kind that are a sweep's, where the second parts of their names are among those.
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

// AwaitSweep returns when all runs of a sweep have ended. Those that did not succeed are an [*UnsuccessfulError].
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
		return fmt.Errorf("sweep %q goes on, with %s: %w", name, last, context.Cause(ctx))
	}
	if err == nil && last.Counts[domain.RunSucceeded] < last.Total {
		return &UnsuccessfulError{name, last}
	}
	return err
}

// UnsuccessfulError is returned where runs of a sweep did not succeed.
type UnsuccessfulError struct {
	Sweep   string
	Summary sweep.Summary
}

// Error counts the runs, and names some that did not succeed, with their reasons.
func (e *UnsuccessfulError) Error() string {
	return fmt.Sprintf("sweep %q has ended with %s: %s", e.Sweep, e.Summary, e.Summary.Unsuccessful)
}

// Collect takes what the runs of a sweep left, which have ended, before it goes.
type Collect func(ctx context.Context, found Sweep) error

// DeleteSweep ends a sweep's runs, and forgets it with all that is remembered of them. Without one it does nothing.
// Where collect is not nil, it is called in between.
func (r Reconciler) DeleteSweep(ctx context.Context, name string, collect Collect) (err error) {
	release, err := r.lock(ctx, SweepLock(name), "destroy of sweep "+name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // there is not even a cluster
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

// endSweep ends a sweep whose lock is held, so that nobody starts another run.
func (r Reconciler) endSweep(
	ctx context.Context, name string, doc domain.SweepDocument, collect Collect,
) (err error) {
	if !doc.Ending {
		doc.Ending = true
		if _, err = engine.Put(ctx, r.Engine, doc); err != nil {
			return err
		}
	}
	// Nobody gives way to it any more. It is the sweep's: a group of its name can't be.
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
			return err // the sweep is there, and what its runs left, so that another destroy collects it
		}
	}
	if results := doc.Spec.Results; results != nil && results.OnDestroy == domain.DeleteResults {
		if err := r.removeResults(ctx, doc); err != nil {
			return err
		}
	}
	for _, kind := range []domain.Kind{domain.SweepRequestKind, domain.SweepLogKind, domain.SweepRecordKind, domain.SweepParallelismKind, domain.SweepRunsKind} {
		if err := r.deleteOf(ctx, kind, name, func(string) bool { return true }); err != nil {
			return err
		}
	}
	return engine.Delete[domain.SweepDocument](ctx, r.Engine, name)
}
