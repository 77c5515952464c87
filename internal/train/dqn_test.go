package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// ladder is a small problem with a known optimum: seven rungs, of which the last pays 1 per step, and the first 0.2.
// Climbing from the middle costs a little, and takes longer than going down; from rung 2 on it is worth it.
type ladder struct {
	rung, steps int
	forbidden   int // taken although it was not allowed
}

const ladderRungs = 7

func (l *ladder) Features() int { return ladderRungs }

func (l *ladder) Begin(random *rand.Rand) { l.rung, l.steps = random.IntN(ladderRungs), 0 }

// observe returns the rung and the allowed actions. At the ends, the action beyond is not allowed; in the middle, only
// up is.
func (l *ladder) observe() *Observation {
	o := &Observation{
		Features: make([]float32, ladderRungs), Allowed: [Actions]bool{l.rung > 0, l.rung != 3, l.rung < ladderRungs-1},
	}
	o.Features[l.rung] = 1
	if l.rung == 3 {
		o.Allowed[0] = false
	}
	return o
}

func (l *ladder) Next(act func(*Observation) int) (float64, bool) {
	o := l.observe()
	action := act(o)
	if !o.Allowed[action] {
		l.forbidden++
	}
	rung, reward := ladderStep(l.rung, action)
	if l.rung = rung; l.steps >= 30 {
		return reward, false
	}
	l.steps++
	return reward, true
}

func ladderStep(rung, action int) (to int, reward float64) {
	to = min(max(rung+action-1, 0), ladderRungs-1)
	switch {
	case to == ladderRungs-1:
		return to, 1
	case to == 0:
		return to, 0.2
	case action == 2:
		return to, -0.1
	}
	return to, 0
}

// ladderOptimum returns the best action on each rung, by value iteration.
func ladderOptimum(discount float64) (best [ladderRungs]int) {
	var values [ladderRungs]float64
	for range 2000 {
		for rung := range values {
			o := (&ladder{rung: rung}).observe()
			first := true
			for action, allowed := range o.Allowed {
				to, reward := ladderStep(rung, action)
				if value := reward + discount*values[to]; allowed && (first || value > values[rung]) {
					values[rung], best[rung], first = value, action, false
				}
			}
		}
	}
	return best
}

func small(algorithm Algorithm, seed uint64) Settings {
	s := Defaults()
	s.Algorithm, s.Seed, s.Updates, s.Hidden, s.Discount, s.Target, s.Warmup = algorithm, seed, 4000, []int{
		16, 16,
	}, 0.9, 100, 200
	return s
}

// TestFindsTheOptimum checks that both algorithms find the optimum of a small problem from several seeds, and never
// take an action that is not allowed.
func TestFindsTheOptimum(t *testing.T) {
	want := ladderOptimum(0.9)
	for _, algorithm := range Algorithms {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s, seed %d", algorithm, seed), func(t *testing.T) {
				t.Parallel()
				l := &ladder{}
				trainer := New(small(algorithm, seed), l)
				if err := trainer.Run(t.Context(), 4000); err != nil {
					t.Fatal(err)
				}
				if l.forbidden > 0 || trainer.Done != 4000 || trainer.Decisions < 4000 {
					t.Errorf("%d actions were not allowed, in %d decisions and %d updates", l.forbidden,
						trainer.Decisions, trainer.Done)
				}
				n := trainer.Network()
				for rung := range ladderRungs {
					o := (&ladder{rung: rung}).observe()
					if got := Best(n.forward(n.newPass(), o.Features), o.Allowed); got != want[rung] {
						t.Errorf("on rung %d it does %d, want %d", rung, got, want[rung])
					}
				}
			})
		}
	}
}

// TestDeterminism checks that the same seed gives bit-identical weights, and another seed different ones.
func TestDeterminism(t *testing.T) {
	learn := func(algorithm Algorithm, seed uint64) []float32 {
		trainer := New(small(algorithm, seed), &ladder{})
		if err := trainer.Run(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		return trainer.Network().Weights
	}
	for _, algorithm := range Algorithms {
		once := learn(algorithm, 7)
		if !slices.Equal(once, learn(algorithm, 7)) {
			t.Errorf("%s: the same seed makes another network", algorithm)
		}
		if slices.Equal(once, learn(algorithm, 8)) {
			t.Errorf("%s: another seed makes the same network", algorithm)
		}
	}
	if slices.Equal(learn(DQN, 7), learn(DoubleDQN, 7)) {
		t.Error("both algorithms make the same network")
	}
}

func TestStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	trainer := New(small(DQN, 1), &ladder{})
	if err := trainer.Run(ctx, 4000); !errors.Is(err, context.Canceled) || trainer.Done > 256 {
		t.Errorf("after %d updates it says %v", trainer.Done, err)
	}
}

func TestBest(t *testing.T) {
	for _, test := range []struct {
		values  []float32
		allowed [Actions]bool
		want    int
	}{
		{[]float32{1, 2, 3}, [Actions]bool{true, true, true}, 2},
		{[]float32{1, 2, 3}, [Actions]bool{true, true, false}, 1},
		{[]float32{1, 2, 3}, [Actions]bool{true, false, false}, 0},
		{[]float32{2, 2, 2}, [Actions]bool{false, true, true}, 1},
	} {
		if got := Best(test.values, test.allowed); got != test.want {
			t.Errorf("of %v and %v it is %d, want %d", test.values, test.allowed, got, test.want)
		}
	}
}

// TestReplay checks that the oldest transitions are dropped, and the others do not change.
func TestReplay(t *testing.T) {
	r := newReplay(3, 2)
	for i := range 5 {
		v := float32(i)
		r.add(&transition{features: []float32{v, -v}, action: i % Actions, reward: 10 * v, discount: 0.5},
			&Observation{Features: []float32{v + 1, -v - 1}})
	}
	seen := map[float32]bool{}
	for i := range r.size {
		kept := r.at(i)
		v := kept.features[0]
		seen[v] = true
		if kept.features[1] != -v || kept.next[0] != v+1 || kept.next[1] != -v-1 || kept.reward != 10*v ||
			kept.action != int(v)%Actions {
			t.Errorf("it keeps %+v", kept)
		}
	}
	if r.size != 3 || !seen[2] || !seen[3] || !seen[4] {
		t.Errorf("it keeps %v", seen)
	}
}

// BenchmarkUpdate measures an update of two layers of 64 with batches of 32. 50,000 of them have to take less than 3
// minutes.
func BenchmarkUpdate(b *testing.B) {
	for _, algorithm := range Algorithms {
		b.Run(string(algorithm), func(b *testing.B) {
			s := Defaults()
			s.Algorithm, s.Updates = algorithm, b.N
			trainer := New(s, &ladder{})
			b.ResetTimer()
			if err := trainer.Run(b.Context(), b.N); err != nil {
				b.Fatal(err)
			}
		})
	}
}
