package train

// transition is an action, and its result up to the next decision with a choice.
type transition struct {
	features []float32
	action   int
	// reward is discounted. discount is the weight of the next state's value.
	reward, discount float32
}

// remembered is a transition with its next state.
type remembered struct {
	transition

	next    []float32
	allowed [Actions]bool
}

// replay holds the last transitions.
type replay struct {
	features int
	kept     []remembered // without their features, which are in states
	states   []float32    // two for each transition
	size, to int
}

func newReplay(capacity, features int) *replay {
	return &replay{features: features, kept: make([]remembered, capacity), states: make([]float32, 2*capacity*features)}
}

// add stores a transition, replacing the oldest one if there is no room.
func (r *replay) add(t *transition, next *Observation) {
	at := r.states[2*r.to*r.features:][:2*r.features]
	kept := remembered{transition: *t, next: at[r.features:], allowed: next.Allowed}
	kept.features = at[:r.features]
	copy(kept.features, t.features)
	copy(kept.next, next.Features)
	r.kept[r.to] = kept
	r.to = (r.to + 1) % len(r.kept)
	r.size = min(r.size+1, len(r.kept))
}

// at returns a stored transition.
func (r *replay) at(i int) remembered { return r.kept[i] }
