package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// runsRetry is how soon to try again without an event to start runs that others yield to.
const runsRetry = time.Second

// StartedRun is a run of a sweep that is being started.
type StartedRun struct {
	sweep.Admitted

	Run domain.Run
}

// SweepKeeper stores the state of runs; it is the controller.
type SweepKeeper interface {
	// Batch returns the number of a sweep's next batch of starts, which is higher than all before.
	Batch(sweep string) int
	// KeepStarts stores runs as started, before any of them starts.
	KeepStarts(ctx context.Context, started []StartedRun) error
}

// StartRuns starts as many waiting runs of sweeps as there is room for, and returns what was decided. If somebody else
// holds the allocation lock, it returns false, and should be called again soon.
func (r Reconciler) StartRuns(
	ctx context.Context, queues []sweep.Queue, keeper SweepKeeper,
) (admission sweep.Admission, free bool, err error) {
	var specs []domain.Sweep
	for _, q := range queues {
		specs = append(specs, q.Spec)
	}
	measured, err := r.Measure(ctx, specs...)
	if err != nil {
		return admission, false, err
	}
	var locks []func() error
	defer func() {
		for _, release := range locks {
			err = errors.Join(err, release())
		}
	}()
	for i, q := range queues {
		if q.Held != "" || !q.Waits() {
			continue
		}
		release, free, err := r.tryLock(ctx, SweepLock(q.Spec.Name), "start of runs of sweep "+q.Spec.Name)
		switch {
		case err != nil:
			return admission, false, err
		case free:
			locks = append(locks, release)
		default:
			queues[i].Held = "it is being changed"
		}
	}
	admission, started, free, err := r.admitRuns(ctx, queues, measured, keeper)
	if err != nil || len(started) == 0 {
		return admission, free, err
	}
	return admission, free, r.launch(ctx, queues, started)
}

// tryLock takes a lock without waiting; it returns false if somebody else holds it.
func (r Reconciler) tryLock(ctx context.Context, name, operation string) (release func() error, free bool, err error) {
	release, err = r.Engine.Lock(ctx, name, r.holder(operation))
	if _, locked := errors.AsType[*engine.LockedError](err); locked {
		return nil, false, nil
	}
	return release, err == nil, err
}

// admitRuns decides under the allocation lock which runs start, and has the keeper store that.
func (r Reconciler) admitRuns(
	ctx context.Context, queues []sweep.Queue, measured Measured, keeper SweepKeeper,
) (admission sweep.Admission, started []StartedRun, free bool, err error) {
	release, free, err := r.tryLock(ctx, allocationLock, "start of runs of sweeps")
	if err != nil || !free {
		return admission, nil, free, err
	}
	defer func() { err = errors.Join(err, release()) }()
	docs, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil {
		return admission, nil, free, err
	}
	byName := make(map[string]sweep.Queue, len(queues))
	for i, q := range queues {
		if now := docs[q.Spec.Name]; now.Revision != q.Document.Revision || now.ID != q.Document.ID {
			queues[i].Held = "it has just been changed"
		}
		byName[q.Spec.Name] = q
	}
	room, err := r.RoomForSweeps(ctx, queues, measured)
	if err != nil {
		return admission, nil, free, err
	}
	now := time.Now().UTC()
	admission = sweep.Admit(room, queues, now)
	news, err := r.requestRoom(ctx, queues, admission.Requests)
	if err != nil {
		return admission, nil, free, err
	}
	if news || slices.ContainsFunc(room.Claims, func(c sweep.Claim) bool { return c.Request.Sweep }) {
		admission.Wake(now.Add(runsRetry)) // somebody may yield
	}
	at := siteFor(r.Engine.Traits(), nil)
	for _, a := range admission.Starts {
		q := byName[a.Sweep]
		run := sweep.Start(q.Document, q.Spec.Run(a.Key), q.Runs[a.Key], a.At, keeper.Batch(a.Sweep), now)
		run.Results = sweep.ResultsOf(q.Spec, a.Key, at)
		started = append(started, StartedRun{a, run})
	}
	if len(started) > 0 {
		err = keeper.KeepStarts(ctx, started)
	}
	return admission, started, free, err
}

// siteFor returns how members of a cluster with these hosts are reached, and where they find and leave files.
func siteFor(traits engine.Traits, hosts map[string]domain.Host) sweep.Site {
	return sweep.Site{FilesDir: traits.FilesOf, WorkDir: traits.WorkDir, InContainer: traits.InContainer,
		Address: func(member, host string) string {
			if traits.MemberAddress != nil {
				return traits.MemberAddress(member)
			}
			return hosts[host].MemberAddress()
		}}
}

// launch makes the engine start the runs, those of each sweep at once.
func (r Reconciler) launch(ctx context.Context, queues []sweep.Queue, started []StartedRun) error {
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return err
	}
	at := siteFor(r.Engine.Traits(), cluster.Spec.Hosts)
	var failed error
	for _, q := range queues {
		failed = errors.Join(failed, r.launchOf(ctx, q, started, at))
	}
	return failed
}

func (r Reconciler) launchOf(ctx context.Context, q sweep.Queue, started []StartedRun, at sweep.Site) error {
	var specs []domain.MemberSpec
	for _, run := range started {
		if run.Sweep != q.Spec.Name {
			continue
		}
		spec, err := sweep.Spec(q.Spec, run.Key, run.Run, at)
		if err != nil {
			return &LaunchError{q.Spec.Name, err}
		}
		specs = append(specs, spec)
	}
	if len(specs) == 0 {
		return nil
	}
	r.say(ctx, q.Spec.Name, "starting runs", slog.Int("runs", len(specs)))
	err := r.Engine.Stage(ctx, specs)
	// Runs don't depend on each other: a host that can't take its own holds up no other.
	if ctx.Err() == nil {
		err = cmp.Or(err, r.Engine.Start(ctx, q.Spec.Name, specs[0].Run))
	}
	if err != nil {
		return &LaunchError{q.Spec.Name, err}
	}
	return nil
}

// LaunchError means that an engine did not start runs of a sweep.
type LaunchError struct {
	Sweep string
	Err   error
}

// Error names the sweep and the engine's error.
func (e *LaunchError) Error() string {
	return fmt.Sprintf("starting runs of sweep %q: %v", e.Sweep, e.Err)
}

// Unwrap returns the engine's error.
func (e *LaunchError) Unwrap() error { return e.Err }
