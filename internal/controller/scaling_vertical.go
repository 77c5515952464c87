package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// useMark begins the names of what is asked about the use of members: those of no metric of the user's do.
const useMark = "\v"

// useQuestions returns what a policy that scales vertically needs to know: what each member uses, over windows that
// leave no gap where that is possible.
func useQuestions(policy domain.AutoscalingPolicy) []meter.Question {
	if policy.Vertical == nil {
		return nil
	}
	window := min(max(policy.Every(), domain.DefaultAgentWindow), engine.LongestWindow)
	ask := func(name string, measure domain.AgentMeasure, a domain.Aggregation) meter.Question {
		return meter.Question{
			Metric: useMark + name, Group: policy.Group, Role: policy.Role, Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: measure}},
			Window: new(domain.Duration(window)), Aggregation: a, StaleAfter: domain.DefaultStaleAfter, ReadyAfter: new(domain.Duration(0)),
		}
	}
	var questions []meter.Question
	if policy.Vertical.CPUs != nil {
		questions = append(questions, ask(autoscale.ResourceCPUs, domain.AgentCPUs, domain.AggregateMean))
	}
	if policy.Vertical.MemoryMiB != nil {
		questions = append(questions, ask(autoscale.ResourceMemoryMiB, domain.AgentMemoryMiB, domain.AggregateMax))
	}
	return questions
}

// takeUse takes what was answered about the use of members, and reports whether it was that.
func takeUse(used *autoscale.Used, metric string, measured autoscale.Measurement) bool {
	name, is := strings.CutPrefix(metric, useMark)
	switch {
	case !is:
	case name == autoscale.ResourceCPUs:
		used.CPUs = measured
	default:
		used.MemoryMiB = measured
	}
	return is
}

// usedIn is what is known of the use of a role's members without asking anybody.
func usedIn(scene reconcile.Scene, group, role string) autoscale.Used {
	doc := scene.Groups[group]
	used := autoscale.Used{Requested: doc.Sized().Roles[role].Resources.Requests(), Size: doc.Sizes[role].Resources, Sized: doc.Sizes[role].At, InPlace: doc.Sizes[role].InPlace}
	var last time.Time
	for _, o := range scene.Members[group] {
		if killed := o.OutOfMemory; o.Role == role && killed != nil && killed.At.After(last) {
			last = killed.At
			used.Killed = &autoscale.At[float64]{At: killed.At, Value: float64(killed.LimitMiB)}
		}
	}
	return used
}

// sizing is how far a policy has come with another size of its role's members.
type sizing struct {
	// resizing tells that it is being stored and handed over, resized is what came of that, to be told, and handedOver
	// that the size that was found was handed over.
	resizing   bool
	resized    string
	handedOver bool
	// resizeAt is when it may be tried again after it could not be done.
	resizeAt time.Time
}

// resized is what came of giving the members of a policy's role another size.
type resized struct {
	policy *followed
	resize autoscale.Resize
	at     time.Time
	err    error
}

// resizeRetry is how soon another size is tried again that could not be had: what is in its way is rarely gone with the
// next decision.
const resizeRetry = 30 * time.Second

// resize has the members of a policy's role that are started from now on have another size, beside others; or, the
// first time, hands over the one that they have: whoever stored it may have died before.
func (s *scaler) resize(ctx context.Context, f *followed, a *asked, decided *autoscale.Resize) {
	size := a.seen.Used.Size
	switch {
	case f.resizing || f.changing || f.resizeAt.After(a.seen.Now) || a.seen.Held != "" && decided == nil:
		return
	case decided != nil:
		size = decided.To
	case f.handedOver || size == domain.Resources{}:
		f.handedOver = true
		return
	}
	f.resizing = true
	s.changing++
	r := resized{policy: f, at: a.seen.Now}
	if decided != nil {
		r.resize = *decided
	}
	policy := f.document.Spec
	sizing := reconcile.Sizing{
		Group: policy.Group, Role: policy.Role, To: size, At: a.seen.Now, Why: r.resize.Why,
		InPlace: size != domain.Resources{} && policy.Vertical != nil && policy.Vertical.ApplyRule() == domain.ApplyInPlace,
	}
	document := f.document
	go func() {
		if r.err = s.stands(ctx, document); r.err == nil {
			r.err = s.reconciler.Resize(ctx, sizing)
		}
		select {
		case s.resizes <- r:
		case <-ctx.Done():
		}
	}()
}

// finishResize takes notice of what came of another size. The history tells with the next decision.
func (s *scaler) finishResize(r resized) {
	f, key := r.policy, r.policy.document.Spec.Key()
	f.resizing = false
	s.changing--
	_, locked := errors.AsType[*engine.LockedError](r.err)
	switch {
	case r.err == nil:
		f.handedOver = true
	case errors.Is(r.err, errPolicyOver), errors.Is(r.err, errPolicyChanged):
		return // it is decided anew
	case !locked:
		f.resizeAt = r.at.Add(resizeRetry)
	}
	if r.resize.Why == "" && (r.err == nil || heldBack(r.err)) {
		return // it had that size before
	}
	outcome, why := autoscale.OutcomeDone, ""
	if r.err != nil {
		outcome, why = outcomeOf(r.err)
	}
	switch outcome {
	case autoscale.OutcomeDone:
		f.resized = "members that are started from now on request " + sizeOf(r.resize)
		s.changed = true
		s.log.Info("the size of a role's members was changed", "policy", key, "cpus", r.resize.To.CPUs, "memory_mib", r.resize.To.MemoryMiB, "why", r.resize.Why)
	case autoscale.OutcomeHeld:
		f.resized = "held: " + why + ": " + sizeOf(r.resize)
	default:
		f.resized = "failed: " + why + ": " + sizeOf(r.resize)
		s.log.Error("the size of a role's members could not be changed; trying again", "policy", key, "error", r.err)
	}
}

// sizeOf says what members are to request, and why.
func sizeOf(r autoscale.Resize) string {
	var parts []string
	if r.To.CPUs > 0 {
		parts = append(parts, autoscale.Number(r.To.CPUs)+" CPUs")
	}
	if r.To.MemoryMiB > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB", r.To.MemoryMiB))
	}
	if len(parts) == 0 {
		parts = append(parts, "what is declared")
	}
	return strings.Join(parts, " and ") + " (" + r.Why + ")"
}
