//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/train"
)

const (
	// learnedSeeds is the number of seeds per training; learnedUpdates is the length of each.
	learnedSeeds, learnedUpdates = 5, 50_000
	learnedCapacity              = 100
)

// lesson is a load for training models and tuning rules, and others of its kind for evaluation.
type lesson struct {
	name    string
	problem train.Problem
	others  []autoscale.Trace
}

// lessons are those with generated loads for brokers: a broker takes 25 s to start, and each change moves data for 40
// s, at a loss of 15 % of the capacity.
func lessons() []lesson {
	shape := func(base, peak float64, seed uint64) autoscale.Shape {
		return autoscale.Shape{
			Start: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), Step: 15 * time.Second, Length: day,
			Base: base * learnedCapacity, Peak: peak * learnedCapacity, Noise: 0.03, Seed: seed,
		}
	}
	steps := func(lasting time.Duration, seed uint64) autoscale.Trace {
		return autoscale.StepLoad(shape(3, 6, seed), lasting)
	}
	bursty := func(seed uint64) autoscale.Trace {
		return autoscale.Bursty(shape(2, 5, seed), time.Hour, 20*time.Minute)
	}
	return []lesson{
		newLesson("steps", steps(time.Hour, 1), learnedCapacity, steps(40*time.Minute, 2), steps(90*time.Minute, 3)),
		newLesson("day", autoscale.Diurnal(shape(2, 8, 1)), learnedCapacity, autoscale.Diurnal(shape(2, 8, 2)),
			autoscale.Diurnal(shape(1, 6, 3))),
		newLesson("bursts", bursty(1), learnedCapacity, bursty(2), bursty(3)),
	}
}

func newLesson(name string, trace autoscale.Trace, capacity float64, others ...autoscale.Trace) lesson {
	return lesson{name, train.Problem{
		Trace: trace, Capacity: capacity, Bound: 1, Startup: 25 * time.Second,
		Change: autoscale.ChangeCost{Takes: 40 * time.Second, Lost: 0.15},
		Min:    1, Max: 12, Interval: max(15*time.Second, trace.Step/5), Prices: train.DefaultPrices,
	}, others}
}

// lesson returns the lesson of a user's load: the first half is for training, the second for evaluation. Six members
// carry what the load seldom exceeds.
func (l load) lesson() lesson {
	half := len(l.trace.Load) / 2
	part := func(from, to int) autoscale.Trace {
		t := autoscale.Trace{
			Start: l.trace.Start.Add(time.Duration(from) * l.trace.Step), Step: l.trace.Step,
			Load: l.trace.Load[from:to],
		}
		if l.trace.Lost != nil {
			t.Lost = l.trace.Lost[from:to]
		}
		return t
	}
	return newLesson(l.name, part(0, half), newTrial(l).capacity*membersAtPeak/6, part(half, len(l.trace.Load)))
}

// pupil is a way to scale, with its results: hourly costs on the lesson's load, and on those for evaluation.
type pupil struct {
	name, setting string
	costs         []judged // per seed; rules have one
	// policy is the one with the lowest cost on the lesson's load, among all seeds or settings.
	policy domain.AutoscalingPolicy
}

type judged struct {
	lesson float64
	others tallied
}

// tallied is the hourly cost of policies, and its parts.
type tallied struct {
	cost, members, underPercent, changes float64
}

// judge evaluates a policy on loads.
func (l lesson) judge(policy domain.AutoscalingPolicy, traces ...autoscale.Trace) (tallied, error) {
	var t tallied
	hours := 0.0
	for _, trace := range traces {
		p := l.problem
		p.Trace = trace
		initial := p.Initial()
		policy.Initial = &initial
		model := p.Model()
		model.Signals["cpu"] = autoscale.SignalUtilisation
		course, err := autoscale.Backtest(policy, trace, model)
		if err != nil {
			return t, err
		}
		hours += trace.Step.Hours() * float64(len(trace.Load))
		t.cost += p.Prices.Of(course)
		t.members += course.MemberHours
		t.underPercent += 100 * course.Under.Hours()
		t.changes += float64(course.Changes)
	}
	return tallied{t.cost / hours, t.members / hours, t.underPercent / hours, t.changes / hours}, nil
}

// rule is an algorithm to tune: by a setting within bounds, and by how long it waits before it scales in, or between
// changes.
type rule struct {
	name, setting string
	least, most   float64
	still         [2]time.Duration
	policy        func(p train.Problem, value float64, still time.Duration) domain.AutoscalingPolicy
}

func stabilised(policy domain.AutoscalingPolicy, still time.Duration) domain.AutoscalingPolicy {
	policy.ScaleIn = domain.ScalingBehaviour{Stabilisation: lasting(still)}
	policy.ScaleOut.Rates = unlimited
	return policy
}

var learnedRules = []rule{
	{"target", "%.0f %%, scale-in after %s", 40, 110, [2]time.Duration{0, 5 * time.Minute},
		func(p train.Problem, v float64, still time.Duration) domain.AutoscalingPolicy {
			return stabilised(loadTarget(p.Capacity, v), still)
		}},
	{"heat", "target %.0f %%, cooldown %s", 30, 100, [2]time.Duration{time.Minute, 3 * time.Minute},
		func(_ train.Problem, v float64, still time.Duration) domain.AutoscalingPolicy {
			policy := heatAround(v)
			policy.ScaleOut.Cooldown, policy.ScaleIn.Cooldown = lasting(still), lasting(still)
			return policy
		}},
	{"risk", "%.2g %%, scale-in after %s", 0.1, 50, [2]time.Duration{0, 5 * time.Minute},
		func(p train.Problem, v float64, still time.Duration) domain.AutoscalingPolicy {
			return stabilised(loadRisk(p.Capacity, v), still)
		}},
}

// tune chooses the best setting of a rule on the lesson's load, trying as many as the budget of decisions allows.
func (l lesson) tune(r rule, budget int) (pupil, error) {
	values := max(budget/l.problem.Decisions()/len(r.still), 2)
	best := pupil{name: r.name}
	for i := range values {
		value := r.least * math.Pow(r.most/r.least, float64(i)/float64(values-1))
		for _, still := range r.still {
			policy := r.policy(l.problem, value, still)
			policy.Min, policy.Max, policy.Interval = l.problem.Min, l.problem.Max, lasting(l.problem.Interval)
			made, err := l.judge(policy, l.problem.Trace)
			if err != nil {
				return best, fmt.Errorf("%s: %w", r.name, err)
			}
			if best.costs == nil || made.cost < best.costs[0].lesson {
				best.costs, best.setting, best.policy = []judged{
					{lesson: made.cost},
				}, fmt.Sprintf(r.setting, value, still), policy
			}
		}
	}
	var err error
	best.costs[0].others, err = l.judge(best.policy, l.others...)
	return best, err
}

// result is the result of a lesson.
type result struct {
	lesson        lesson
	optimum       float64 // per hour, on the lesson's load
	othersOptimum float64
	pupils        []pupil
	budget        int // decisions
}

// optima returns the minimum hourly costs on the lesson's load, and on those for evaluation.
func (l lesson) optima() (own, others float64, err error) {
	least := func(traces ...autoscale.Trace) (float64, error) {
		sum, hours := 0.0, 0.0
		for _, trace := range traces {
			p := l.problem
			p.Trace = trace
			cost, err := train.Optimum(p)
			if err != nil {
				return 0, err
			}
			sum += cost
			hours += trace.Step.Hours() * float64(len(trace.Load))
		}
		return sum / hours, nil
	}
	if own, err = least(l.problem.Trace); err == nil {
		others, err = least(l.others...)
	}
	return own, others, err
}

// teach trains models with both algorithms from several seeds, and tunes the rules with the same budget of decisions.
func (l lesson) teach(ctx context.Context, seeds, updates int, say func(string, ...any)) (result, error) {
	r := result{lesson: l}
	var err error
	if r.optimum, r.othersOptimum, err = l.optima(); err != nil {
		return r, err
	}
	all := make([]train.Learned, len(train.Algorithms)*seeds)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		group.Go(func() error {
			s := train.Defaults()
			s.Algorithm, s.Seed, s.Updates = train.Algorithms[i/seeds], uint64(i%seeds)+1, updates
			var err error
			if all[i], err = train.Learn(ctx, l.problem, s, "", nil); err == nil {
				say("learned: %s, %s, seed %d: %.3f an hour; the optimum is %.3f", l.name, s.Algorithm, s.Seed,
					all[i].Best.Cost, r.optimum)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	for i, learned := range all {
		if i%seeds == 0 {
			r.pupils = append(r.pupils,
				pupil{name: string(train.Algorithms[i/seeds]), setting: fmt.Sprintf("%d seeds", seeds)})
		}
		policy := l.problem.Policy(learned.Text)
		others, err := l.judge(policy, l.others...)
		if err != nil {
			return r, err
		}
		last := &r.pupils[len(r.pupils)-1]
		if !slices.ContainsFunc(last.costs, func(c judged) bool { return c.lesson <= learned.Best.Cost }) {
			last.policy = policy
		}
		last.costs = append(last.costs, judged{learned.Best.Cost, others})
		r.budget += learned.Decisions / len(all)
	}
	for _, rule := range learnedRules {
		tuned, err := l.tune(rule, r.budget)
		if err != nil {
			return r, err
		}
		r.pupils = append(r.pupils, tuned)
	}
	return r, nil
}

// learned trains models for the algorithm learned, and compares them with the optimum, and with rules tuned with the
// same budget.
func (b *bench) learned(ctx context.Context) ([]fmt.Stringer, error) {
	all := lessons()
	if b.trace != "" {
		loads, err := readLoads(b.trace)
		if err != nil {
			return nil, err
		}
		for _, l := range loads {
			all = append(all, l.lesson())
		}
	}
	var results []result
	for _, l := range all {
		r, err := l.teach(ctx, learnedSeeds, b.updates, b.say)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		results = append(results, r)
	}
	return slices.Concat(
		[]fmt.Stringer{note("Regret: the cost an hour above the optimum, on the load that was learned or tuned on."),
			note(""), regretsTable(results), note(""),
			note("Loads that were not seen before:"), note(""),
			heldOutTable(results)}, learnedNotes), nil
}

// spread formats the mean of values, with their minimum and maximum if there are several.
func spread(values []float64) string {
	if len(values) == 1 {
		return fmt.Sprintf("%.2f", values[0])
	}
	return fmt.Sprintf("%.2f (%.2f – %.2f)", mean(values), slices.Min(values), slices.Max(values))
}

// each returns a value per seed.
func (p pupil) each(value func(judged) float64) []float64 {
	var all []float64
	for _, c := range p.costs {
		all = append(all, value(c))
	}
	return all
}

// regretsTable shows the regret for all seeds.
func regretsTable(results []result) *table {
	t := &table{head: []string{"load and algorithm", "setting", "cost an hour", "regret", "of each seed"}}
	for _, r := range results {
		t.add(r.lesson.name, "", "", "", "")
		t.add("  the optimum", "", fmt.Sprintf("%.2f", r.optimum), "", "")
		for _, p := range r.pupils {
			costs := p.each(func(c judged) float64 { return c.lesson })
			regrets := p.each(func(c judged) float64 { return c.lesson - r.optimum })
			var seeds []string
			for _, regret := range regrets {
				seeds = append(seeds, fmt.Sprintf("%.2f", regret))
			}
			t.add("  "+p.name, p.setting, fmt.Sprintf("%.2f", mean(costs)), spread(regrets), strings.Join(seeds, " "))
		}
	}
	return t
}

// heldOutTable shows the results on loads that were not used for training.
func heldOutTable(results []result) *table {
	t := &table{head: []string{"load and algorithm", "cost an hour", "members", "too few for", "changes an hour"}}
	for _, r := range results {
		t.add(r.lesson.name, "", "", "", "")
		t.add("  the optimum", fmt.Sprintf("%.2f", r.othersOptimum), "", "", "")
		for _, p := range r.pupils {
			t.add("  "+p.name, spread(p.each(func(c judged) float64 { return c.others.cost })),
				fmt.Sprintf("%.2f", mean(p.each(func(c judged) float64 { return c.others.members }))),
				fmt.Sprintf("%.2f %%", mean(p.each(func(c judged) float64 { return c.others.underPercent }))),
				fmt.Sprintf("%.1f", mean(p.each(func(c judged) float64 { return c.others.changes }))))
		}
	}
	return t
}

// learnedNotes explain the tables.
var learnedNotes = []fmt.Stringer{
	note(""),
	note(fmt.Sprintf("Costs are in member-hours: an hour with too few members counts %g, and a change of the count "+
		"%g. A member takes 25 s to start, and a change", train.DefaultPrices.Under, train.DefaultPrices.Change)),
	note("moves data for 40 s, with 15 % of the capacity lost; meanwhile no other change begins. Decisions are made " +
		"every 15 s, or five for each value of a"),
	note("trace where that is longer. The optimum knows the load beforehand and changes the count by one at a time: " +
		"no policy that has to react gets there."),
	note("Trainings are of 50,000 updates unless -updates says otherwise; of several seeds, means are shown, and the " +
		"least and the most. The model is that"),
	note("of the best of 26 points of the learning curve. Rules are tuned with as many simulated decisions as a " +
		"training takes, by the cost on the same"),
	note("load, and may change the count by several members at once. Loads that were not seen have other noise, " +
		"steps of 40 and 90 minutes in place of 60,"),
	note("a smaller day, and other bursts; of a recorded load, the first half is learned, and the second one judges."),
}
