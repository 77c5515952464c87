package domain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds for policies.
const (
	MinScalingInterval = time.Second
	MaxScalingInterval = time.Hour
	MinStaleAfter      = time.Second
	MinRatePeriod      = time.Second
	MaxRatePeriod      = 30 * time.Minute
	MaxStabilisation   = time.Hour
	// MinSeasonLeads is the minimum ratio of a forecast's season to its lead. The seasonal profile at the time ahead
	// must still come from earlier seasons.
	MinSeasonLeads = 10
)

// Validate returns what is wrong with the policy, regardless of its cluster. Package autoscale checks cron expressions
// and time zones.
func (p AutoscalingPolicy) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"group"}, "group", p.Group)
	CheckName(&ps, Path{"role"}, "role", p.Role)
	p.validateCounts(&ps)
	checkDuration(&ps, Path{"interval"}, "Invalid interval", p.Interval, MinScalingInterval, MaxScalingInterval)
	p.validateFollowed(&ps)
	for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
		at := Path{"metrics", Key(name)}
		checkLabel(&ps, at, "metric", name)
		p.Metrics[name].validate(&ps, at, p.Role)
		p.validateObserves(&ps, name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Schedules)) {
		at := Path{"schedules", Key(name)}
		checkLabel(&ps, at, "schedule", name)
		if _, taken := p.Metrics[name]; taken {
			ps.Add(at, "Name used twice",
				"%q is also the name of a metric, and decisions and Prometheus metrics distinguish them by name only; "+
					"use another name",
				name)
			ps.DecidedBy([]Path{at, {"metrics", Key(name)}})
		}
		p.validateSchedule(&ps, at, p.Schedules[name])
	}
	p.validateWaking(&ps)
	p.ScaleOut.validate(&ps, Path{"scale_out"})
	p.ScaleIn.validate(&ps, Path{"scale_in"})
	p.Guards.validate(&ps, Path{"guards"})
	p.Hooks.validate(&ps, Path{"hooks"})
	if p.Vertical != nil {
		p.Vertical.validate(&ps, Path{"vertical"})
	}
	if p.Paused != "" && !slices.Contains(ScalingPauses, p.Paused) {
		ps.Add(Path{"paused"}, "Unknown pause", "unknown value %q; use one of %q", p.Paused, ScalingPauses)
	}
	if p.OnDestroy != "" && !slices.Contains(OnDestroys, p.OnDestroy) {
		ps.Add(Path{"on_destroy"}, "Unknown value", "unknown value %q; use one of %q", p.OnDestroy, OnDestroys)
	}
	return ps
}

// validateFollowed finds policies in which nothing ever asks for a count.
func (p AutoscalingPolicy) validateFollowed(ps *Problems) {
	switch followed := p.followed(); {
	case len(followed) > 0 || len(p.Schedules) > 0 || p.Vertical != nil:
		return
	case len(p.Metrics) == 0:
		ps.Add(Path{"metrics"}, "Nothing to follow",
			"the policy has no metrics, schedules or vertical, so it would never change anything; add at least "+
				"one of them")
	default:
		ps.Add(Path{"metrics"}, "Nothing to follow",
			"%q have no algorithm: they are only observed, so the policy would never change the count; "+
				"give one of them an algorithm, add a metric whose algorithm is external, which receives their "+
				"values, or add a schedule",
			slices.Sorted(maps.Keys(p.Metrics)))
	}
	ps.DecidedBy([]Path{{"metrics"}, {"schedules"}, {"vertical"}})
}

// followed returns the names of the metrics that ask for a count, sorted.
func (p AutoscalingPolicy) followed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Metrics)),
		func(name string) bool { return p.Metrics[name].Observed() })
}

func (p AutoscalingPolicy) validateCounts(ps *Problems) {
	if p.Min < 0 || p.Min > MaxReplicas {
		ps.Add(Path{"min"}, "Invalid number of members", "must be between 0 and %d, got %d", MaxReplicas, p.Min)
	}
	if least := max(p.Min, 0); p.Max < least || p.Max > MaxReplicas {
		ps.Add(Path{"max"}, "Invalid number of members", "must be between %d (min) and %d, got %d", least, MaxReplicas,
			p.Max)
		return
	}
	if p.Initial != nil && (*p.Initial < p.Min || *p.Initial > p.Max) {
		ps.Add(Path{"initial"}, "Invalid number of members", "must be between %s, got %d", p.bounds(), *p.Initial)
		ps.DecidedBy([]Path{{"initial"}, {"min"}, {"max"}})
	}
}

// bounds describes the counts that the policy allows.
func (p AutoscalingPolicy) bounds() string {
	return fmt.Sprintf("%d (min) and %d (max)", p.Min, p.Max)
}

func (p AutoscalingPolicy) validateSchedule(ps *Problems, at Path, s ScalingSchedule) {
	const example = "a cron expression, such as \"0 8 * * MON-FRI\""
	for _, edge := range []struct{ name, value string }{{"start", s.Start}, {"end", s.End}} {
		if strings.TrimSpace(edge.value) == "" {
			ps.Add(at.At(edge.name), "Missing time", "must be %s, got %q", example, edge.value)
		}
	}
	if s.Start != "" && s.Start == s.End {
		ps.Add(at.At("end"), "Schedule never ends",
			"start and end are both %q, so the schedule would never end; use a different end", s.End)
	}
	if s.Count < p.Min || s.Count > p.Max {
		ps.Add(at.At("count"), "Invalid number of members", "must be between %s, got %d", p.bounds(), s.Count)
		ps.DecidedBy([]Path{at.At("count"), {"min"}, {"max"}})
	}
}

// validateWaking finds policies under which a role that was scaled to 0 never has members again.
func (p AutoscalingPolicy) validateWaking(ps *Problems) {
	followed := p.followed()
	if p.Min != 0 || p.Max <= 0 || len(followed) == 0 {
		return
	}
	if p.Guards.AtLeast != nil {
		return
	}
	for _, m := range p.Metrics {
		if m.wakes(p.Role) {
			return
		}
	}
	for _, s := range p.Schedules {
		if s.Count > 0 {
			return
		}
	}
	ps.Add(Path{"min"}, "Cannot scale up from 0",
		"min is 0, and once there are no members, %q would never ask for any, as they depend on existing members; "+
			"set min to 1 or more, set on_missing = %q, or add guards.at_least, a schedule that asks for 1 or more, "+
			"or a metric that has a value without members: queue, ratio, external, idle_room, target, risk or learned "+
			"with per = %q, or threshold with upper, whose source is neither agent nor the progress of role %q",

		followed, MissingMax, TargetTotal, p.Role)
	ps.DecidedBy([]Path{{"min"}, {"max"}, {"metrics"}, {"schedules"}, {"guards", "at_least"}})
}

// wakes reports whether the metric can ask for members while the policy's role has none: either it then has a value and
// an algorithm that does not depend on the present count, or it asks for the maximum count if it has none.
func (m ScalingMetric) wakes(role string) bool {
	switch a := m.Algorithm; {
	case m.MissingRule() == MissingMax:
		return true
	case m.MissingRule() != MissingAsValue && a.Measures() && m.Source.OfRole(role):
		return false
	case a.Queue != nil, a.Ratio != nil, a.External != nil, a.IdleRoom != nil:
		return true
	case a.Target != nil:
		return a.Target.Per == TargetTotal
	case a.Risk != nil:
		return a.Risk.Per == TargetTotal
	case a.Learned != nil:
		return a.Learned.Per == TargetTotal
	case a.Threshold != nil:
		return a.Threshold.Upper != nil // no step is less than 1, whatever its percentage
	}
	return false
}

func (m ScalingMetric) validate(ps *Problems, at Path, role string) {
	m.Algorithm.validate(ps, at.At("algorithm"), role)
	m.validateWindow(ps, at)
	if m.Observed() {
		m.validateObserved(ps, at)
		return
	}
	checkDuration(ps, at.At("stale_after"), "Invalid age", m.StaleAfter, MinStaleAfter, math.MaxInt64)
	if m.OnMissing != "" && !slices.Contains(OnMissings, m.OnMissing) {
		ps.Add(at.At("on_missing"), "Unknown rule", "unknown rule %q; use one of %q", m.OnMissing, OnMissings)
	}
	switch asValue := m.MissingRule() == MissingAsValue; {
	case asValue && m.MissingValue == nil:
		ps.Add(at.At("missing_value"), "Missing value", "on_missing = %q needs a value: set missing_value to 0 or more",
			MissingAsValue)
		ps.DecidedBy([]Path{at.At("missing_value"), at.At("on_missing")})
	case !asValue && m.MissingValue != nil:
		ps.Add(at.At("missing_value"), "Value not used",
			"missing_value is %s, but on_missing = %q does not use it; leave it out, or set on_missing = %q",

			number(*m.MissingValue), m.MissingRule(), MissingAsValue)
		ps.DecidedBy([]Path{at.At("missing_value"), at.At("on_missing")})
	case asValue:
		checkNumber(ps, at.At("missing_value"), "Invalid value", *m.MissingValue, math.Inf(1))
	}
	if m.Forecast != nil {
		m.validateForecast(ps, at.At("forecast"))
	}
}

// validateObserved finds attributes that only matter to an algorithm, on a metric without one.
func (m ScalingMetric) validateObserved(ps *Problems, at Path) {
	checkDuration(ps, at.At("stale_after"), "Invalid age", m.StaleAfter, MinStaleAfter, math.MaxInt64)
	for _, rule := range []struct {
		name  string
		given bool
	}{{"on_missing", m.OnMissing != ""}, {"missing_value", m.MissingValue != nil}, {"forecast", m.Forecast != nil}} {
		if rule.given {
			ps.Add(at.At(rule.name), "Rule not used",
				"a metric without an algorithm is only observed; leave %s out, or give the metric an algorithm",
				rule.name)
			ps.DecidedBy([]Path{at.At(rule.name), at.At("algorithm")})
		}
	}
}

func (m ScalingMetric) validateForecast(ps *Problems, at Path) {
	f := *m.Forecast
	switch {
	case m.Algorithm.MarginalGain != nil || m.Algorithm.Ratio != nil:
		ps.Add(at, "Forecast not supported", "algorithms marginal_gain and ratio follow measured progress and the "+
			"number of other members, which can't be forecast; leave it out")
	case m.Algorithm.IdleRoom != nil:
		ps.Add(at, "Forecast not supported",
			"algorithm idle_room uses the room available now, which can't be forecast; leave it out")
	case m.Algorithm.External != nil:
		ps.Add(at, "Forecast not supported",
			"algorithm external receives the measured values, and may forecast by itself; leave it out")
	case m.Algorithm.Risk != nil:
		ps.Add(at, "Forecast not supported",
			"algorithm risk already looks ahead for as long as members take to start; leave it out")
	case m.Algorithm.Learned != nil:
		ps.Add(at, "Forecast not supported",
			"algorithm learned already looks ahead by the change of the load; leave it out")
	}
	switch {
	case f.Lead < 0:
		ps.Add(at.At("lead"), "Invalid lead",
			"must not be negative, got %s; set the time that a member takes to start, or 0s to learn it from "+
				"the members",
			f.Lead)
	case f.Season == nil:
	case *f.Season <= 0:
		ps.Add(at.At("season"), "Invalid season", "must be positive, such as 24h for a day, got %s", *f.Season)
	case *f.Season/MinSeasonLeads < f.Lead:
		ps.Add(at.At("season"), "Invalid season",
			"%s is too short for a lead of %s; it must be at least %d times the lead, such as 24h for a day", *f.Season,
			f.Lead, MinSeasonLeads)
	}
}

func (b ScalingBehaviour) validate(ps *Problems, at Path) {
	checkDuration(ps, at.At("stabilisation_window"), "Invalid time", b.Stabilisation, 0, MaxStabilisation)
	if t := b.Tolerance; t != nil && !(*t >= 0 && *t < 1) {
		ps.Add(at.At("tolerance"), "Invalid tolerance", "must be at least 0 and below 1, such as 0.1 for 10 %%, got %s",
			number(*t))
	}
	for i, r := range b.Rates {
		r.validate(ps, at.At("rates", i))
	}
	if b.Select != "" && !slices.Contains(RateSelects, b.Select) {
		ps.Add(at.At("select"), "Unknown rule", "unknown rule %q; use one of %q", b.Select, RateSelects)
	}
	checkDuration(ps, at.At("cooldown"), "Invalid time", b.Cooldown, 0, math.MaxInt64)
	if b.MaxStep < 0 || b.MaxStep > MaxReplicas {
		ps.Add(at.At("max_step"), "Invalid step", "must be between 1 and %d, or 0 for no limit, got %d", MaxReplicas,
			b.MaxStep)
	}
}

func (r ScalingRate) validate(ps *Problems, at Path) {
	switch {
	case r.Count == 0 && r.Percent == 0:
		ps.Add(at, "Empty rate", "a rate needs a count or a percent above 0; to allow no changes, set select = %q",
			SelectDisabled)
	case r.Count != 0 && r.Percent != 0:
		ps.Add(at, "Conflicting count and percent",
			"count (%d) and percent (%s) are mutually exclusive; define a rate for each", r.Count, number(r.Percent))
	case r.Count < 0:
		ps.Add(at.At("count"), "Invalid rate", "must be 1 or more, got %d", r.Count)
	case r.Count == 0:
		checkPositive(ps, at.At("percent"), "Invalid rate", r.Percent)
	}
	checkDuration(ps, at.At("period"), "Invalid period", &r.Period, MinRatePeriod, MaxRatePeriod)
}

// checkLabel adds a problem if a user-chosen name does not fit into a line of text.
func checkLabel(ps *Problems, at Path, what, name string) {
	printable := !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) })
	if strings.TrimSpace(name) == "" || len(name) > MaxNameLength || !printable {
		ps.Add(at, "Invalid "+what+" name", "must have 1 to %d printable characters, got %q", MaxNameLength, name)
	}
}

// checkThresholds checks a lower and an upper threshold, either of which may be nil.
func checkThresholds(ps *Problems, at Path, lower, upper *float64) {
	if lower != nil {
		checkNumber(ps, at.At("lower"), "Invalid threshold", *lower, math.Inf(1))
	}
	if upper != nil {
		checkNumber(ps, at.At("upper"), "Invalid threshold", *upper, math.Inf(1))
	}
	if lower != nil && upper != nil && *lower >= *upper {
		ps.Add(at.At("lower"), "Thresholds in the wrong order", "lower (%s) must be below upper (%s)", number(*lower),
			number(*upper))
		ps.DecidedBy([]Path{at.At("lower"), at.At("upper")})
	}
}

// checkPositive adds a problem if a number is not finite and above 0.
func checkPositive(ps *Problems, at Path, summary string, value float64) {
	if !(value > 0) || math.IsInf(value, 0) {
		ps.Add(at, summary, "must be above 0, got %s", number(value))
	}
}

// checkNumber adds a problem if a number is not finite, below 0 or above most.
func checkNumber(ps *Problems, at Path, summary string, value, most float64) {
	if value >= 0 && value <= most && !math.IsInf(value, 0) {
		return
	}
	if math.IsInf(most, 0) {
		ps.Add(at, summary, "must be 0 or more, got %s", number(value))
		return
	}
	ps.Add(at, summary, "must be between 0 and %s, got %s", number(most), number(value))
}

// checkDuration adds a problem if a duration is not between least and most, inclusive.
func checkDuration(ps *Problems, at Path, summary string, value *Duration, least, most time.Duration) {
	switch {
	case value == nil || time.Duration(*value) >= least && time.Duration(*value) <= most:
	case most == math.MaxInt64:
		ps.Add(at, summary, "must be at least %s, got %s", least, *value)
	default:
		ps.Add(at, summary, "must be between %s and %s, got %s", least, most, *value)
	}
}

// number formats a number the way a user would write it.
func number(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
