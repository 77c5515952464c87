package autoscale

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Autoscaler makes a policy's decisions. Between decisions, it keeps nothing but what it read from the policy.
type Autoscaler struct {
	policy  domain.AutoscalingPolicy
	metrics []string // the names, sorted; follows and measure are the metrics and their measureOf in this order
	follows []domain.ScalingMetric
	measure []string
	// models are those of learned algorithms, by metric name.
	models map[string]*qmodel.Model
	// chooses is as in asking.
	chooses Chooser
	times   timetable
	guards  []domain.GuardQuestion
	// remembered is how long asked-for counts are needed, and changed how long changes are.
	remembered, changed time.Duration
	// quiet skips the reasons for decisions, which take a third of the time.
	quiet bool
}

// New returns an autoscaler for a valid policy, see [Validate].
func New(policy domain.AutoscalingPolicy) (*Autoscaler, error) {
	problems, models := validate(policy)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	times, err := newTimetable(policy.Schedules)
	if err != nil {
		return nil, err
	}
	a := &Autoscaler{
		policy: policy, metrics: slices.Sorted(maps.Keys(policy.Metrics)), times: times,
		guards:     policy.Guards.Questions(),
		remembered: longestStabilisation(&policy), changed: longestPeriod(&policy), models: models,
	}
	for _, name := range a.metrics {
		measure, err := measureOf(policy.Metrics[name], policy.Role)
		if err != nil {
			return nil, err
		}
		a.follows, a.measure = append(a.follows, policy.Metrics[name]), append(a.measure, measure)
	}
	return a, nil
}

// Decision is the new count, and why.
type Decision struct {
	From, To int
	// Asked are what the metrics and schedules ask for.
	Asked []Asked
	// Guards are the values of the guards that ask sources.
	Guards []Guarded
	// Recommended is what members should request of the resources that the policy scales vertically.
	Recommended []Recommended
	// Resize is the new size of members started from now on; nil if it does not change.
	Resize *Resize
	// limits say what changed the count from what was asked for, in order.
	limits []string
	// guarded is set if members that nothing asks for stay because of a guard.
	guarded bool
}

// Guarded reports whether members that nothing asks for stay because of a guard, or while a hook is at work.
func (d Decision) Guarded() bool { return d.guarded }

// Asked is what a metric or a schedule asks for.
type Asked struct {
	// Name is the name of the metric or schedule.
	Name string
	// Value and Age are the metric's. If there is no usable value, Value is NaN, and Age is that of a stale value, or
	// 0.
	Value float64
	Age   time.Duration
	// Count is what it asks for, unless it Abstains. Known is whether it asks for anything.
	Count    int
	Abstains bool
	Known    bool
	// Pending is what it will ask for if its metric stays beyond a threshold for long enough; nil otherwise.
	Pending *int
	// Observed means that it is a metric that never asks for anything, whether it has a value or not.
	Observed bool
	// Why is the reason, in words.
	Why string
}

// Why explains the decision: what each metric asks for, and what limited that.
func (d Decision) Why() string {
	reasons := make([]string, 0, len(d.Asked))
	for _, asked := range d.Asked {
		reasons = append(reasons, reason(asked.Name, asked.Why))
	}
	return sentence(reasons, d.limits)
}

// reason formats the reason of one metric or schedule.
func reason(name, why string) string { return name + ": " + why }

// sentence combines the reasons of the metrics and schedules with what limited them.
func sentence(reasons, limits []string) string {
	if len(reasons)+len(limits) == 0 {
		return "no other count requested"
	}
	return strings.Join(slices.Concat(reasons, limits), "; ")
}

// Limits returns what kept the count from what was asked for, in words and in order.
func (d Decision) Limits() []string { return slices.Clone(d.limits) }

// limit records a reason for changing a count, if there is one.
func (d *Decision) limit(count int, why string) int {
	if why != "" {
		d.limits = append(d.limits, why)
	}
	return count
}

// Decide makes a decision about a role, and records in the state what the next decision needs. Before any metric is
// read, a role outside its bounds is brought back (a new policy's to its initial count), and one whose room something
// more important waits for yields. Only [Autoscaler.Changed] records a change of the count, as carrying out a decision
// may fail.
func (a *Autoscaler) Decide(state *State, seen Seen) Decision {
	var d Decision
	a.decide(&d, state, &seen)
	return d
}

// decide is Decide, reusing the memory of an earlier decision.
func (a *Autoscaler) decide(d *Decision, state *State, seen *Seen) {
	*d = Decision{From: seen.Count, Asked: d.Asked[:0], Guards: a.askGuards(state, seen), limits: d.limits[:0]}
	if state.Since.IsZero() {
		state.Since = seen.Now
		state.Initial = a.policy.Initial != nil && !a.policy.DryRun
		// so that a new policy does not scale in at once
		state.Asked = append(state.Asked, At[int]{seen.Now, seen.Count})
	}
	state.rewind(seen.Now)
	state.learnStartup(seen)
	d.Recommended = a.recommend(state, seen)
	d.Resize = a.resize(d, state, seen)
	count, spent := a.withinBudget(d, state, seen)
	if count == d.From && !spent {
		// A pending initial count is reached in one change, as the next decision would no longer ask for it.
		if count = a.within(d, seen.Count); count != d.From {
			count = a.initial(d, state, count)
		}
	}
	if count == d.From && !spent {
		count = a.yield(d, seen)
	}
	if count == d.From && !spent {
		count = a.guarded(d, seen, a.initial(d, state, seen.Count))
	}
	if count == d.From && !spent {
		count = a.wanted(d, state, seen)
	}
	d.To = a.guarded(d, seen, count)
}

// Changed records a change of the count that was carried out.
func (a *Autoscaler) Changed(state *State, at time.Time, from, to int) {
	state.Changes = append(keepRecent(state.Changes, at, a.changed), At[int]{at, to - from})
	state.LastChange = at
	state.Initial = false
	state.Starting = nil
	if to > from {
		state.Starting = &At[int]{at, to}
	}
}

// Resume continues a state after a time without decisions. A role is not scaled in because nothing was asked for in the
// meantime.
func (a *Autoscaler) Resume(state *State, now time.Time, count int) {
	if !state.Since.IsZero() {
		a.remember(state, now, max(count, lastAsked(state.Asked)))
	}
}

// lastAsked returns the count last asked for; 0 if there is none.
func lastAsked(asked []At[int]) int {
	if len(asked) == 0 {
		return 0
	}
	return asked[len(asked)-1].Value
}

// initial returns the policy's initial count until the role has had it once, or has come as close as it could.
func (a *Autoscaler) initial(d *Decision, state *State, count int) int {
	if !state.Initial || a.policy.Initial == nil || *a.policy.Initial == count {
		state.Initial = false
		return count
	}
	return d.limit(*a.policy.Initial, say("the initial count is ", *a.policy.Initial))
}

// within returns the nearest count within the bounds.
func (a *Autoscaler) within(d *Decision, count int) int {
	switch {
	case count < a.policy.Min:
		return d.limit(a.policy.Min, say(count, " is below min (", a.policy.Min, ")"))
	case count > a.policy.Max:
		return d.limit(a.policy.Max, say(count, " is above max (", a.policy.Max, ")"))
	}
	return count
}

// wanted returns the count that the metrics and schedules ask for, as far as the behaviour allows. They are also asked,
// and their answers recorded, while a cooldown holds the count, so that what they learned meanwhile counts when it is
// over.
func (a *Autoscaler) wanted(d *Decision, state *State, seen *Seen) int {
	coolsOut, coolsIn := a.cools(a.policy.ScaleOut, state, seen.Now), a.cools(a.policy.ScaleIn, state, seen.Now)
	blind := a.ask(d, state, seen)
	count := a.askedFor(d, blind)
	remembered := count
	if next := pending(d.Asked); next != nil {
		remembered = a.askedFor(&Decision{From: d.From, Asked: next, Guards: d.Guards}, blind)
	}
	state.Asked = keepRecent(state.Asked, seen.Now, a.remembered)
	stable, why := stabilise(&a.policy, state.Asked, seen.Now, seen.Count, count)
	a.remember(state, seen.Now, remembered)
	count = d.limit(stable, why)
	switch {
	case count > seen.Count && coolsOut, count < seen.Count && coolsIn:
		return d.limit(seen.Count,
			say("in cooldown: last change ", seen.Now.Sub(state.LastChange).Round(time.Second), " ago"))
	case count == seen.Count:
		return count
	}
	bounded := a.within(d, count)
	limited, why := limit(&a.policy, state.Changes, seen.Now, seen.Count, bounded)
	return d.limit(limited, why)
}

// askedFor returns the count that all metrics and schedules together ask for. blind is as in ask.
func (a *Autoscaler) askedFor(d *Decision, blind string) int {
	count := combine(d.Asked, d.From, a.least(d.From))
	if count < d.From && blind != "" {
		count = d.limit(d.From, say(blind, " is missing, so the role is not scaled in"))
	}
	return a.atLeast(d, count)
}

// remember records what was asked for, as far as that is needed. A repeated count is one entry, with the latest time.
func (a *Autoscaler) remember(state *State, now time.Time, count int) {
	last := len(state.Asked) - 1
	switch {
	case a.remembered == 0:
	case last >= 0 && state.Asked[last].Value == count:
		state.Asked[last].At = now
	default:
		state.Asked = append(state.Asked, At[int]{now, count})
	}
}

// cools reports whether a direction is in cooldown since the last change.
func (a *Autoscaler) cools(b domain.ScalingBehaviour, state *State, now time.Time) bool {
	since := now.Sub(state.LastChange)
	return since >= 0 && since < b.Cooldown.Or(0) // below 0 if the clock was set back
}

// rewind moves later times to now, as a clock may be set back.
func (s *State) rewind(now time.Time) {
	for _, list := range [...][]At[int]{s.Asked, s.Changes} {
		for i := len(list) - 1; i >= 0 && list[i].At.After(now); i-- {
			list[i].At = now
		}
	}
}

// ask records what the metrics and schedules ask for, and returns the name of a missing metric that keeps the role from
// being scaled in.
func (a *Autoscaler) ask(d *Decision, state *State, seen *Seen) (blind string) {
	if state.Metrics == nil {
		state.Metrics = make(map[string]Memory, len(a.metrics))
	}
	in := a.asking(d, state, seen)
	for i, name := range a.metrics {
		memory := state.recall(name, a.measure[i])
		d.Asked = append(d.Asked, Asked{Name: name, Value: math.NaN(), Known: true, Observed: a.follows[i].Observed()})
		asked := &d.Asked[len(d.Asked)-1]
		in.model = a.models[name]
		a.askMetric(asked, &a.follows[i], &memory, seen, in)
		state.keep(name, a.measure[i], memory)
		if !asked.Known {
			blind = name
		}
	}
	a.forgetMetrics(state)
	d.Asked = append(d.Asked, a.times.proposals(seen.Now)...)
	return blind
}

// asking returns the input that all metrics have in common.
func (a *Autoscaler) asking(d *Decision, state *State, seen *Seen) asking {
	in := asking{
		now: seen.Now, count: seen.Count, ready: seen.Ready, roles: seen.Roles, startup: state.Startup,
		policy: &a.policy, room: seen.Room, quiet: a.quiet,
		lastChange: state.LastChange, busy: seen.Busy, chooses: a.chooses,
	}
	_, in.needed = d.needed()
	if len(a.models) > 0 {
		in.observed = func(name string) (float64, string) {
			metric := a.policy.Metrics[name]
			found, missing := measured(&metric, name, seen)
			return found.Value, missing
		}
	}
	return in
}

// askMetric records what one metric asks for. in is the common input of all metrics.
func (a *Autoscaler) askMetric(asked *Asked, metric *domain.ScalingMetric, memory *Memory, seen *Seen, in asking) {
	in.answer, in.requested = seen.Answers[asked.Name], metric.Source.OfRequest()
	var missing, source string // source says where the algorithm's value comes from, if it is not the metric's
	measures := metric.Algorithm.Measures()
	if measures {
		in.metric, missing = measured(metric, asked.Name, seen)
	}
	asked.Why = missing
	if in.metric.Why == "" && !in.metric.At.IsZero() {
		asked.Age = max(seen.Now.Sub(in.metric.At), 0) // a value may be read after the decision's time
	}
	if missing == "" && measures {
		asked.Value = in.metric.Value
	}
	if asked.Observed {
		asked.Abstains = true
		if missing == "" {
			asked.Why = observed
		}
		return
	}
	if missing != "" {
		switch metric.MissingRule() {
		case domain.MissingMin:
			asked.Count = a.policy.Min
			return
		case domain.MissingMax:
			asked.Count = a.policy.Max
			return
		case domain.MissingAsValue:
			in.metric = Measurement{Value: *metric.MissingValue, At: seen.Now}
			source = say(missing, ", using ", *metric.MissingValue)
		default:
			asked.Known = false
			return
		}
	} else if f, known := lead(metric.Forecast, in.startup); known {
		if memory.Forecast == nil {
			memory.Forecast = &Trend{}
		}
		expected, more := memory.Forecast.expect(f, in.metric.At, asked.Value)
		if in.metric = in.metric.of(expected); !a.quiet {
			source = memory.Forecast.why(f, expected, more)
		}
	}
	p := propose(metric.Algorithm, memory, in)
	asked.Count, asked.Abstains, asked.Pending, asked.Why = p.count, p.abstains, p.pending, p.why
	if source != "" {
		asked.Why = say(source, ": ", p.why)
	}
}

// observed is why a metric without an algorithm asks for nothing.
const observed = "observed: the metric has no algorithm"

// measured returns the value of a metric, or why there is no usable one.
func measured(metric *domain.ScalingMetric, name string, seen *Seen) (Measurement, string) {
	found, there := seen.Metrics[name]
	switch {
	case !there:
		return found, "not measured"
	case found.Why != "":
		return found, found.Why
	case !finite(found.Value):
		return found, notANumber
	case seen.Now.Sub(found.At) > metric.Stale():
		return found, say("stale: its last value is ", seen.Now.Sub(found.At).Round(time.Second), " old")
	}
	return found, ""
}

// propose asks an algorithm.
func propose(a domain.ScalingAlgorithm, memory *Memory, in asking) proposal {
	switch {
	case a.Target != nil:
		return target(*a.Target, in)
	case a.Heat != nil:
		return heat(*a.Heat, memory, in)
	case a.Threshold != nil:
		return threshold(*a.Threshold, memory, in)
	case a.Queue != nil:
		return queue(*a.Queue, memory, in)
	case a.MarginalGain != nil:
		return marginalGain(*a.MarginalGain, memory, in)
	case a.External != nil:
		return external(in)
	case a.Risk != nil:
		return risk(*a.Risk, memory, in)
	case a.IdleRoom != nil:
		return idleRoom(*a.IdleRoom, in)
	case a.Learned != nil:
		return learned(*a.Learned, memory, in)
	}
	return ratio(*a.Ratio, in)
}

// least returns the count if no metric or schedule asks for one now: the minimum, or the present count if the policy
// has none that ever does.
func (a *Autoscaler) least(count int) int {
	if len(a.policy.Schedules) == 0 &&
		!slices.ContainsFunc(a.follows, func(m domain.ScalingMetric) bool { return !m.Observed() }) {
		return count
	}
	return a.policy.Min
}

// pending returns what will be asked for once the pending metrics act; nil if none is pending. In a stabilisation
// window, a metric that is beyond a threshold, but not for long enough, must not look like one that needs the present
// count.
func pending(asked []Asked) (next []Asked) {
	for i, a := range asked {
		if a.Pending == nil {
			continue
		}
		if next == nil {
			next = slices.Clone(asked)
		}
		next[i].Count, next[i].Abstains = *a.Pending, false
	}
	return next
}

// combine returns the largest count asked for. Observed metrics have no say. One that abstains changes nothing by
// itself, but no other goes below its count, and it counts if another adds members. If all abstain or are unknown, the
// result is the present count; if there is nothing to ask, it is least.
func combine(asked []Asked, count, least int) int {
	top, voices := -1, 0
	for _, a := range asked {
		if !a.Observed {
			voices++
		}
		if a.Known && !a.Abstains {
			top = max(top, a.Count)
		}
	}
	switch {
	case voices == 0:
		return least
	case top < 0:
		return count
	}
	for _, a := range asked {
		switch {
		case !a.Known || !a.Abstains || a.Observed:
		case top > count:
			top = max(top, a.Count)
		default:
			top = max(top, min(a.Count, count))
		}
	}
	return top
}
