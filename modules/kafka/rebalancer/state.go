package main

import "slices"

// state is the state of a Kafka cluster.
type state struct {
	// brokers maps each registered broker to whether it is alive, that is, not fenced.
	brokers    map[int32]bool
	partitions map[partition]held
	// racks are those of brokers that have one.
	racks map[int32]string
}

// held is the state of a partition.
type held struct {
	// replicas are the current ones, or those after the move in progress, preferred leader first.
	replicas []int32
	// adding and removing are the replicas that a reassignment in progress adds and removes.
	adding, removing []int32
	inSync           []int32
	leader           int32
}

// moving reports whether a reassignment is in progress.
func (h held) moving() bool { return len(h.adding)+len(h.removing) > 0 }

// alive returns the alive brokers, sorted by ID.
func (s state) alive() (alive []int32) {
	for b, is := range s.brokers {
		if is {
			alive = append(alive, b)
		}
	}
	slices.Sort(alive)
	return alive
}

// factors returns the number of replicas of each partition.
func (s state) factors() map[partition]int {
	factors := make(map[partition]int, len(s.partitions))
	for p, h := range s.partitions {
		factors[p] = len(h.replicas)
	}
	return factors
}

// replicas returns the number of replicas on each broker that has any, including those to be added or removed.
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

// reassigning returns the number of partitions being reassigned.
func (s state) reassigning() (count int) {
	for _, h := range s.partitions {
		if h.moving() {
			count++
		}
	}
	return count
}

// step is the next step towards a layout.
type step struct {
	// elect are partitions whose preferred leader could lead but doesn't.
	elect []partition
	// move is the partition to reassign now, if any.
	move *move
	// away is the number of misplaced partitions; done reports whether there are none, and all preferred leaders lead.
	away int
	done bool
}

// move is a reassignment from a partition's replicas to those that it should have.
type move struct {
	partition partition
	from, to  []int32
}

// adds returns the brokers that get a replica.
func (m move) adds() []int32 { return without(m.to, m.from) }

// without returns brokers except some.
func without(brokers, some []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(brokers), func(b int32) bool { return slices.Contains(some, b) })
}

// next returns the next step. It starts one reassignment at a time and redirects one in progress to the wrong place;
// partitions to copy to a broker that is down wait for it.
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
