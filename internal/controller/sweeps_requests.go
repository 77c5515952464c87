package controller

import (
	"context"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// fulfil carries out users' requests for runs. A request is deleted after its effect is stored, so that a successor
// repeats an interrupted one, which is idempotent.
func (s *sweeper) fulfil(ctx context.Context, requests map[string]domain.SweepRequest, now time.Time) error {
	if len(requests) == 0 {
		return nil
	}
	var pause, resume []string
	for _, request := range requests {
		f := s.sweeps[request.Sweep]
		if f == nil || f.document.ID != request.ID || f.document.Ending {
			continue // it is gone
		}
		if _, found := f.spec.Runs[request.Run]; !found {
			continue // it is gone
		}
		before := f.record.Runs()[request.Run]
		after := sweep.Wished(f.document, f.spec.Run(request.Run), before, request.Want, request.By, now)
		member := domain.RunName(request.Sweep, request.Run)
		switch {
		case after.State == domain.RunPaused && after.Active():
			pause = append(pause, member)
		case before.State == domain.RunPaused && before.Active():
			resume = append(resume, member) // even one that is to end
		}
		s.remember(f, request.Run, after)
	}
	if len(pause) > 0 {
		if err := engine.Pause(ctx, s.reconciler.Engine, pause); err != nil {
			return err
		}
	}
	if len(resume) > 0 {
		if err := engine.Continue(ctx, s.reconciler.Engine, resume); err != nil {
			return err
		}
	}
	if err := s.store(ctx); err != nil {
		return err
	}
	for _, request := range requests {
		if err := engine.Delete[domain.SweepRequest](ctx, s.reconciler.Engine, request.Key()); err != nil {
			return err
		}
	}
	return nil
}
