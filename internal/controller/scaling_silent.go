package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// silentAsks is after how many intervals without a value users are warned of a guard: what it
// asks may be about to start.
const silentAsks = 12

// silent are the guards of a policy that have never had a value, as stored with the cluster.
type silent struct {
	stored domain.SilentGuardsDocument
	kept   time.Time
}

// recallSilent reads which guards have never had a value, as the former controller stored it. It skips
// documents that can't be read.
func (s *scaler) recallSilent(ctx context.Context) error {
	found, err := s.reconciler.Engine.List(ctx, domain.SilentGuardsKind)
	if err != nil {
		return fmt.Errorf("reading which guards have never had a value: %w", err)
	}
	for _, item := range found {
		var stored domain.SilentGuardsDocument
		if err := json.Unmarshal(item.Data, &stored); err != nil {
			s.log.Error("some stored guard states are unreadable; continuing without them", "error",
				fmt.Errorf("%s: %w", item.Key, err))
			stored.Guards = nil
		}
		stored.Policy, stored.Revision = item.Name, item.Revision
		if s.followed[item.Name] == nil {
			s.followed[item.Name] = &followed{restored: true, calls: newHookCalls(s.reconciler.Engine, item.Name)}
		}
		s.followed[item.Name].silent.stored = stored
	}
	return nil
}

// noteSilent stores which guards of a policy have not had a value for a while, if that differs from what is stored.
func (s *scaler) noteSilent(ctx context.Context, f *followed, guards []autoscale.Guarded, now time.Time) error {
	policy, u := f.document.Spec, &f.silent
	var found []domain.SilentGuard
	for _, g := range guards {
		if !g.NeverSince.IsZero() && now.Sub(g.NeverSince) >= silentAsks*policy.Every() {
			found = append(found,
				domain.SilentGuard{Name: g.Name, What: g.What, Since: g.NeverSince.UTC().Round(0), Why: g.Why})
		}
	}
	same := func(a, b domain.SilentGuard) bool {
		return a.Name == b.Name && a.What == b.What && a.Since.Equal(b.Since)
	}
	switch {
	case len(found) == 0:
		return s.forgetSilent(ctx, f)
	case slices.Equal(u.stored.Guards, found),
		slices.EqualFunc(u.stored.Guards, found, same) && now.Sub(u.kept) < keepEvery:
		return nil // only the reason has changed, which it may do all the time
	}
	next := u.stored
	next.Policy, next.Guards = policy.Key(), found
	stored, err := engine.Put(ctx, s.reconciler.Engine, next)
	if err != nil {
		return fmt.Errorf("storing which guards have never had a value: %w", err)
	}
	u.stored, u.kept = stored, now
	return nil
}

// forgetSilent deletes the stored guards without a value.
func (s *scaler) forgetSilent(ctx context.Context, f *followed) error {
	stored := &f.silent.stored
	if stored.Revision == 0 {
		return nil
	}
	if err := engine.Delete[domain.SilentGuardsDocument](ctx, s.reconciler.Engine, stored.Policy); err != nil {
		return fmt.Errorf("forgetting which guards have never had a value: %w", err)
	}
	*stored = domain.SilentGuardsDocument{}
	return nil
}
