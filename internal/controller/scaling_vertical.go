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

// useMark prefixes the names of questions about the usage of members. No metric of a user has that prefix.
const useMark = "\v"

// useQuestions returns the questions of a policy that scales vertically: what each member uses, over windows without
// gaps between them as far as possible.
func useQuestions(policy domain.AutoscalingPolicy) []meter.Question {
	if policy.Vertical == nil {
		return nil
	}
	window := min(max(policy.Every(), domain.DefaultAgentWindow), engine.LongestWindow)
	ask := func(name string, measure domain.AgentMeasure, a domain.Aggregation) meter.Question {
		return meter.Question{
			Metric: useMark + name, Group: policy.Group, Role: policy.Role,
			Source: domain.ScalingSource{Agent: &domain.AgentSource{Measure: measure}},
			Window: new(domain.Duration(window)), Aggregation: a, StaleAfter: domain.DefaultStaleAfter,
			ReadyAfter: new(domain.Duration(0)),
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

// takeUse stores the answer to a question about usage, and reports whether it was one.
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

// usedIn returns what is known of the usage of a role's members without asking.
func usedIn(observation reconcile.Observation, group, role string) autoscale.Used {
	doc := observation.Groups[group]
	used := autoscale.Used{
		Requested: doc.Sized().Roles[role].Resources.Requests(), Size: doc.Sizes[role].Resources,
		Sized: doc.Sizes[role].At, InPlace: doc.Sizes[role].InPlace,
	}
	var last time.Time
	for _, o := range observation.Members[group] {
		if killed := o.OutOfMemory; o.Role == role && killed != nil && killed.At.After(last) {
			last = killed.At
			used.Killed = &autoscale.At[float64]{At: killed.At, Value: float64(killed.LimitMiB)}
		}
	}
	return used
}

// sizing is the state of a policy's change of size.
type sizing struct {
	// resizing is set while a size is being stored and handed over, and resized is the result for the history.
	// handedOver is set once the size found at the start has been handed over.
	resizing   bool
	resized    string
	handedOver bool
	// resizeAt is when to try again after a failure.
	resizeAt time.Time
}

// resized is the result of a change of size.
type resized struct {
	policy *followed
	resize autoscale.Resize
	at     time.Time
	err    error
}

// resizeRetry is how soon to retry a size that was refused, as the reason rarely passes within one interval.
const resizeRetry = 30 * time.Second

// resize changes the size of a role's members in a goroutine. The first time, it hands over the stored size, as whoever
// stored it may have died before that.
func (s *scaler) resize(ctx context.Context, f *followed, a *asked, decided *autoscale.Resize) {
	size := a.seen.Used.Size
	changing := f.changing && !f.removing.Load() // a hook may be at work for hours
	switch {
	case f.resizing || changing || f.resizeAt.After(a.seen.Now) || a.seen.Held != "" && decided == nil:
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
		InPlace: size != domain.Resources{} && policy.Vertical != nil &&
			policy.Vertical.ApplyRule() == domain.ApplyInPlace,
	}
	document := f.document
	go func() {
		if r.err = s.unchanged(ctx, document); r.err == nil {
			r.err = s.reconciler.Resize(ctx, sizing)
		}
		select {
		case s.resizes <- r:
		case <-ctx.Done():
		}
	}()
}

// finishResize records the result of a change of size, for the history entry of the next decision.
func (s *scaler) finishResize(r resized) {
	f, key := r.policy, r.policy.document.Spec.Key()
	f.resizing = false
	s.changing--
	_, locked := errors.AsType[*engine.LockedError](r.err)
	switch {
	case r.err == nil:
		f.handedOver = true
	case errors.Is(r.err, errPolicyOver), errors.Is(r.err, errPolicyChanged):
		return // it is decided again
	case !locked:
		f.resizeAt = r.at.Add(resizeRetry)
	}
	if r.resize.Why == "" && (r.err == nil || heldBack(r.err)) {
		return // it already had that size
	}
	outcome, why := autoscale.OutcomeDone, ""
	if r.err != nil {
		outcome, why = outcomeOf(r.err)
	}
	switch outcome {
	case autoscale.OutcomeDone:
		f.resized = "members started from now on request " + sizeOf(r.resize)
		s.changed = true
		s.log.Info("the size of a role's members was changed", "policy", key, "cpus", r.resize.To.CPUs, "memory_mib",
			r.resize.To.MemoryMiB, "why", r.resize.Why)
	case autoscale.OutcomeHeld:
		f.resized = "held: " + why + ": " + sizeOf(r.resize)
	default:
		f.resized = "failed: " + why + ": " + sizeOf(r.resize)
		s.log.Error("changing the size of a role's members failed; trying again", "policy", key, "error", r.err)
	}
}

// sizeOf describes what members request, and why.
func sizeOf(r autoscale.Resize) string {
	var parts []string
	if r.To.CPUs > 0 {
		parts = append(parts, autoscale.Number(r.To.CPUs)+" CPUs")
	}
	if r.To.MemoryMiB > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB", r.To.MemoryMiB))
	}
	if len(parts) == 0 {
		parts = append(parts, "the declared resources")
	}
	return strings.Join(parts, " and ") + " (" + r.Why + ")"
}
