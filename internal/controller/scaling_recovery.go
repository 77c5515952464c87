package controller

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// recover records a change that was carried out without being recorded, by a controller that died or got no answer, and
// accounts for the time in which no controller decided.
func (s *scaler) recover(f *followed, observation reconcile.Observation, seen autoscale.Seen, now time.Time) {
	policy := f.document.Spec
	last := observation.Groups[policy.Group].Scaled[policy.Role]
	if f.missesChange(last) {
		if s.unnoted(policy.Key(), last) {
			e := madeBy(policy.Key(), last)
			e.OutcomeWhy = "carried out, but not recorded at the time"
			s.history.Add(e)
		}
		f.autoscaler.Changed(&f.state, last.At, last.From, last.To)
		s.changed = true
	}
	if f.restored {
		f.restored = false
		f.autoscaler.Resume(&f.state, now, seen.Count)
	}
}

// missesChange reports whether a policy does not know of its role's last change, made since it began to decide.
func (f *followed) missesChange(last domain.Scaled) bool {
	since := f.state.Since
	return !f.changing && !since.IsZero() && !last.At.Before(since) && last.At.After(f.state.LastChange)
}

// unnoted reports whether a change that this controller has not recorded is missing in the history that it read.
func (s *scaler) unnoted(key string, last domain.Scaled) bool {
	return last.At.Sub(s.scaledAt[key]) > time.Millisecond // precision of the history
}

// madeBy returns the entry for a change of which only the role's record is known.
func madeBy(policy string, last domain.Scaled) autoscale.Entry {
	return autoscale.Entry{
		Policy: policy, At: last.At, Until: last.At, Decisions: 1, From: last.From, To: last.To, Ready: last.From,
		Changed: []string{last.Why}, Outcome: autoscale.OutcomeDone,
	}
}
