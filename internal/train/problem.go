package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Prices are costs in one unit of your choice. The reward of a decision is the negative cost up to the next one:
//
//	reward = −(member-hours × Member)
//	         −(hours with more load than the members carry × Under)
//	         −(changes of the count × Change)
type Prices struct {
	// Member is the price of a member-hour, Under of an hour with too few members, and Change of one change of the
	// count.
	Member, Under, Change float64
}

// DefaultPrices are in member-hours: an hour with too few members costs as much as 100, and a change as much as 36
// seconds of one.
var DefaultPrices = Prices{Member: 1, Under: 100, Change: 0.01}

// Cost returns the total cost.
func (p Prices) Cost(memberHours float64, under time.Duration, changes int) float64 {
	return memberHours*p.Member + under.Hours()*p.Under + float64(changes)*p.Change
}

// Of returns the cost of a course.
func (p Prices) Of(c autoscale.Course) float64 { return p.Cost(c.MemberHours, c.Under, c.Changes) }

// Problem is what to learn: to carry a load at the lowest cost.
type Problem struct {
	Trace autoscale.Trace
	// Capacity is the load that a member can carry, and Bound the fraction of it beyond which there are too few
	// members.
	Capacity, Bound float64
	// Startup and Change are as in [autoscale.Model].
	Startup  time.Duration
	Change   autoscale.ChangeCost
	Min, Max int
	// Interval is the time between two decisions.
	Interval time.Duration
	Prices   Prices
	// Observes are the features that the model uses from other metrics. LatencyBound is the bound that latencies are
	// measured against.
	Observes     []string
	LatencyBound time.Duration
}

// metric is the name of the learned metric.
const metric = "load"

// Model returns the model of members for backtests of the problem. Metrics of features are named after them.
func (p Problem) Model() autoscale.Model {
	signals := map[string]autoscale.Signal{metric: autoscale.SignalLoad}
	for _, feature := range p.Observes {
		signals[metricOf(feature)] = autoscale.FeatureSignals[feature]
	}
	return autoscale.Model{Capacity: p.Capacity * p.Bound, Startup: p.Startup, Change: p.Change, Signals: signals}
}

// metricOf returns the name of a feature's metric.
func metricOf(feature string) string { return strings.ReplaceAll(feature, "_", "-") }

// Policy returns the policy with a model. Only the model and the bounds limit it.
func (p Problem) Policy(model string) domain.AutoscalingPolicy {
	none, every, initial := domain.Duration(0), domain.Duration(p.Interval), p.Initial()
	learned := &domain.LearnedAlgorithm{
		Model: domain.NewLearnedModel(model), Capacity: p.Capacity, Per: domain.TargetTotal,
		LatencyBound: p.LatencyBound.Seconds(), Observes: map[string]string{},
	}
	metrics := map[string]domain.ScalingMetric{metric: {Algorithm: domain.ScalingAlgorithm{Learned: learned}}}
	for _, feature := range p.Observes {
		learned.Observes[feature] = metricOf(feature)
		metrics[metricOf(feature)] = domain.ScalingMetric{}
	}
	return domain.AutoscalingPolicy{
		Cluster: "training", Group: "training", Role: "training", Min: p.Min, Max: p.Max, Initial: &initial,
		Interval: &every, Metrics: metrics,
		ScaleIn: domain.ScalingBehaviour{Stabilisation: &none},
	}
}

// Initial returns the initial count of evaluations: what the load needs then.
func (p Problem) Initial() int {
	if len(p.Trace.Load) == 0 {
		return p.Min
	}
	return p.needs(p.Trace.Load[0])
}

// needs returns the count that a load needs, within the bounds.
func (p Problem) needs(load float64) int {
	return max(int(math.Ceil(min(load/(p.Capacity*p.Bound), float64(p.Max)))), p.Min)
}

// towards returns the action that moves a count towards another one, if it is allowed.
func towards(count, to int, allowed [qmodel.NumActions]bool) int {
	switch {
	case to > count && allowed[qmodel.Up]:
		return qmodel.Up
	case to < count && allowed[qmodel.Down]:
		return qmodel.Down
	}
	return qmodel.Stay
}

// Decisions returns how many decisions an evaluation over the trace takes.
func (p Problem) Decisions() int {
	return int(time.Duration(len(p.Trace.Load)) * p.Trace.Step / p.Interval)
}

// rehearsal returns the simulation in which actions are tried.
func (p Problem) rehearsal() (*autoscale.Rehearsal, error) {
	blank, err := qmodel.New(qmodel.DQN, append([]string{qmodel.Features[qmodel.Load].Name}, p.Observes...)).Encode()
	if err != nil {
		return nil, err
	}
	return autoscale.NewRehearsal(p.Policy(string(blank)), p.Trace, p.Model())
}

// episode is the maximum number of decisions in an episode.
const episode = 500

// scaling is the environment of a problem. Episodes begin anywhere in the trace, with any count, so that only
// observations can be learned, not the trace by heart.
type scaling struct {
	problem   Problem
	rehearsal *autoscale.Rehearsal
	normal    normal
	left      int
	seen      Observation
	discount  float64
	// unit is the cost of an interval at its worst, by which rewards are divided.
	unit float64
}

func newScaling(p Problem, n normal, discount float64) (*scaling, error) {
	r, err := p.rehearsal()
	unit := p.Interval.Hours() * max(p.Prices.Under, p.Prices.Member*float64(p.Max))
	return &scaling{
		problem: p, rehearsal: r, normal: n, discount: discount, unit: unit,
		seen: Observation{Features: make([]float32, len(n.places))},
	}, err
}

// Features returns the number of informative features.
func (s *scaling) Features() int { return len(s.normal.places) }

// Begin starts an episode at a random time with a random count.
func (s *scaling) Begin(random *rand.Rand) {
	s.left = episode
	s.rehearsal.Begin(s.problem.Interval*time.Duration(random.IntN(s.problem.Decisions())),
		s.problem.Min+random.IntN(s.problem.Max-s.problem.Min+1))
}

// Next makes one decision.
func (s *scaling) Next(act func(*Observation) int) (reward float64, more bool) {
	before := s.potential()
	spent := s.rehearsal.Next(func(state qmodel.State, allowed [qmodel.NumActions]bool) int {
		s.normal.apply(s.seen.Features, state)
		s.seen.Allowed = allowed
		return act(&s.seen)
	})
	s.left--
	cost := s.problem.Prices.Cost(spent.MemberHours, spent.Under, spent.Changes)
	return (-cost + s.discount*s.potential() - before) / s.unit, s.left > 0 && !s.rehearsal.Ended()
}

// potential returns the negative cost of missing members: being short for as long as it takes to add them one by one.
// Rewards are shaped by its differences, which does not change the best policy (A. Ng et al., 1999): each ordered
// member pays at once, not only when the last one is there.
func (s *scaling) potential() float64 {
	p := &s.problem
	load, count := s.rehearsal.Now()
	missing := max(min(load/(p.Capacity*p.Bound), float64(p.Max))-float64(count), 0)
	return -missing * p.Prices.Cost(0, max(p.Startup+p.Change.Takes, p.Interval), 0)
}

// normal is which features are informative, and how they are normalised: (value − mean) / scale.
type normal struct {
	places      []int
	mean, scale []float64
	// varies is false for features that are used although they are constant wherever there is a choice.
	varies []bool
}

func (n normal) apply(features []float32, state qmodel.State) {
	for i, place := range n.places {
		features[i] = float32((state[place] - n.mean[i]) / n.scale[i])
	}
}

// measureDecisions is the number of random decisions for measuring features.
const measureDecisions = 5000

// measure takes half of its decisions at random and half towards the count that the load needs, and returns the
// distribution of features in states with a choice, most of which a good policy would see, too. Features that never
// change, and those that need another metric, are left out.
func measure(p Problem, seed uint64) (normal, error) {
	s, err := newScaling(p, normal{}, 0)
	if err != nil {
		return normal{}, err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var sum, squares qmodel.State
	seen := 0.0
	choose := func(state qmodel.State, allowed [qmodel.NumActions]bool) int {
		o := Observation{Allowed: allowed}
		if o.choices() == 1 {
			return first(allowed)
		}
		seen++
		for i, v := range state {
			sum[i] += v
			squares[i] += float64(v * v)
		}
		load, count := s.rehearsal.Now()
		if random.Float64() < 0.5 {
			return o.random(random)
		}
		return towards(count, p.needs(load), allowed)
	}
	for range measureDecisions {
		if s.left == 0 || s.rehearsal.Ended() {
			s.Begin(random)
		}
		s.left--
		s.rehearsal.Next(choose)
	}
	var n normal
	for i, f := range qmodel.Features {
		mean := sum[i] / max(seen, 1)
		scale := math.Sqrt(max(squares[i]/max(seen, 1)-float64(mean*mean), 0))
		varies := scale > 1e-6
		if !varies {
			scale = 1
		}
		if varies && !f.Observed || i == qmodel.Load || slices.Contains(p.Observes, f.Name) {
			n.places, n.mean, n.scale, n.varies = append(n.places, i), append(n.mean, mean), append(n.scale, scale),
				append(n.varies, varies)
		}
	}
	return n, nil
}
