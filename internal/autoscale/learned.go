package autoscale

import (
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// learned asks a model for the values of one more member, as many, and one fewer in the present state
// ([LoadHistory.Observe]), and asks for the best of the allowed ones; ties go to the present count. One more or fewer
// is masked beyond the bounds, one fewer below guards.at_least, and both while data moves between members. If a metric
// that the model observes has no value, it changes nothing.
//
// Up, stay and down at fixed time steps are the actions of "Elastic scaling of Kafka with deep reinforcement learning".
// The model is a deep Q-network (Mnih et al., 2015), or one trained by Double DQN (van Hasselt et al., 2016), which
// makes no difference here.
func learned(a domain.LearnedAlgorithm, m *Memory, in asking) proposal {
	o, why := in.observation(a)
	if why != "" {
		return undecided(in, why)
	}
	if m.Learned == nil {
		m.Learned = &LoadHistory{}
	}
	state, masks := m.Learned.Observe(o), in.masks(o)
	if in.chooses != nil {
		return proposal{count: in.count + changeBy[in.chooses(state, allowed(masks))]}
	}
	values := in.model.Values(in.model.Of(state))
	best := qmodel.Stay
	for _, action := range []int{qmodel.Up, qmodel.Down} {
		if masks[action] == "" && values[action] > values[best] {
			best = action
		}
	}
	p := proposal{count: in.count + changeBy[best]}
	if !in.quiet {
		p.why = worth(values, masks)
	}
	return p
}

// changeBy is the change of the count by action.
var changeBy = [qmodel.NumActions]int{qmodel.Up: 1, qmodel.Down: -1}

// allowed returns which actions are not masked.
func allowed(masks [qmodel.NumActions]string) (allowed [qmodel.NumActions]bool) {
	for action, why := range masks {
		allowed[action] = why == ""
	}
	return allowed
}

// observation returns what the state is computed from, or why it is unknown.
func (in asking) observation(a domain.LearnedAlgorithm) (Observation, string) {
	if !finite(in.metric.Value) {
		return Observation{}, notANumber
	}
	o := Observation{
		Now: in.now, Count: in.count, Ready: in.ready, Max: in.policy.Max, Every: in.policy.Every(),
		LastChange: in.lastChange,
		Load:       in.metric.Value / a.Carried(), Reassigning: in.busy != "",
	}
	if a.Per != domain.TargetTotal {
		o.Load *= float64(max(in.ready, 1))
	}
	for feature, name := range a.Observes {
		value, missing := in.observed(name)
		if missing != "" {
			return o, say("feature ", feature, " (metric ", name, "): ", missing)
		}
		switch feature {
		case qmodel.Features[qmodel.CPU].Name:
			o.CPU = value / 100
		case qmodel.Features[qmodel.LagGrowth].Name:
			o.Lag = value / a.LagCarried()
		case qmodel.Features[qmodel.P99].Name:
			o.P99 = value / a.LatencyBound
		case qmodel.Features[qmodel.Reassigning].Name:
			o.Reassigning = o.Reassigning || value > 0
		case qmodel.Features[qmodel.Skew].Name:
			o.Skew = value
		}
	}
	return o, ""
}

// masks says why actions are not allowed; "" for those that are.
func (in asking) masks(o Observation) (masks [qmodel.NumActions]string) {
	if in.count >= in.policy.Max {
		masks[qmodel.Up] = say("max is ", in.policy.Max)
	}
	switch {
	case in.count <= in.policy.Min:
		masks[qmodel.Down] = say("min is ", in.policy.Min)
	case in.needed == nil:
	case in.needed.Value == nil:
		masks[qmodel.Down] = "it is unknown how many are needed"
	case wholeMembers(*in.needed.Value) >= in.count:
		masks[qmodel.Down] = say("at least ", wholeMembers(*in.needed.Value), " by guards.at_least")
	}
	if o.Reassigning {
		why := in.busy
		if why == "" {
			why = "data is moving between members"
		}
		masks[qmodel.Up], masks[qmodel.Down] = why, why
	}
	return masks
}

// worth describes the values of the actions, and why some are masked.
func worth(values [qmodel.NumActions]float64, masks [qmodel.NumActions]string) string {
	words := [qmodel.NumActions]string{qmodel.Up: "one more", qmodel.Stay: "as many", qmodel.Down: "one fewer"}
	parts := make([]string, len(words))
	for action, word := range words {
		if parts[action] = say(word, " is worth ", values[action]); masks[action] != "" {
			parts[action] = say(word, " is masked: ", masks[action])
		}
	}
	return strings.Join(parts, ", ")
}
