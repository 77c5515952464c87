package autoscale

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// risk keeps the share of time with too few members at the given percentage, with as few members as that takes. It
// counts loads in members: 1 is the load that one member can carry.
//
// It makes several forecasts of the load at the time when a member ordered now would be ready, and remembers the error
// of each: see [riskForecast]. The one that was best recently, by the pinball loss of the requested quantile, decides.
// It picks the count with the lowest cost:
//
//	count + price × chance that the load is more than the count carries
//
// So the allowed risk is taken where it saves most members, for example where the next jump can't be predicted. The
// price of being short adapts: it rises while there are too few members, and falls slowly while there are enough, in
// such a ratio that both balance at the requested share. That holds for any load, however good the forecasts are
// (adaptive conformal inference: Gibbs and Candès, Adaptive conformal inference under distribution shift, NeurIPS
// 2021).
//
// If there were too few members for longer than allowed anyway, it asks for as many as the load needs now, whatever the
// price.
//
// The present count stays if another one is cheaper by no more than the policy's tolerance.
//
// If all members are at their capacity, their mean does not show how much more load there is; it is then assumed to be
// half as much again.
//
// What m.Risk points to is changed in place.
func risk(a domain.RiskAlgorithm, m *Memory, in asking) proposal {
	value, carrying := in.metric.Value/a.Carried(), in.ready
	switch {
	case !finite(in.metric.Value):
		return undecided(in, notANumber)
	case a.Per != domain.TargetTotal && in.count <= 0:
		return undecided(in, "no members, so nothing to measure")
	case a.Per != domain.TargetTotal:
		if carrying = in.active(); carrying <= 0 {
			return undecided(in, "no member is ready")
		}
		if value *= float64(carrying); value >= saturated*float64(carrying) {
			value *= beyondSaturated
		}
	}
	load := min(max(value, 0), mostLoad)
	r := m.Risk
	if r == nil || r.Capacity != a.Carried() || len(r.Forecasts) == 0 {
		r = newRisk(a.Carried(), load)
		m.Risk = r
	}
	share, lead := a.Percent/100, riskLead(in)
	r.take(in.metric.At, lead, load, load > float64(carrying)*(1+rounding), share)
	forecast, price, needed := &r.Forecasts[r.Best], r.priced(r.Best, share), 0
	if r.overspent(share) {
		needed = wholeMembers(load)
	}
	count := max(forecast.cheapest(price), needed)
	if count < in.count {
		count = max(count, min(in.count, wholeMembers(load)))
	}
	stays := count != in.count && in.count >= needed &&
		forecast.cost(in.count, price)-forecast.cost(count, price) < riskTolerance(in, count)
	if stays {
		count = in.count
	}
	if in.quiet {
		return proposal{count: count}
	}
	return proposal{count: count, why: r.why(a, lead, load, count, stays)}
}

const (
	// saturated is the fraction of their capacity from which members may have more work than is visible, and
	// beyondSaturated the assumed factor.
	saturated, beyondSaturated = 0.999, 1.5
	// mostLoad bounds loads so that nothing computed from them overflows. It is far beyond any role.
	mostLoad = 100 * domain.MaxReplicas
	// unknownStartup is how long members are assumed to take to start until that is known.
	unknownStartup = time.Minute
)

// riskLead returns how far ahead to forecast: until what is ordered now is ready, and until that can be observed.
func riskLead(in asking) time.Duration {
	startup := in.startup
	if startup <= 0 {
		startup = unknownStartup
	}
	return min(max(startup, in.policy.Every()), 24*time.Hour)
}

// riskTolerance returns by how many members another count has to be cheaper.
func riskTolerance(in asking, count int) float64 {
	behaviour := &in.policy.ScaleIn
	if count > in.count {
		behaviour = &in.policy.ScaleOut
	}
	tolerance := domain.DefaultTolerance
	if behaviour.Tolerance != nil {
		tolerance = *behaviour.Tolerance
	}
	return tolerance * float64(in.count)
}

// Risk is what is known of a load, and of how well it was forecast: some 3 KB of JSON.
type Risk struct {
	// Capacity is the capacity of a member with which this was learned.
	Capacity float64 `json:"capacity"`
	// At is the time of the newest learned value. Step is the typical time between two, in seconds; 0 before the
	// second.
	At   time.Time `json:"at,omitzero"`
	Step float64   `json:"step,omitempty"`
	// Price is the logarithm of the price of being short, relative to what it would be if errors were distributed
	// exponentially.
	Price float64 `json:"price"`
	// Short is how long there were too few members, out of Total, both in seconds with older ones weighted less.
	Short float64 `json:"short"`
	Total float64 `json:"total"`
	// Forecasts are in the order of riskForecasts, and Best is the index of the one that decides.
	Forecasts []riskForecast `json:"forecasts"`
	Best      int            `json:"best"`
	// Made are the forecasts whose time has not come yet, oldest first.
	Made []At[[]float64] `json:"made,omitempty"`
	// Hour and Day are the hourly and the daily season.
	Hour riskSeason `json:"hour"`
	Day  riskSeason `json:"day"`
}

func newRisk(capacity, load float64) *Risk {
	r := &Risk{Capacity: capacity, Hour: newRiskSeason(time.Hour, load), Day: newRiskSeason(24*time.Hour, load)}
	for range riskForecasts {
		r.Forecasts = append(r.Forecasts, newRiskForecast(load))
	}
	return r
}

// The competing forecasts: the newest value, two smoothed ones, and two seasonal ones.
const (
	riskNewest = iota
	riskSmooth
	riskSmoother
	riskHourly
	riskDaily
	riskForecasts
)

// Time constants of what is learned. Those of smoothing are multiples of the lead.
const (
	smoothLeads, smootherLeads = 1, 4
	shareMemory                = 7 * 24 * time.Hour
	priceMemory                = 24 * time.Hour
	// aimedAt is the fraction of the requested share at which the price aims, as it reacts some minutes late.
	aimedAt = 0.95
	// mostPrice bounds the logarithm of the price, so that it recovers in time after days in which nothing could be
	// done.
	leastPrice, mostPrice = -6, 6
	// priceLeeway is how much of the requested share may be used up before the price is ignored.
	priceLeeway = 1.25
	// mostUrgency bounds how much the share so far raises the price of being short.
	mostUrgency = 3
	// madeALead is the maximum number of forecasts remembered per lead.
	madeALead = 8
)

// take learns from a load at a time, and from whether it was more than the members carried, and forecasts a lead ahead.
// A value that is not newer than the last one changes nothing in the state.
func (r *Risk) take(at time.Time, lead time.Duration, load float64, short bool, share float64) {
	elapsed := at.Sub(r.At).Seconds()
	switch {
	case r.At.IsZero():
		r.At = at
		r.foresee(at, lead)
		return
	case elapsed < 0 && -elapsed > gapSteps*max(r.Step, 1): // a clock that was set back
		r.At, r.Made = at, nil
		return
	case elapsed <= 0:
		return
	}
	r.Forecasts[riskNewest].Level = load
	if elapsed < lead.Seconds()/madeALead {
		return // values that come faster than anything can be done add nothing, and cost time
	}
	usual := elapsed
	switch {
	case r.Step == 0:
		r.Step = elapsed
	case elapsed > gapSteps*r.Step:
		usual = r.Step // the load during the gap is unknown
		r.Step = min(2*r.Step, elapsed)
	default:
		r.Step += (elapsed - r.Step) / 10
	}
	r.account(usual, short, share)
	for len(r.Made) > 0 && !r.Made[0].At.After(at) {
		made := r.Made[0]
		r.Made = r.Made[1:]
		if at.Sub(made.At).Seconds() <= lead.Seconds()+gapSteps*r.Step {
			r.compare(made.Value, load, max(usual, lead.Seconds()/madeALead), share)
		}
	}
	r.At = at
	for i, leads := range [...]float64{riskSmooth: smoothLeads, riskSmoother: smootherLeads} {
		if leads > 0 {
			level := &r.Forecasts[i].Level
			*level += -math.Expm1(-elapsed/(leads*lead.Seconds())) * (load - *level)
		}
	}
	for i, season := range [...]*riskSeason{riskHourly: &r.Hour, riskDaily: &r.Day} {
		if season != nil {
			season.take(at, usual, seasonLeads*lead.Seconds(), load)
			r.Forecasts[i].Level = min(season.at(at.Add(lead)), mostLoad)
		}
	}
	r.foresee(at, lead)
}

// foresee records the present forecasts.
func (r *Risk) foresee(at time.Time, lead time.Duration) {
	due, last := at.Add(lead), len(r.Made)-1
	if last >= 0 && due.Sub(r.Made[last].At) < lead/madeALead || len(r.Made) > 2*madeALead {
		return
	}
	levels := make([]float64, riskForecasts)
	for i := range levels {
		levels[i] = r.Forecasts[i].Level
	}
	r.Made = append(r.Made, At[[]float64]{due, levels})
}

// account adjusts the price by whether there were too few members for some seconds.
func (r *Risk) account(seconds float64, short bool, share float64) {
	kept, was := math.Exp(-seconds/shareMemory.Seconds()), 0.0
	if short {
		was = 1
	}
	r.Short = r.Short*kept + was*seconds
	r.Total = r.Total*kept + seconds
	share *= aimedAt
	r.Price += (was - share) / share * seconds / priceMemory.Seconds()
	r.Price = min(max(r.Price, leastPrice), mostPrice)
}

// priced returns the price of being short by a forecast, in members. If its errors were distributed exponentially, a
// Price of 0 would result in the requested share.
func (r *Risk) priced(forecast int, share float64) float64 {
	share *= aimedAt
	urgency := 0.0
	if r.Total > 0 {
		urgency = min((r.Short/r.Total-share)/share*min(1, r.Total/priceMemory.Seconds()), mostUrgency)
	}
	return math.Exp(r.Price+urgency) * r.Forecasts[forecast].Usual / share
}

// overspent reports whether there were too few members for longer than the policy allows. The load is then met at any
// cost, as the price alone takes hours to rise after errors close to zero, as before the first load. After a day of
// learning, the policy has some leeway.
func (r *Risk) overspent(share float64) bool {
	allowed := share * r.Total
	if r.Total >= priceMemory.Seconds() {
		allowed *= priceLeeway
	}
	return r.Short > allowed
}

// compare updates the errors of the forecasts with the actual load, and chooses the one that decides.
func (r *Risk) compare(levels []float64, load, seconds, share float64) {
	for i := range r.Forecasts {
		r.Forecasts[i].compare(levels[i], load, seconds, share, r.priced(i, share))
	}
	best := r.Best
	for i := range r.Forecasts {
		if r.Forecasts[i].Loss < r.Forecasts[best].Loss {
			best = i
		}
	}
	if r.Forecasts[best].Loss < (1-clearlyBetter)*r.Forecasts[r.Best].Loss {
		r.Best = best
	}
}

// clearlyBetter is the fraction by which another forecast has to be better to take over.
const clearlyBetter = 0.05

// why describes the expected load, the margin, and the result so far.
func (r *Risk) why(a domain.RiskAlgorithm, lead time.Duration, load float64, count int, stays bool) string {
	level := r.Forecasts[r.Best].Level
	enough, so := ": ", ""
	if stays {
		enough = ", which is not worth a change from "
	}
	if r.Total > 0 {
		so = say("; too few for ", 100*r.Short/r.Total, " % of the time so far (", a.Percent, " % allowed)")
	}
	return say("the load of ", load, plural(wholeMembers(load)), ", ", level, " expected in ", lead, " by ",
		riskNames[r.Best],
		", with a margin of ", max(float64(count)-level, 0), enough, count, so)
}

var riskNames = [...]string{
	riskNewest: "the newest value", riskSmooth: "the mean", riskSmoother: "the longer mean", riskHourly: "the hour",
	riskDaily: "the day",
}

// UnmarshalJSON reads stored state. Impossible values are dropped, as they would keep the policy from deciding, or from
// storing anything.
func (r *Risk) UnmarshalJSON(text []byte) error {
	type plain Risk
	var stored plain
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	if *r = Risk(stored); !r.sound() {
		*r = Risk{}
	}
	return nil
}

func (r *Risk) sound() bool {
	within := func(value, least, most float64) bool { return value >= least && value <= most }
	return r.Capacity > 0 && within(r.Step, 0, mostStep) && within(r.Price, leastPrice, mostPrice) &&
		within(r.Short, 0, mostStep) && within(r.Total, 0, mostStep) && r.Short <= r.Total &&
		len(r.Forecasts) == riskForecasts &&
		r.Best >= 0 && r.Best < riskForecasts && len(r.Made) <= 2*madeALead+1 && r.Hour.sound(time.Hour) &&
		r.Day.sound(24*time.Hour) &&
		!slices.ContainsFunc(r.Forecasts, func(f riskForecast) bool { return !f.sound() }) &&
		!slices.ContainsFunc(r.Made, func(made At[[]float64]) bool {
			return len(made.Value) != riskForecasts ||
				slices.ContainsFunc(made.Value, func(level float64) bool { return !within(level, 0, mostLoad) })
		})
}
