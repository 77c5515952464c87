//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// In a lesson, no model costs less than the optimum, each rule is tuned within the budget, and both tables have the
// results.
func TestLesson(t *testing.T) {
	shape := autoscale.Shape{
		Start: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Step: 15 * time.Second, Length: 2 * time.Hour, Base: 200,
		Peak: 400, Noise: 0.02, Seed: 1,
	}
	other := shape
	other.Seed = 2
	l := newLesson("hours", autoscale.StepLoad(shape, 30*time.Minute), 100, autoscale.StepLoad(other, 20*time.Minute))
	r, err := l.teach(t.Context(), 2, 300, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.pupils) != 5 || r.optimum <= 0 || r.othersOptimum <= 0 || r.budget < 26*480 {
		t.Fatalf("it has %d pupils, optima of %g and %g, and a budget of %d", len(r.pupils), r.optimum, r.othersOptimum,
			r.budget)
	}
	for _, p := range r.pupils[:2] {
		for _, c := range p.costs {
			if c.lesson < r.optimum-1e-9 || c.others.cost < r.othersOptimum-1e-9 {
				t.Errorf("%s costs %g and %g; the optima are %g and %g", p.name, c.lesson, c.others.cost, r.optimum,
					r.othersOptimum)
			}
		}
	}
	for i, p := range r.pupils[2:] {
		policy := learnedRules[i].policy(l.problem, 40, 0) // any setting
		policy.Min, policy.Max, policy.Interval = l.problem.Min, l.problem.Max, lasting(l.problem.Interval)
		made, err := l.judge(policy, l.problem.Trace)
		if err != nil {
			t.Fatal(err)
		}
		if p.setting == "" || p.costs[0].lesson > 1.05*made.cost {
			t.Errorf("%s is tuned to %q, which costs %g, and one that was not %g", p.name, p.setting, p.costs[0].lesson,
				made.cost)
		}
	}
	for _, made := range []*table{regretsTable([]result{r}), heldOutTable([]result{r})} {
		for _, want := range []string{"hours", "the optimum", "double-dqn", "target", "heat", "risk"} {
			if !strings.Contains(made.String(), want) {
				t.Errorf("%q is not in\n%s", want, made)
			}
		}
	}
}

// The first half of a recorded load is for training, the second for evaluation.
func TestLessonOfALoad(t *testing.T) {
	trace := autoscale.Trace{
		Start: time.Unix(0, 0).UTC(), Step: 5 * time.Minute, Load: make([]float64, 101), Lost: make([]bool, 101),
	}
	for i := range trace.Load {
		trace.Load[i] = float64(i)
	}
	l := load{name: "mine", trace: trace}.lesson()
	judging := l.others[0]
	if len(l.problem.Trace.Load) != 50 || len(judging.Load) != 51 || judging.Load[0] != 50 ||
		!judging.Start.Equal(trace.Start.Add(250*time.Minute)) || len(judging.Lost) != 51 ||
		l.problem.Interval != time.Minute || int(l.problem.Capacity) != 16 {
		t.Errorf("the lesson is %+v", l)
	}
}
