package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// fulfil carries out users' requests for runs, and returns when to try again what failed; zero if nothing did. A
// request is deleted after its effect is stored, so that a successor repeats an interrupted one, which is idempotent.
func (s *sweeper) fulfil(
	ctx context.Context, requests map[string]domain.SweepRequest, now time.Time,
) (again time.Time, err error) {
	if len(requests) == 0 {
		return again, nil
	}
	var done, pause, resume []granted
	for _, request := range requests {
		g := s.grant(request, now)
		switch {
		case g.after.State == domain.RunPaused && g.after.Active():
			if !s.reconciler.Engine.Traits().Supports.Pause {
				g.follows = nil // it has started since it was asked for, and goes on
				done = append(done, g)
				continue
			}
			pause = append(pause, g)
		case g.before.Active() && (g.before.State == domain.RunPaused || g.request.Want == domain.WishResume):
			resume = append(resume, g) // even one that is to end, or that an earlier request may have paused in vain
		default:
			done = append(done, g)
		}
	}
	paused, failed := carriedOut(ctx, s.reconciler.Engine, pause, engine.Pause)
	resumed, failedToo := carriedOut(ctx, s.reconciler.Engine, resume, engine.Continue)
	done = slices.Concat(done, paused, resumed)
	failed = errors.Join(failed, failedToo)
	if failed != nil { // other runs, and other sweeps, don't wait for these
		again = now.Add(afterFault)
	}
	if s.logged.news("requests", failed) && failed != nil {
		s.log.Error("pausing or resuming runs failed; trying again", "error", failed)
	}
	for _, g := range done {
		if g.follows != nil {
			s.remember(g.follows, g.request.Run, g.after, now)
		}
	}
	if err := s.store(ctx); err != nil {
		return again, err
	}
	for _, g := range done {
		if err := engine.Delete[domain.SweepRequest](ctx, s.reconciler.Engine, g.request.Key()); err != nil {
			return again, err
		}
	}
	return again, nil
}

// carriedOut makes an engine pause or continue runs, and returns those for which that did not fail.
func carriedOut(
	ctx context.Context, e engine.Engine, of []granted,
	do func(ctx context.Context, e engine.Engine, names []string) error,
) (done []granted, err error) {
	var names []string
	for _, g := range of {
		names = append(names, domain.RunName(g.request.Sweep, g.request.Run))
	}
	if len(of) == 0 || do(ctx, e, names) == nil {
		return of, nil
	}
	var errs []error
	for i, g := range of { // the others don't wait for one that fails
		if err := do(ctx, e, names[i:i+1]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", names[i], err))
			continue
		}
		done = append(done, g)
	}
	return done, errors.Join(errs...)
}

// granted is a request for a run with what becomes of the run. follows is nil if nothing does.
type granted struct {
	request       domain.SweepRequest
	follows       *followedSweep
	before, after domain.Run
}

// grant returns what becomes of a run by a request.
func (s *sweeper) grant(request domain.SweepRequest, now time.Time) granted {
	f := s.sweeps[request.Sweep]
	if f == nil || f.document.ID != request.ID || f.document.Ending {
		return granted{request: request} // it is gone
	}
	if _, found := f.spec.Runs[request.Run]; !found {
		return granted{request: request} // it is gone
	}
	before := f.record.Runs()[request.Run]
	after := sweep.Wished(f.document, f.spec.Run(request.Run), before, request.Want, request.By, now)
	return granted{request, f, before, after}
}
