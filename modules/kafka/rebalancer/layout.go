package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// partition identifies a partition of a topic.
type partition struct {
	topic  string
	number int32
}

func (p partition) String() string { return fmt.Sprintf("%s/%d", p.topic, p.number) }

func comparePartitions(a, b partition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.number, b.number))
}

// sorted returns partitions by topic and number.
func sorted[V any](partitions map[partition]V) []partition {
	return slices.SortedFunc(maps.Keys(partitions), comparePartitions)
}

// layout assigns each partition its replicas, preferred leader first, round robin over the brokers: partitions in order
// of their names start one broker further each. Without racks, a partition's replicas are on consecutive brokers. With
// racks, the next replica is on a rack that has the fewest replicas of the partition, on the next broker of those that
// were in this place least often. So brokers lead equally many partitions, give or take one. factors gives the number
// of replicas of each partition.
func layout(factors map[partition]int, brokers []int32, racks map[int32]string) (map[partition][]int32, error) {
	ring := slices.Sorted(slices.Values(brokers))
	replicas := make(map[partition][]int32, len(factors))
	type seat struct {
		broker int32
		place  int
	}
	taken := map[seat]int{}
	for start, p := range sorted(factors) {
		factor := factors[p]
		if factor > len(ring) {
			return nil, &tooFewError{partition: p, factor: factor, brokers: len(ring)}
		}
		start %= len(ring)
		free, inRack := slices.Concat(ring[start:], ring[:start]), map[string]int{}
		for i := range factor {
			b := slices.MinFunc(free, func(a, b int32) int {
				return cmp.Or(
					cmp.Compare(inRack[racks[a]], inRack[racks[b]]),
					cmp.Compare(taken[seat{a, i}], taken[seat{b, i}]),
				)
			})
			replicas[p] = append(replicas[p], b)
			inRack[racks[b]]++
			if len(racks) > 0 {
				taken[seat{b, i}]++
			}
			free = without(free, []int32{b})
		}
	}
	return replicas, nil
}

// tooFewError says that a partition has more replicas than there are brokers.
type tooFewError struct {
	partition       partition
	factor, brokers int
}

func (e *tooFewError) Error() string {
	return fmt.Sprintf("%d brokers would be left, and topic %s has %d replicas of each partition",
		e.brokers, e.partition.topic, e.factor)
}
