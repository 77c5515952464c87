package controller

import (
	"context"
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
		case g.before.State == domain.RunPaused && g.before.Active():
			resume = append(resume, g) // even one that is to end
		default:
			done = append(done, g)
		}
	}
	for _, c := range []struct {
		of []granted
		do func(ctx context.Context, e engine.Engine, names []string) error
	}{{pause, engine.Pause}, {resume, engine.Continue}} {
		if len(c.of) == 0 {
			continue
		}
		var names []string
		for _, g := range c.of {
			names = append(names, domain.RunName(g.request.Sweep, g.request.Run))
		}
		if err := c.do(ctx, s.reconciler.Engine, names); err != nil {
			// The other runs, and other sweeps, don't wait for it.
			s.log.Error("pausing or resuming runs failed; trying again", "runs", names, "error", err)
			again = now.Add(afterFault)
			continue
		}
		done = append(done, c.of...)
	}
	for _, g := range done {
		if g.follows != nil {
			s.remember(g.follows, g.request.Run, g.after)
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
