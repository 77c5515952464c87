package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// waves returns a problem whose load goes up and down between one and three members.
func waves(values int) Problem {
	load := make([]float64, values)
	for i := range load {
		load[i] = 20 - 9*math.Cos(float64(i)/4)
	}
	return Problem{
		Trace: autoscale.Trace{
			Start: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Step: 30 * time.Second, Load: load,
		},
		Capacity: 10, Bound: 1, Startup: 20 * time.Second,
		Change: autoscale.ChangeCost{Takes: 25 * time.Second, Lost: 0.2},
		Min:    1, Max: 4, Interval: 30 * time.Second, Prices: Prices{Member: 1, Under: 20, Change: 0.01},
	}
}

// TestOptimumByBruteForce checks that the optimum is the cost of the best of all sequences of actions.
func TestOptimumByBruteForce(t *testing.T) {
	for name, change := range map[string]func(*Problem){
		"as it is":               func(*Problem) {},
		"with changes at once":   func(p *Problem) { p.Startup, p.Change = 0, autoscale.ChangeCost{} },
		"with slow changes":      func(p *Problem) { p.Change.Takes = 100 * time.Second },
		"with two members":       func(p *Problem) { p.Min, p.Max = 2, 2 },
		"where changes are dear": func(p *Problem) { p.Prices.Change = 1 },
		"with half of the bound": func(p *Problem) { p.Bound = 0.5 },
		"of an interval of steps": func(p *Problem) {
			p.Trace.Step = 15 * time.Second
			p.Trace.Load = waves(16).Trace.Load
		},
	} {
		p := waves(8)
		change(&p)
		least := math.Inf(1)
		r, err := p.rehearsal()
		if err != nil {
			t.Fatal(err)
		}
		for sequence := range 6561 { // 3^8
			r.Begin(0, p.Initial())
			cost, actions := 0.0, sequence
			for !r.Ended() {
				spent := r.Next(func(_ qmodel.State, allowed [qmodel.NumActions]bool) int {
					action := actions % 3
					if actions /= 3; !allowed[action] {
						return qmodel.Stay
					}
					return action
				})
				cost += p.Prices.Cost(spent.MemberHours, spent.Under, spent.Changes)
			}
			least = min(least, cost)
		}
		if got, err := Optimum(p); err != nil || math.Abs(got-least) > 1e-9 {
			t.Errorf("%s: the optimum is %g (%v), and the best sequence costs %g", name, got, err, least)
		}
	}
	p := waves(8)
	p.Change = autoscale.ChangeCost{}
	if _, err := Optimum(p); err == nil {
		t.Error("an optimum is returned though members may be ordered while others start")
	}
}

// TestRehearsalIsTheBacktest checks that a backtest of a model costs the same as its rehearsal, and takes no action
// that is not allowed.
func TestRehearsalIsTheBacktest(t *testing.T) {
	p := waves(400)
	l, err := Learn(t.Context(), p, quick(DQN, 3), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	course, err := autoscale.Backtest(p.Policy(l.Text), p.Trace, p.Model())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.rehearsal()
	if err != nil {
		t.Fatal(err)
	}
	cost := 0.0
	for r.Begin(0, p.Initial()); !r.Ended(); {
		spent := r.Next(func(state qmodel.State, allowed [qmodel.NumActions]bool) int {
			values, best := l.Model.Values(l.Model.Of(state)), qmodel.Stay
			for action, value := range values {
				if allowed[action] && value > values[best] {
					best = action
				}
			}
			return best
		})
		cost += p.Prices.Cost(spent.MemberHours, spent.Under, spent.Changes)
	}
	if want := p.Prices.Of(course); math.Abs(cost-want) > 1e-9*want || course.Changes == 0 {
		t.Errorf("the rehearsal costs %g, and the backtest %g with %d changes", cost, want, course.Changes)
	}
	for i, count := range course.Counts {
		if count < p.Min || count > p.Max {
			t.Fatalf("at value %d there are %d members", i, count)
		}
	}
}

func quick(algorithm Algorithm, seed uint64) Settings {
	s := Defaults()
	s.Algorithm, s.Seed, s.Updates, s.Warmup = algorithm, seed, 1000, 300
	return s
}

// TestLearnIsDeterministic checks that the same seed gives the same file, for both algorithms.
func TestLearnIsDeterministic(t *testing.T) {
	texts := map[string]bool{}
	for _, algorithm := range Algorithms {
		for _, seed := range []uint64{1, 1, 2} {
			updates := 0
			l, err := Learn(t.Context(), waves(100), quick(algorithm, seed), "d1",
				func(done int, _ Point) { updates = done })
			if err != nil {
				t.Fatal(err)
			}
			texts[l.Text] = true
			if updates != 1000 || len(l.Curve) != points+1 || l.Curve[points].Updates != 1000 ||
				l.Model.Trained.Seed != seed || l.Model.Trained.TraceSHA256 != "d1" {
				t.Errorf("it reported %d updates last, and made %d points of %+v", updates, len(l.Curve),
					l.Model.Trained)
			}
			for _, point := range l.Curve {
				if point.Cost < l.Best.Cost {
					t.Errorf("the best costs %g, and one %g", l.Best.Cost, point.Cost)
				}
			}
		}
	}
	if len(texts) != 4 {
		t.Errorf("two algorithms with two seeds make %d files", len(texts))
	}
}

// TestLearns checks that learning brings the cost of a known demand close to its optimum, closer than any constant
// count.
func TestLearns(t *testing.T) {
	p := waves(1200)
	for i := range p.Trace.Load {
		p.Trace.Load[i] = 20 - 9*math.Cos(float64(i)/25) // slow enough to be followed
	}
	best, err := Optimum(p)
	if err != nil {
		t.Fatal(err)
	}
	constant := math.Inf(1)
	for count := p.Min; count <= p.Max; count++ {
		fixed := p
		fixed.Min, fixed.Max = count, count
		cost, err := Optimum(fixed)
		if err != nil {
			t.Fatal(err)
		}
		constant = min(constant, cost)
	}
	for _, algorithm := range Algorithms {
		s := quick(algorithm, 1)
		s.Updates = 4000
		l, err := Learn(t.Context(), p, s, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		hours := p.Trace.Step.Hours() * float64(len(p.Trace.Load))
		t.Logf("%s costs %g; optimum %g, constant %g", algorithm, l.Best.Cost*hours, best, constant)
		if cost := l.Best.Cost * hours; cost < best-1e-9 || cost > constant {
			t.Errorf("%s costs %g; the optimum %g, and the best constant count %g", algorithm, cost, best, constant)
		}
	}
}

// TestShaping checks that shaping does not change the total reward: the differences of the potential add up to its
// change.
func TestShaping(t *testing.T) {
	p := waves(300)
	s, err := newScaling(p, normal{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	s.Begin(random)
	from, sum := s.potential(), 0.0
	for more := true; more; {
		var reward float64
		reward, more = s.Next(func(o *Observation) int { return o.random(random) })
		sum += reward * s.unit
	}
	if sum-s.potential()+from > 0 {
		t.Errorf("rewards of %g without the potential's difference of %g are above 0", sum, s.potential()-from)
	}
}

func TestLearnStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Learn(ctx, waves(300), quick(DQN, 1), "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
