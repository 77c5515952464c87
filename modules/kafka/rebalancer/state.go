package main

import "slices"

// state is what a Kafka cluster tells of itself.
type state struct {
	// brokers has each registered broker, and whether it is alive: one that isn't is fenced.
	brokers    map[int32]bool
	partitions map[partition]held
}

// held is where a partition is.
type held struct {
	// replicas are those it has, or will have once it has moved, the preferred leader first.
	replicas []int32
	// adding and removing are those that a reassignment in progress brings, and takes away.
	adding, removing []int32
	inSync           []int32
	leader           int32
}

// moving reports whether a reassignment is in progress.
func (h held) moving() bool { return len(h.adding)+len(h.removing) > 0 }

// alive returns the brokers that are, by ID.
func (s state) alive() (alive []int32) {
	for b, is := range s.brokers {
		if is {
			alive = append(alive, b)
		}
	}
	slices.Sort(alive)
	return alive
}

// factors returns how many replicas each partition has.
func (s state) factors() map[partition]int {
	factors := make(map[partition]int, len(s.partitions))
	for p, h := range s.partitions {
		factors[p] = len(h.replicas)
	}
	return factors
}

// replicas returns how many replicas each broker has that has any, with those that it is about to get or to lose.
func (s state) replicas() map[int32]int {
	count := map[int32]int{}
	for _, h := range s.partitions {
		for _, b := range h.replicas {
			count[b]++
		}
		for _, b := range h.removing {
			count[b]++
		}
	}
	return count
}

// reassigning returns how many partitions are being reassigned.
func (s state) reassigning() (count int) {
	for _, h := range s.partitions {
		if h.moving() {
			count++
		}
	}
	return count
}

// step is the next thing to do on the way to a layout.
type step struct {
	// elect are partitions that can be led by their preferred leader, and are not.
	elect []partition
	// move is the partition to reassign now, if any.
	move *move
	// away is how many partitions are not where they should be, and done reports whether all are, and are led from
	// there.
	away int
	done bool
}

// move is one reassignment: from the replicas that a partition has to those that it should have.
type move struct {
	partition partition
	from, to  []int32
}

// adds returns the brokers that get a replica.
func (m move) adds() []int32 { return without(m.to, m.from) }

// without returns brokers but for some.
func without(brokers, some []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(brokers), func(b int32) bool { return slices.Contains(some, b) })
}

// next returns the next step. At most one reassignment is in progress at a time, unless others began more; one that
// leads elsewhere is redirected. What would have to be copied to a broker that is down waits for it.
func next(s state, want map[partition][]int32) step {
	var n step
	var redirect *move
	awaited, moving := false, false
	for _, p := range sorted(s.partitions) {
		h, to := s.partitions[p], want[p]
		m := &move{p, slices.Concat(h.replicas, h.removing), to}
		switch there := slices.Equal(h.replicas, to); {
		case there && h.moving():
			n.away++
			moving = true
		case !there:
			n.away++
			if h.moving() && redirect == nil {
				redirect = m
			}
			if n.move == nil && !slices.ContainsFunc(m.adds(), func(b int32) bool { return !s.brokers[b] }) {
				n.move = m
			}
		case h.leader == to[0] || !s.brokers[to[0]]:
		case slices.Contains(h.inSync, to[0]):
			n.elect = append(n.elect, p)
		default:
			awaited = true
		}
	}
	if redirect != nil {
		n.move = redirect
	} else if moving {
		n.move = nil
	}
	n.done = n.away == 0 && len(n.elect) == 0 && !awaited
	return n
}
