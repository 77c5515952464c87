package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// hooksAtOnce bounds how many external algorithms are asked at once.
	hooksAtOnce = 32
	// gathering is how long the first answer waits for others, so that they are decided on together.
	gathering = 20 * time.Millisecond
)

// stillChanging is why a policy changes no count while its last decision is being carried out.
const stillChanging = "the last change is still in progress"

// asked is a policy's question, and what is seen of its role once it was answered. No policy waits
// for another one's answers.
type asked struct {
	policy      *followed
	document    domain.AutoscalingPolicyDocument
	observation reconcile.Observation
	seen        autoscale.Seen
	// at is when it asked.
	at time.Time
}

// ask makes several policies ask together, so that shared values are read once. Their answers arrive on s.answers.
func (s *scaler) ask(ctx context.Context, snapshot reconcile.Reconciler, due []*followed, now time.Time) error {
	observation, err := snapshot.Observation(ctx)
	if err != nil && observation.Groups == nil {
		return err
	}
	standings, own := make([]reconcile.Standing, len(due)), make([]needs, len(due))
	var questions []meter.Question
	for i, f := range due {
		spec := f.document.Spec
		standings[i] = observation.Standing(spec.Group, spec.Role)
		own[i] = f.needs(standings[i].Count)
		questions = append(questions, own[i].questions...)
	}
	answers := s.meter.Ask(ctx, now, meter.Observation{Groups: observation.Groups, Members: observation.Members},
		questions)
	for i, f := range due {
		spec, standing := f.document.Spec, standings[i]
		a := &asked{policy: f, document: f.document, observation: observation, at: now, seen: autoscale.Seen{
			Now: now, Count: standing.Count, Ready: standing.Ready, Held: standing.Held,
			Metrics: map[string]autoscale.Measurement{}, Guards: map[string]autoscale.Measurement{},
			Roles: observation.Groups[spec.Group].Counts,
			Used:  usedIn(observation, spec.Group, spec.Role),
		}}
		if f.changing && !f.removing.Load() && a.seen.Held == "" {
			a.seen.Held = stillChanging
		}
		f.asked = a
		s.asking++
		n := len(own[i].questions)
		go s.answer(ctx, a, f.autoscaler, own[i], answers[:n])
		answers = answers[n:]
	}
	return err
}

// needs is what a policy needs to know for a decision.
type needs struct {
	questions []meter.Question
	// hooks is set if it needs the answers of external algorithms.
	hooks bool
}

// needs returns what a policy needs to know, given a role's count. A count out of bounds is corrected without any
// metric: only guards are asked.
func (f *followed) needs(count int) needs {
	policy := f.document.Spec
	if count >= policy.Min && count <= policy.Max {
		return needs{f.questions, true}
	}
	return needs{
		questions: slices.DeleteFunc(slices.Clone(f.questions), func(q meter.Question) bool { return !isGuard(q) }),
	}
}

// answer waits for the answers to a policy's questions, and passes them to the loop.
func (s *scaler) answer(
	ctx context.Context, a *asked, autoscaler *autoscale.Autoscaler, needs needs, answers []meter.Answer,
) {
	for i, q := range needs.questions {
		measured := answers[i]()
		switch {
		case isGuard(q):
			a.seen.Guards[strings.TrimPrefix(q.Metric, guardMark)] = measured
		case !takeUse(&a.seen.Used, q.Metric, measured):
			a.seen.Metrics[q.Metric] = measured
		}
	}
	if needs.hooks {
		s.askRoom(ctx, a, autoscaler)
		s.askExternal(ctx, a, autoscaler)
	}
	select {
	case s.answers <- a:
	case <-ctx.Done():
	}
}

// askExternal asks the external algorithms of a policy, all at once.
func (s *scaler) askExternal(ctx context.Context, a *asked, autoscaler *autoscale.Autoscaler) {
	var asking sync.WaitGroup
	var mu sync.Mutex
	for name, metric := range a.document.Spec.Metrics {
		if metric.Algorithm.External == nil {
			continue
		}
		if a.seen.Answers == nil {
			a.seen.Answers = map[string]autoscale.Answer{}
		}
		question := autoscaler.Ask(a.seen)
		asking.Go(func() {
			select {
			case s.hooks <- struct{}{}:
				defer func() { <-s.hooks }()
			case <-ctx.Done():
				return
			}
			reply, err := meter.Call(ctx, metric.Algorithm.External.ScalingHook, question)
			answer := autoscale.ParseAnswer(reply)
			if err != nil {
				answer = autoscale.Answer{Why: err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			a.seen.Answers[name] = answer
		})
	}
	asking.Wait()
}

// busyMetric names the question whether members are busy. No metric of a user has that name.
const busyMetric = ""

// guardMark prefixes the names of guards' questions. No metric of a user has that prefix.
const guardMark = "\n"

func isGuard(q meter.Question) bool { return strings.HasPrefix(q.Metric, guardMark) }

// questionsOf returns the questions of a policy, in a fixed order.
func questionsOf(policy domain.AutoscalingPolicy) []meter.Question {
	var questions []meter.Question
	for _, name := range slices.Sorted(maps.Keys(policy.Metrics)) {
		metric := policy.Metrics[name]
		if metric.Algorithm.Measures() {
			questions = append(questions, meter.Question{
				Metric: name, Group: policy.Group, Role: policy.Role, Source: metric.Source, Window: metric.Window,
				Aggregation: metric.Aggregation,
				StaleAfter:  metric.Stale(), ReadyAfter: metric.ReadyAfter,
			})
		}
	}
	return slices.Concat(questions, guardQuestions(policy), useQuestions(policy))
}

// guardQuestions returns what the guards of a policy ask external sources.
func guardQuestions(policy domain.AutoscalingPolicy) []meter.Question {
	var questions []meter.Question
	for _, asked := range policy.Guards.Questions() {
		questions = append(questions, meter.Question{
			Metric: guardMark + asked.Name, Group: policy.Group, Role: policy.Role, Source: asked.Source,
			StaleAfter: domain.DefaultStaleAfter, Truth: asked.Name != domain.GuardAtLeast,
		})
	}
	return questions
}
