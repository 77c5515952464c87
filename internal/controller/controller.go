// Package controller is the resident process of a cluster that acts between two applies: it ends the remaining members
// of a group that has completed, enforces deadlines, moves members off lost hosts, restarts groups as a whole, records
// which GPUs of pools can't be used, applies autoscaling policies, and starts the runs of sweeps.
//
// It keeps no state of its own. All that it knows is read from the engine, or stored with the cluster, so it may die at
// any point.
package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/metrics"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// afterFault is how soon the controller retries after an engine call failed.
	afterFault = 2 * time.Second
	// atLatest is how soon it looks again without an event.
	atLatest = time.Hour
)

// Options are specific to where a controller runs.
type Options struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Metrics is the address that serves /metrics, see [telemetry.ListenWithin]; "" for none.
	Metrics string
}

// Run acts as the controller of an engine's cluster until ctx is done. It has released its locks when it returns, as
// the next controller would otherwise have to wait for their leases to expire.
func Run(ctx context.Context, e engine.Engine, options Options, log *slog.Logger) error {
	shown := newBoard()
	if options.Metrics != "" {
		running := newRoster(ctx, e, options.Cluster, log).running
		go metrics.Serve(ctx, options.Metrics, metrics.ControllerHandler(shown.statuses, running), log)
	}
	var duties sync.WaitGroup
	duties.Go(func() {
		for ctx.Err() == nil {
			if err := e.Guard(ctx); err != nil {
				log.Error("guarding the engine failed; trying again", "error", err)
			}
			pause(ctx, afterFault)
		}
	})
	duties.Go(func() { again(ctx, e, log, watchGPUs) })
	followPolicies := func(
		ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger,
	) error {
		return watchScaling(ctx, r, events, log, shown)
	}
	duties.Go(func() { again(ctx, e, log, followPolicies) })
	duties.Go(func() { again(ctx, e, log, followSweeps(ctx, log)) })
	duties.Go(func() { again(ctx, e, log, watch) })
	duties.Wait()
	return nil
}

// duty is work to do after each change, until the event stream ends.
type duty func(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error

// again runs a duty until ctx is done, with a new event stream whenever one ends.
func again(ctx context.Context, e engine.Engine, log *slog.Logger, do duty) {
	for ctx.Err() == nil {
		if err := attend(ctx, e, log, do); err != nil && ctx.Err() == nil {
			log.Error("watching the cluster failed; trying again", "error", err)
			pause(ctx, afterFault)
		}
	}
}

func attend(ctx context.Context, e engine.Engine, log *slog.Logger, do duty) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.Watch(ctx)
	if err != nil {
		return err
	}
	return do(ctx, reconcile.Reconciler{Engine: e, Controller: true}, events, log)
}

// watch looks after the groups.
func watch(ctx context.Context, r reconcile.Reconciler, events <-chan struct{}, log *slog.Logger) error {
	logged := faults{}
	for {
		start := time.Now()
		next := keepAll(ctx, r, log, logged)
		engine.ResidentPace.Rest(ctx, start)
		if err := engine.Await(ctx, events, next); err != nil {
			return err
		}
	}
}

// everything is the key for faults that concern no single group or policy.
const everything = ""

// faults are the last logged faults by group, so that each fault is logged once.
type faults map[string]string

// news reports whether a group's fault, or the end of one, is new.
func (f faults) news(group string, fault error) bool {
	text := ""
	if fault != nil {
		text = fault.Error()
	}
	known := f[group] == text
	f[group] = text
	return !known
}

// keepAll does what the groups need now, and returns when the next group needs something without an event.
func keepAll(ctx context.Context, r reconcile.Reconciler, log *slog.Logger, logged faults) (next time.Time) {
	next = time.Now().Add(atLatest)
	once := reconcile.Reconciler{Engine: r.Engine.Snapshot(), Controller: true}
	pending, err := once.Pending(ctx, time.Now())
	if err != nil {
		log.Error("reconciling groups failed; trying again", "error", err)
		next = time.Now().Add(afterFault)
	}
	for _, p := range pending {
		due := p.Due
		if !due.After(time.Now()) {
			due, err = r.Keep(ctx, p.Group)
			if logged.news(p.Group, err) && err != nil {
				log.Error("reconciling a group failed; trying again", "group", p.Group, "error", err)
			}
			if err != nil {
				due = time.Now().Add(afterFault)
			}
		}
		if !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	return next
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
