package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// change is a change of a count that was decided.
type change struct {
	policy   *followed
	decision autoscale.Decision
	entry    autoscale.Entry
	scene    reconcile.Scene
}

// outcome is what came of a change: what was done, where anything was, and what went wrong.
type outcome struct {
	change

	done *domain.Scaled
	err  error
}

// begin carries a change out, beside others. What comes of it is told to the loop.
func (s *scaler) begin(ctx context.Context, c change) {
	spec := c.policy.document.Spec
	c.policy.changing = true
	go func() {
		select {
		case s.changes <- struct{}{}:
			defer func() { <-s.changes }()
		case <-ctx.Done():
			return
		}
		o := outcome{change: c}
		done, short, err := s.carryOut(ctx, spec, c)
		o.err = err
		switch {
		case done.To != done.From:
			o.done = &done
			o.entry.Outcome, o.entry.OutcomeWhy, o.entry.To = autoscale.OutcomeDone, short, done.To
			if err != nil {
				o.entry.OutcomeWhy = fmt.Sprintf("%v; the controller tries again", err) // in the upkeep of the group
			}
		case err != nil:
			o.entry.Outcome, o.entry.OutcomeWhy = outcomeOf(err)
		default:
			o.entry.Outcome, o.entry.OutcomeWhy = autoscale.OutcomeHeld, short
		}
		select {
		case s.outcomes <- o:
		case <-ctx.Done():
		}
	}()
}

// finish takes notice of what came of a change.
func (s *scaler) finish(o outcome) {
	f := o.policy
	f.changing = false
	key := f.document.Spec.Key()
	if o.done != nil {
		f.autoscaler.Changed(&f.state, o.done.At, o.done.From, o.done.To)
		s.changed = true
		s.log.Info("a role was scaled", "policy", key, "from", o.done.From, "to", o.done.To, "why", o.done.Why)
	}
	if o.err != nil && o.entry.Outcome != autoscale.OutcomeHeld {
		s.log.Error("a role could not be scaled as it should; trying again", "policy", key, "from", o.decision.From, "to", o.decision.To, "error", o.err)
	}
	s.note(f.document.Spec, o.entry)
}

// outcomeOf returns what it means that a change was not carried out.
func outcomeOf(err error) (autoscale.Outcome, string) {
	var held *reconcile.HeldError
	var counted *reconcile.CountError
	var stays *staysError
	switch {
	case errors.As(err, &held), errors.As(err, &counted), errors.As(err, &stays):
		return autoscale.OutcomeHeld, err.Error()
	}
	if locked, ok := errors.AsType[*engine.LockedError](err); ok {
		return autoscale.OutcomeHeld, fmt.Sprintf("the group is held by %s (%s)", locked.Holder.Operation, locked.Holder.Who)
	}
	return autoscale.OutcomeFailed, err.Error()
}

// staysError says why members that are to go stay.
type staysError struct{ why string }

// Error returns the reason.
func (e *staysError) Error() string { return e.why }

// carryOut changes a count: members that go are chosen, as far as none of them works, and the user's hook hears of them before.
// Short says why it is not all that was decided.
func (s *scaler) carryOut(ctx context.Context, policy domain.AutoscalingPolicy, c change) (done domain.Scaled, short string, err error) {
	scaling := reconcile.Scaling{Group: policy.Group, Role: policy.Role, From: c.decision.From, To: c.decision.To, At: c.entry.At, Why: c.decision.Why()}
	if scaling.To < scaling.From {
		leaving, err := s.leaving(ctx, policy, c)
		if err != nil {
			return done, "", err
		}
		if stay := scaling.From - scaling.To - len(leaving.members); stay > 0 {
			scaling.To += stay
			short = leaving.why
		}
		scaling.Remove = leaving.members
		if err := drain(ctx, policy, leaving.members, scaling); err != nil {
			return done, "", err
		}
	}
	done, limited, err := s.reconciler.Scale(ctx, scaling)
	return done, cmp.Or(limited, short), err
}

// leaving are the members that go, in their order; why says why they are not as many as asked for.
type leaving struct {
	members []string
	why     string
}

// leaving chooses the members that go by the order of the policy, without those that work.
func (s *scaler) leaving(ctx context.Context, policy domain.AutoscalingPolicy, c change) (leaving, error) {
	var members []domain.Observed
	for _, o := range c.scene.Members[policy.Group] {
		if o.Role == policy.Role {
			members = append(members, o)
		}
	}
	order, err := s.inOrder(ctx, policy.Guards.Remove, members)
	if err != nil {
		return leaving{}, &staysError{fmt.Sprintf("it can't be told which members are to go: %v", err)}
	}
	wanted := c.decision.From - c.decision.To
	working := s.working(ctx, policy, c.scene)
	var gone leaving
	for _, o := range order {
		if len(gone.members) == wanted {
			break
		}
		if why, works := working[o.Name]; works || working == nil {
			gone.why = why
			if chooses(policy.Guards.Remove) {
				continue // another one may be idle
			}
			break
		}
		gone.members = append(gone.members, o.Name)
	}
	if len(gone.members) == 0 {
		return gone, &staysError{cmp.Or(gone.why, "there are no members that could go")}
	}
	return gone, nil
}

// chooses tells whether any member may go, and not only those with the highest indexes.
func chooses(order domain.RemovalOrder) bool {
	return order == domain.RemoveLeastBusy || order == domain.RemoveMostLoadedHost
}

// inOrder returns members in the order in which they go.
func (s *scaler) inOrder(ctx context.Context, order domain.RemovalOrder, members []domain.Observed) ([]domain.Observed, error) {
	byIndex := func(a, b domain.Observed) int { return cmp.Compare(b.Index, a.Index) }
	if !chooses(order) {
		return slices.SortedFunc(slices.Values(members), byIndex), nil
	}
	cpus, hosts, err := s.meter.Loads(ctx)
	if err != nil {
		return nil, err
	}
	load := func(o domain.Observed) float64 {
		if order == domain.RemoveLeastBusy {
			return cpus[o.Name]
		}
		return -hosts[o.Host]
	}
	return slices.SortedFunc(slices.Values(members), func(a, b domain.Observed) int { return cmp.Or(cmp.Compare(load(a), load(b)), byIndex(a, b)) }), nil
}

// working says of the members that work by the signs of the policy's guard, and of those of which it can't be told, why they stay.
func (s *scaler) working(ctx context.Context, policy domain.AutoscalingPolicy, scene reconcile.Scene) map[string]string {
	stay := map[string]string{}
	guard := policy.Guards.Busy
	if guard == nil {
		return stay
	}
	for _, sign := range []struct {
		measure domain.AgentMeasure
		what    string
		least   *float64
	}{
		{domain.AgentCPUPercent, "its CPU", guard.CPUPercent},
		{domain.AgentGPUPercent, "its GPUs", guard.GPUPercent},
	} {
		if sign.least == nil {
			continue
		}
		read := s.meter.Read(ctx, time.Now(), meter.Scene{Groups: scene.Groups, Members: scene.Members}, []meter.Question{{
			Policy: policy.Key(), Metric: busyMetric, Group: policy.Group, Role: policy.Role, Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: sign.measure}},
		}})[0]
		for _, o := range scene.Members[policy.Group] {
			value, known := read.Members[o.Name]
			switch {
			case o.Role != policy.Role || o.State != domain.StateRunning:
			case !known:
				stay[o.Name] = fmt.Sprintf("%s stays: it can't be told whether it works (%s)", o.Name, cmp.Or(read.Why, "it is not measured"))
			case value >= *sign.least:
				stay[o.Name] = fmt.Sprintf("%s stays: it works (%s at %.0f %%)", o.Name, sign.what, value)
			}
		}
	}
	return stay
}

// drain tells the user's hook which members are to go. They stay unless it succeeds.
func drain(ctx context.Context, policy domain.AutoscalingPolicy, members []string, scaling reconcile.Scaling) error {
	hook := policy.Guards.Drain
	if hook == nil {
		return nil
	}
	_, err := meter.Call(ctx, *hook, struct {
		Cluster string   `json:"cluster"`
		Group   string   `json:"group"`
		Role    string   `json:"role"`
		From    int      `json:"from"`
		To      int      `json:"to"`
		Members []string `json:"members"`
	}{policy.Cluster, policy.Group, policy.Role, scaling.From, scaling.To, members})
	if err != nil {
		return &staysError{fmt.Sprintf("the drain hook failed for %s, and nobody goes: %v", strings.Join(members, ", "), err)}
	}
	return nil
}
