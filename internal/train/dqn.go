package train

import (
	"context"
	"math/rand/v2"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Algorithm is how the value of what follows an action is estimated.
type Algorithm string

const (
	// DQN uses the target network's largest value for the next state: V. Mnih et al., "Human-level control through deep
	// reinforcement learning" (2015).
	DQN Algorithm = qmodel.DQN
	// DoubleDQN uses the target network's value of the action that the network itself would choose, which overestimates
	// less: H. van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning" (2016).
	DoubleDQN Algorithm = qmodel.DoubleDQN
)

// Algorithms lists the algorithms.
var Algorithms = []Algorithm{DQN, DoubleDQN}

// Actions is the number of actions.
const Actions = qmodel.NumActions

// Observation is what a decision is based on: normalised features, and which actions are allowed, at least one.
type Observation struct {
	Features []float32
	Allowed  [Actions]bool
}

// choices returns the number of allowed actions.
func (o *Observation) choices() (n int) {
	for _, allowed := range o.Allowed {
		if allowed {
			n++
		}
	}
	return n
}

// random returns a random allowed action.
func (o *Observation) random(random *rand.Rand) int {
	left := random.IntN(o.choices())
	for action, allowed := range o.Allowed {
		if allowed {
			if left == 0 {
				return action
			}
			left--
		}
	}
	panic("no action is allowed")
}

// Environment is what the trainer acts in. It has no terminal states; an episode is only cut off somewhere.
type Environment interface {
	// Features returns the number of features of an observation.
	Features() int
	// Begin starts an episode at a random place.
	Begin(random *rand.Rand)
	// Next makes one decision, and returns the reward up to the next one, and whether there is a next one in this
	// episode. It may decide by itself without calling act.
	Next(act func(*Observation) int) (reward float64, more bool)
}

// Settings are the settings of a training; see [Defaults].
type Settings struct {
	Algorithm Algorithm
	Seed      uint64
	// Updates is the number of weight updates. Each uses Batch transitions out of the last Replay ones.
	Updates, Batch, Replay int
	// Hidden are the sizes of the hidden layers.
	Hidden []int
	// Rate is the initial learning rate. It falls to a tenth.
	Rate float64
	// Discount is the weight of a reward one decision later.
	Discount float64
	// Target is after how many updates the target network is synchronised.
	Target int
	// Warmup is the number of random transitions before the first update. Explore is the fraction of updates over which
	// the share of random actions falls from 1 to Random, where it stays.
	Warmup  int
	Explore float64
	Random  float64
}

// Defaults returns settings that work.
func Defaults() Settings {
	return Settings{
		Algorithm: DQN, Updates: 50_000, Batch: 32, Replay: 50_000, Hidden: []int{64, 64}, Rate: 1e-3, Discount: 0.98,
		Target: 100,
		Warmup: 1000, Explore: 0.4, Random: 0.05,
	}
}

// Trainer is a training in progress.
type Trainer struct {
	Settings

	// Decisions is the number of decisions so far, and Done the number of updates.
	Decisions, Done int
	// Loss is the mean error of the last updates, in the unit of the rewards.
	Loss float64

	environment           Environment
	random                *rand.Rand
	network, target, mean *Network
	online, frozen        *pass
	gradients             []float32
	adam                  *adam
	replay                *replay
	before                transition // the one that waits for its next state
	waiting               bool
	// the present discount, and the sum of discounted rewards since the waiting transition
	since, reward float64
}

// New begins a training.
func New(s Settings, environment Environment) *Trainer {
	t := &Trainer{Settings: s, environment: environment, random: rand.New(rand.NewPCG(s.Seed, 0))}
	sizes := append([]int{environment.Features()}, s.Hidden...)
	t.network = NewNetwork(t.random, append(sizes, Actions)...)
	t.target, t.mean = t.network.clone(), t.network.clone()
	t.online, t.frozen = t.network.newPass(), t.network.newPass()
	t.gradients = make([]float32, len(t.network.Weights))
	t.adam = newAdam(len(t.gradients), float32(s.Rate))
	t.replay = newReplay(s.Replay, environment.Features())
	environment.Begin(t.random)
	return t
}

// Run continues until this many updates are done, or the context is cancelled.
func (t *Trainer) Run(ctx context.Context, updates int) error {
	for t.Done < min(updates, t.Updates) {
		if t.Decisions%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		reward, more := t.environment.Next(t.act)
		t.Decisions++
		t.reward += t.since * reward
		t.since *= t.Discount
		if !more { // the next state of the last transition is unknown
			t.waiting = false
			t.environment.Begin(t.random)
		}
	}
	return nil
}

// Network returns a copy of the network.
func (t *Trainer) Network() *Network { return t.network.clone() }

// Mean returns the mean of the networks after the last updates, whose policy is steadier than that of the last one.
func (t *Trainer) Mean() *Network { return t.mean.clone() }

// ignore sets the weights of an input that is always 0 in training to 0. They would not be trained, and count once the
// input is not 0.
func (t *Trainer) ignore(input int) {
	for _, n := range []*Network{t.network, t.target, t.mean} {
		weights, biases := n.Layer(0)
		clear(weights[input*len(biases):][:len(biases)])
	}
}

// act makes a decision. One without a choice is not recorded: what follows it counts for the one before.
func (t *Trainer) act(o *Observation) int {
	if o.choices() == 1 {
		return first(o.Allowed)
	}
	if t.waiting {
		t.before.reward, t.before.discount = float32(t.reward), float32(t.since)
		t.replay.add(&t.before, o)
		if t.replay.size >= t.Warmup {
			t.update()
		}
	}
	var action int
	if t.random.Float64() < t.exploration() {
		action = o.random(t.random)
	} else {
		action = Best(t.network.forward(t.online, o.Features), o.Allowed)
	}
	t.before.features = append(t.before.features[:0], o.Features...)
	t.before.action, t.waiting, t.reward, t.since = action, true, 0, 1
	return action
}

// exploration returns the present share of random actions.
func (t *Trainer) exploration() float64 {
	if t.Done == 0 {
		return 1
	}
	progress := float64(t.Done) / (t.Explore * float64(t.Updates))
	return max(1-progress*(1-t.Random), t.Random)
}

// first returns the first allowed action.
func first(allowed [Actions]bool) int {
	for a, is := range allowed {
		if is {
			return a
		}
	}
	return 0
}

// Best returns the allowed action with the largest value; the first one of equals.
func Best(values []float32, allowed [Actions]bool) int {
	best := first(allowed)
	for a := best + 1; a < Actions; a++ {
		if allowed[a] && values[a] > values[best] {
			best = a
		}
	}
	return best
}

// update changes the weights with a batch from the replay memory.
func (t *Trainer) update() {
	if t.Done%t.Target == 0 {
		copy(t.target.Weights, t.network.Weights)
	}
	outputs := t.online.deltas[len(t.online.deltas)-1]
	loss := 0.0
	for range t.Batch {
		r := t.replay.at(t.random.IntN(t.replay.size))
		goal := r.reward + float32(r.discount*t.value(&r))
		off := t.network.forward(t.online, r.features)[r.action] - goal
		clear(outputs)
		outputs[r.action] = huber(off)
		t.network.backward(t.online, t.gradients)
		loss += float64(max(off, -off))
	}
	t.Loss += (loss/float64(t.Batch) - t.Loss) * 0.001
	t.adam.rate = float32(t.Rate * (1 - 0.9*float64(t.Done)/float64(t.Updates)))
	t.adam.step(t.network.Weights, t.gradients, 1/float32(t.Batch))
	t.Done++
	for i, w := range t.network.Weights {
		t.mean.Weights[i] += float32((w - t.mean.Weights[i]) * meanShare)
	}
}

// meanShare is the weight of an update in the mean of the networks, which covers about the last thousand.
const meanShare = 0.001

// value estimates what follows a transition. Actions that are not allowed there are ignored.
func (t *Trainer) value(r *remembered) float32 {
	chosen := -1
	if t.Algorithm == DoubleDQN {
		chosen = Best(t.network.forward(t.online, r.next), r.allowed)
	}
	values := t.target.forward(t.frozen, r.next)
	if chosen < 0 {
		chosen = Best(values, r.allowed)
	}
	return values[chosen]
}
