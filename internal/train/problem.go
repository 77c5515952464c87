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

// Prices say what things cost, in one unit of your choice. The reward of a decision is what the time up to the next one
// costs, below 0:
//
//	reward = −(member-hours × Member) − (hours with more load than the members carry × Under) − (changes of the count × Change)
type Prices struct {
	// Member is the price of a member-hour, Under of an hour in which there are too few members, and Change of one
	// change of the count.
	Member, Under, Change float64
}

// DefaultPrices have a member-hour for their unit: an hour with too few members is as bad as 100 of them, and a change
// as bad as 36 seconds of one.
var DefaultPrices = Prices{Member: 1, Under: 100, Change: 0.01}

// Cost is what all of it costs.
func (p Prices) Cost(memberHours float64, under time.Duration, changes int) float64 {
	return memberHours*p.Member + under.Hours()*p.Under + float64(changes)*p.Change
}

// Of is what a course costs.
func (p Prices) Of(c autoscale.Course) float64 { return p.Cost(c.MemberHours, c.Under, c.Changes) }

// Problem is what is to be learned: to carry a load at the least cost.
type Problem struct {
	Trace autoscale.Trace
	// Capacity is the load that a member carries, and Bound the share of it beyond which there are too few members.
	Capacity, Bound float64
	// Startup and Change are as in [autoscale.Model].
	Startup  time.Duration
	Change   autoscale.ChangeCost
	Min, Max int
	// Interval is the time between two decisions.
	Interval time.Duration
	Prices   Prices
	// Observes are the features of other metrics that the model takes, and LatencyBound what a latency is a share of.
	Observes     []string
	LatencyBound time.Duration
}

// metric is the name of the metric that is learned.
const metric = "load"

// Model is that of members which backtests of the problem take. The metrics of features are called as these are.
func (p Problem) Model() autoscale.Model {
	signals := map[string]autoscale.Signal{metric: autoscale.SignalLoad}
	for _, feature := range p.Observes {
		signals[metricOf(feature)] = autoscale.FeatureSignals[feature]
	}
	return autoscale.Model{Capacity: p.Capacity * p.Bound, Startup: p.Startup, Change: p.Change, Signals: signals}
}

// metricOf is the name of the metric of a feature.
func metricOf(feature string) string { return strings.ReplaceAll(feature, "_", "-") }

// Policy is the policy of a model. Nothing but the model and the bounds holds it back.
func (p Problem) Policy(model string) domain.AutoscalingPolicy {
	none, every, initial := domain.Duration(0), domain.Duration(p.Interval), p.Initial()
	learned := &domain.LearnedAlgorithm{
		Model: domain.NewLearnedModel(model), Capacity: p.Capacity, Per: domain.TargetTotal, LatencyBound: p.LatencyBound.Seconds(), Observes: map[string]string{},
	}
	metrics := map[string]domain.ScalingMetric{metric: {Algorithm: domain.ScalingAlgorithm{Learned: learned}}}
	for _, feature := range p.Observes {
		learned.Observes[feature] = metricOf(feature)
		metrics[metricOf(feature)] = domain.ScalingMetric{}
	}
	return domain.AutoscalingPolicy{
		Cluster: "training", Group: "training", Role: "training", Min: p.Min, Max: p.Max, Initial: &initial, Interval: &every, Metrics: metrics,
		ScaleIn: domain.ScalingBehaviour{Stabilisation: &none},
	}
}

// Initial is the count that judgements begin with: what the load needs then.
func (p Problem) Initial() int {
	if len(p.Trace.Load) == 0 {
		return p.Min
	}
	return p.needs(p.Trace.Load[0])
}

// needs is the count that a load needs, as far as the bounds allow it.
func (p Problem) needs(load float64) int {
	return max(int(math.Ceil(min(load/(p.Capacity*p.Bound), float64(p.Max)))), p.Min)
}

// towards is the action that brings a count nearer to another one, if that is allowed.
func towards(count, to int, allowed [qmodel.NumActions]bool) int {
	switch {
	case to > count && allowed[qmodel.Up]:
		return qmodel.Up
	case to < count && allowed[qmodel.Down]:
		return qmodel.Down
	}
	return qmodel.Stay
}

// Decisions is how many a judgement of the trace takes.
func (p Problem) Decisions() int {
	return int(time.Duration(len(p.Trace.Load)) * p.Trace.Step / p.Interval)
}

// rehearsal returns what actions are tried in.
func (p Problem) rehearsal() (*autoscale.Rehearsal, error) {
	blank, err := qmodel.New(qmodel.DQN, append([]string{qmodel.Features[qmodel.Load].Name}, p.Observes...)).Encode()
	if err != nil {
		return nil, err
	}
	return autoscale.NewRehearsal(p.Policy(string(blank)), p.Trace, p.Model())
}

// episode is how many decisions an episode has at most.
const episode = 500

// scaling is the environment of a problem: episodes that begin anywhere in the trace, with any count, so that nothing
// but what is seen can be learned by heart.
type scaling struct {
	problem   Problem
	rehearsal *autoscale.Rehearsal
	normal    normal
	left      int
	seen      Observation
	discount  float64
	// unit is the reward of an interval at its worst, by which rewards are divided.
	unit float64
}

func newScaling(p Problem, n normal, discount float64) (*scaling, error) {
	r, err := p.rehearsal()
	unit := p.Interval.Hours() * max(p.Prices.Under, p.Prices.Member*float64(p.Max))
	return &scaling{problem: p, rehearsal: r, normal: n, discount: discount, unit: unit, seen: Observation{Features: make([]float32, len(n.places))}}, err
}

// Features is the number of features that tell anything.
func (s *scaling) Features() int { return len(s.normal.places) }

// Begin begins an episode at a random time with a random count.
func (s *scaling) Begin(random *rand.Rand) {
	s.left = episode
	s.rehearsal.Begin(s.problem.Interval*time.Duration(random.IntN(s.problem.Decisions())), s.problem.Min+random.IntN(s.problem.Max-s.problem.Min+1))
}

// Next has one decision be made.
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

// potential is what members that are missing cost, below 0: too few members for as long as it takes to add them one by
// one. Rewards are shaped by its differences, which leaves the best policy what it is (A. Ng et al., 1999): each member
// that is ordered pays at once, and not once the last one is there.
func (s *scaling) potential() float64 {
	p := &s.problem
	load, count := s.rehearsal.Now()
	missing := max(min(load/(p.Capacity*p.Bound), float64(p.Max))-float64(count), 0)
	return -missing * p.Prices.Cost(0, max(p.Startup+p.Change.Takes, p.Interval), 0)
}

// normal is which features tell anything, and how they are normalised: (value − mean) / scale.
type normal struct {
	places      []int
	mean, scale []float64
	// varies is false of those that are taken though they are always the same where there is a choice.
	varies []bool
}

func (n normal) apply(features []float32, state qmodel.State) {
	for i, place := range n.places {
		features[i] = float32((state[place] - n.mean[i]) / n.scale[i])
	}
}

// measureDecisions is the number of decisions at random by which features are normalised.
const measureDecisions = 5000

// measure decides half at random and half for the count that the load needs, and returns how the features of the states
// are distributed that had a choice: most are such as a good policy sees. Those that never change are left out, and so
// are those which need another metric.
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
			n.places, n.mean, n.scale, n.varies = append(n.places, i), append(n.mean, mean), append(n.scale, scale), append(n.varies, varies)
		}
	}
	return n, nil
}
