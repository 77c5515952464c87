package placement

import (
	"cmp"
	"maps"
	"slices"
)

// Holding is a role whose members can go for somebody more important.
type Holding struct {
	// Key is what tells the role from others, and Priority says how important it is: the least important gives way
	// first.
	Key      string
	Priority int
	// Least is how many of its members stay in any case.
	Least int
	// Members are its members, those first that are to stay the longest, and InOrder tells that none goes before those
	// behind it have gone.
	Members []string
	InOrder bool
}

// Yield returns which members go so that something fits, which is told by fits, of members that are gone; false where
// it would not fit though all went that can.
//
// It is how Kubernetes chooses whom a pod preempts: all go at first, and then come back, as far as it still fits: first
// as many of each role as have to stay, and then those of the most important role before those of less important ones.
// So nobody goes in vain, and of two roles the more important one gives only what the other one can't. fits has to be
// true of more members gone wherever it is of fewer.
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

// returning is a role whose members come back: candidates are those that may yet do so, in their order.
type returning struct {
	Holding

	candidates []string
	need       int
	inOrder    bool
}

// restore has up to so many members of a role come back, and returns how many did. One that can't stays gone for good,
// and in order so do those behind it.
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
