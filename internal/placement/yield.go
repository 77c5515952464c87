package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Holding is a role whose members can be removed for something more important.
type Holding struct {
	// Key identifies the role. Priority is its importance: the least important role yields first.
	Key      string
	Priority int
	// Least is how many of its members always stay.
	Least int
	// Members are its members, the last to go first. InOrder means that none may go before those after it.
	Members []string
	InOrder bool
}

// Yield returns which members have to go so that something fits; false if it would not fit even if all went that can.
// fits reports whether it fits without the members in gone, and must stay true if more of them are gone.
//
// It works as Kubernetes selects the victims of preemption: remove all, then bring back as many as still fit, first the
// number of each role that has to stay, then the members of more important roles before less important ones. So none
// goes needlessly, and of two roles the more important one only gives what the other can't.
func Yield(holdings []Holding, fits func(gone map[string]bool) bool) (gone map[string]bool, ok bool) {
	y := yielding{gone: map[string]bool{}, fits: fits}
	var roles []*returning
	for _, h := range holdings {
		r := &returning{candidates: slices.Clone(h.Members), need: h.Least, inOrder: h.InOrder, Holding: h}
		if h.InOrder {
			stay := min(h.Least, len(h.Members))
			r.candidates, r.need = r.candidates[stay:], h.Least-stay
		}
		for _, member := range r.candidates {
			y.gone[member] = true
		}
		roles = append(roles, r)
	}
	if !fits(y.gone) {
		return nil, false
	}
	slices.SortFunc(roles, func(a, b *returning) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Key, b.Key))
	})
	for _, r := range roles {
		if y.restore(r, r.need) < r.need {
			return nil, false
		}
	}
	for _, r := range roles {
		y.restore(r, len(r.candidates))
	}
	return y.gone, true
}

type yielding struct {
	gone map[string]bool
	fits func(gone map[string]bool) bool
}

// returning is a role whose members are being brought back. candidates are those that may still come back, in order.
type returning struct {
	Holding

	candidates []string
	need       int
	inOrder    bool
}

// restore brings back up to most members of a role, and returns how many came back. One that can't stays gone, and if
// InOrder is set, so do all after it.
func (y *yielding) restore(r *returning, most int) (restored int) {
	for restored < most && len(r.candidates) > 0 {
		n := y.longest(r.candidates[:min(most-restored, len(r.candidates))])
		for _, member := range r.candidates[:n] {
			delete(y.gone, member)
		}
		restored += n
		r.candidates = r.candidates[n:]
		if restored == most || len(r.candidates) == 0 {
			break
		}
		r.candidates = r.candidates[1:]
		if r.inOrder {
			r.candidates = nil
		}
	}
	return restored
}

// longest returns how many members can come back from the beginning of a list.
func (y *yielding) longest(members []string) int {
	without := func(n int) bool {
		gone := maps.Clone(y.gone)
		for _, member := range members[:n] {
			delete(gone, member)
		}
		return y.fits(gone)
	}
	if without(len(members)) {
		return len(members)
	}
	possible, impossible := 0, len(members)
	for impossible-possible > 1 {
		if middle := (possible + impossible) / 2; without(middle) {
			possible = middle
		} else {
			impossible = middle
		}
	}
	return possible
}
