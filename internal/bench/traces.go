//go:build linux

package main

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// load is a trace on which policies are compared.
type load struct {
	name     string
	trace    autoscale.Trace
	capacity float64 // of one member
	seasonal bool    // whether there are more than two days, and they are alike
}

const (
	day = 24 * time.Hour
	// membersAtPeak is how many members carry a load's peak at full capacity.
	membersAtPeak = 20
	// loadStartup is how long a member takes until it carries load.
	loadStartup = time.Minute
	// seed is the seed of all random numbers.
	seed = 1
)

// generatedLoads returns a load of each kind, with a value every 5 s, between the full capacities of 2 and 20 members,
// with noise of 5 %.
func generatedLoads() []load {
	shape := autoscale.Shape{
		Start: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), Step: 5 * time.Second, Length: day,
		Base: 200, Peak: 2000, Noise: 0.05, Seed: seed,
	}
	const capacity = 2000 / membersAtPeak
	week := shape
	week.Length = 7 * day
	return []load{
		{"diurnal, a week", autoscale.Diurnal(week), capacity, true},
		{"bursty, a day", autoscale.Bursty(shape, time.Hour, 10*time.Minute), capacity, false},
		{"steps, a day", autoscale.StepLoad(shape, 2*time.Hour), capacity, false},
		{"flash crowd, a day", autoscale.FlashCrowd(shape, 8*time.Hour, 5*time.Minute, time.Hour), capacity, false},
	}
}

// conditions are ways to degrade the metrics, with their names.
var conditions = []struct {
	name string
	of   func(autoscale.Trace) autoscale.Trace
}{
	{"as they are", func(t autoscale.Trace) autoscale.Trace { return t }},
	{"5 % of all samples lost", func(t autoscale.Trace) autoscale.Trace { return t.Losing(0.05, seed) }},
	{"no metrics for ten minutes, when the load rises most", func(t autoscale.Trace) autoscale.Trace {
		return t.Blind(worstMoment(t, blindness), blindness)
	}},
}

// blindness is how long metrics are missing.
const blindness = 10 * time.Minute

// worstMoment returns when missing metrics do the most harm: when the mean load during that time exceeds that of the
// minute before by the most.
func worstMoment(t autoscale.Trace, length time.Duration) time.Time {
	sums := make([]float64, len(t.Load)+1)
	for i, value := range t.Load {
		sums[i+1] = sums[i] + value
	}
	mean := func(from, to int) float64 { return (sums[to] - sums[from]) / float64(to-from) }
	before, during := max(int(time.Minute/t.Step), 1), max(int(length/t.Step), 1)
	worst, most := 0, 0.0
	for i := before; i+during <= len(t.Load); i++ {
		if rise := mean(i, i+during) - mean(i-before, i); rise > most {
			worst, most = i, rise
		}
	}
	return t.Start.Add(time.Duration(worst) * t.Step)
}

// rival is a policy to compare.
type rival struct {
	name   string
	policy domain.AutoscalingPolicy
	// seasonal policies are only for loads with seasons.
	seasonal bool
}

// The bounds of all compared policies.
const leastMembers, mostMembers = 1, 60

// of returns a policy with one metric within the bounds.
func of(name string, metric domain.ScalingMetric) domain.AutoscalingPolicy {
	return spec(leastMembers, mostMembers, 4, name, metric)
}

// utilisationTarget has only defaults, like [loadTarget].
func utilisationTarget(percent float64) domain.AutoscalingPolicy {
	return of("cpu",
		domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: percent}}})
}

// loadTarget gives each member this percentage of its capacity.
func loadTarget(capacity, percent float64) domain.AutoscalingPolicy {
	return of("load", domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Target: &domain.TargetAlgorithm{Value: capacity * percent / 100, Per: domain.TargetTotal},
	}})
}

// loadRisk has too few members for this percentage of the time.
func loadRisk(capacity, percent float64) domain.AutoscalingPolicy {
	return of("load", domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Risk: &domain.RiskAlgorithm{Percent: percent, Capacity: capacity, Per: domain.TargetTotal},
	}})
}

// utilisationRisk does the same without a metric of the load.
func utilisationRisk(percent float64) domain.AutoscalingPolicy {
	return of("cpu",
		domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{Risk: &domain.RiskAlgorithm{Percent: percent}}})
}

// queueOf has a member per this many seconds of queued work.
func queueOf(capacity, seconds float64) domain.AutoscalingPolicy {
	return of("queue", domain.ScalingMetric{
		Algorithm: domain.ScalingAlgorithm{Queue: &domain.QueueAlgorithm{PerMember: capacity * seconds}},
	})
}

// foreseeing adds a forecast to a policy's metrics, over the startup time of a member.
func foreseeing(policy domain.AutoscalingPolicy, season *domain.Duration) domain.AutoscalingPolicy {
	for name, metric := range policy.Metrics {
		metric.Forecast = &domain.Forecast{Lead: domain.Duration(loadStartup), Season: season}
		policy.Metrics[name] = metric
	}
	return policy
}

// heatAround has the paper's recurrence factor and cooldown, and around a target the band that the paper has around
// 50 %, to scale.
func heatAround(percent float64) domain.AutoscalingPolicy {
	heat := of("cpu", domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Heat: &domain.HeatAlgorithm{Lower: 0.4 * percent, Upper: 1.2 * percent, Target: percent, Recurrence: 3},
	}})
	heat.Interval = lasting(domain.DefaultScalingInterval)
	heat.ScaleOut = domain.ScalingBehaviour{Cooldown: lasting(3 * time.Minute), Rates: unlimited}
	heat.ScaleIn = domain.ScalingBehaviour{Cooldown: lasting(3 * time.Minute), Stabilisation: lasting(0)}
	return heat
}

// thresholdAt adds and removes one member a minute, with a band as wide as heat's.
func thresholdAt(upper float64) domain.AutoscalingPolicy {
	threshold := of("cpu", domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Threshold: &domain.ThresholdAlgorithm{Lower: new(upper / 3), Upper: &upper},
	}})
	threshold.Interval = lasting(domain.DefaultScalingInterval)
	threshold.ScaleOut = domain.ScalingBehaviour{Cooldown: lasting(time.Minute), Rates: unlimited}
	threshold.ScaleIn = domain.ScalingBehaviour{Cooldown: lasting(time.Minute), Stabilisation: lasting(0)}
	return threshold
}

// rivals are the policies, for members of this capacity. All decide every 5 s, which is the default and was the
// paper's interval as well. Targets are for the utilisation, or for the load itself at the same utilisation of a
// member.
func rivals(capacity float64) []rival {
	const percent, upper = 50, 60
	return []rival{
		{"target 50 %", utilisationTarget(percent), false},
		{"target 50 %, forecast of 60 s", foreseeing(utilisationTarget(percent), nil), false},
		{"target 50 %, forecast, daily season", foreseeing(utilisationTarget(percent), lasting(day)), true},
		{"target by load", loadTarget(capacity, percent), false},
		{"target by load, forecast of 60 s", foreseeing(loadTarget(capacity, percent), nil), false},
		{"target by load, forecast, daily season", foreseeing(loadTarget(capacity, percent), lasting(day)), true},
		{"heat", heatAround(percent), false},
		{"threshold ±1 each 60 s", thresholdAt(upper), false},
	}
}

// course runs a policy on a load under a condition.
func (l load) course(
	policy domain.AutoscalingPolicy, condition func(autoscale.Trace) autoscale.Trace,
) (autoscale.Course, error) {
	return autoscale.Backtest(policy, condition(l.trace), autoscale.Model{
		Capacity: l.capacity, Startup: loadStartup, Signals: map[string]autoscale.Signal{"load": autoscale.SignalLoad},
	})
}

// tally is the result of a policy on one or several loads.
type tally struct {
	under, length      time.Duration
	memberHours        float64
	changes, reversals int
}

func (t *tally) add(other tally) {
	t.under += other.under
	t.length += other.length
	t.memberHours += other.memberHours
	t.changes += other.changes
	t.reversals += other.reversals
}

// row formats a tally as a row.
func (t tally) row(name string) []string {
	return []string{
		"  " + name, fmt.Sprintf("%.1f min", t.under.Minutes()),
		fmt.Sprintf("%.2f %%", 100*t.under.Seconds()/t.length.Seconds()),
		count(int(math.Round(t.memberHours))), count(t.changes), count(t.reversals),
	}
}

// tallies are the policies' results on the loads under a condition, in the order of the loads and by policy name.
func tallies(loads []load, condition func(autoscale.Trace) autoscale.Trace) ([]map[string]tally, error) {
	all := make([]map[string]tally, len(loads))
	for i, l := range loads {
		all[i] = map[string]tally{}
		for _, r := range rivals(l.capacity) {
			if r.seasonal && !l.seasonal {
				continue
			}
			course, err := l.course(r.policy, condition)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", l.name, r.name, err)
			}
			all[i][r.name] = tally{
				under: course.Under, length: time.Duration(len(l.trace.Load)) * l.trace.Step,
				memberHours: course.MemberHours, changes: course.Changes, reversals: course.Reversals,
			}
		}
	}
	return all, nil
}

// tracesTable compares all policies on all loads under a condition, and on their sum.
func tracesTable(loads []load, condition func(autoscale.Trace) autoscale.Trace) (*table, error) {
	all, err := tallies(loads, condition)
	if err != nil {
		return nil, err
	}
	t := &table{
		head: []string{"load and policy", "under-provisioned", "of the time", "member-hours", "changes", "reversals"},
	}
	sums := map[string]tally{}
	for i, l := range loads {
		t.add(l.name, "", "", "", "", "")
		for _, r := range rivals(l.capacity) {
			made, there := all[i][r.name]
			if !there {
				continue
			}
			t.add(made.row(r.name)...)
			sum := sums[r.name]
			sum.add(made)
			sums[r.name] = sum
		}
	}
	t.add("all of them", "", "", "", "", "")
	for _, r := range rivals(1) {
		if !r.seasonal {
			t.add(sums[r.name].row(r.name)...)
		}
	}
	return t, nil
}

// traceNotes explain the tables of traces, and what follows from them.
var traceNotes = []fmt.Stringer{
	note(""),
	note(fmt.Sprintf("A member takes %.0f s to start. The peak takes %d members at their full capacity, and the base "+
		"2; noise is 5 %%. There is a value,",
		loadStartup.Seconds(), membersAtPeak)),
	note(fmt.Sprintf("and a decision, every 5 s; bounds are %d and %d. Under-provisioned is the time in which the "+
		"load is more than the ready members",
		leastMembers, mostMembers)),
	note("carry, also by noise alone."),
	note("Target has the defaults: stabilisation of 300 s for in, tolerance of 10 %, and rates of 4 members or 100 % " +
		"in 15 s for out. By load, it is of"),
	note("the load itself, half of a member's capacity each. Heat has the reference's recurrence factor of 3, its " +
		"band of 20 to 60 %, and its cooldown"),
	note("of 180 s. Threshold has the same band."),
	note("Default: target without a forecast, by load where there is a metric of it, and on utilisation where there " +
		"is none. By load, it is short of"),
	note("members for the least time but for its own forecast, with no more changes than on utilisation, which can't " +
		"tell of more than 100 %."),
	note("Even on utilisation, it is short for less than half the time of heat and threshold, with as many " +
		"member-hours to within 4 %, and"),
	note("whether samples are lost matters to none of them. Heat changes least, and is for roles whose changes are " +
		"dear, as Spark's are."),
	note("A forecast helps utilisation, for two thirds more changes and twice the reversals: what members make of it " +
		"by starting looks like a trend, too."),
	note("On the load it wins nothing: steps and bursts can't be told ahead, and what rises slowly is within the " +
		"reserve. Nor does the daily season,"),
	note("as nobody is short on such a day. Both are for startups that are longer, and targets that are closer."),
	note("Without metrics, no policy changes anything, once the last sample is stale: where the load steps up " +
		"meanwhile, all are short until they are back."),
}
