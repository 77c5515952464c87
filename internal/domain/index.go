package domain

import "slices"

// Indexes returns the first count indexes that are not absent, in ascending order. absent must be ascending, too.
func Indexes(count int, absent []int) []int {
	indexes := make([]int, 0, max(count, 0))
	for i := 0; len(indexes) < count; i++ {
		if _, gap := slices.BinarySearch(absent, i); !gap {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// Gaps returns the missing indexes below the highest one, in ascending order.
func Gaps(indexes []int) []int {
	var gaps []int
	next := 0
	for _, i := range slices.Sorted(slices.Values(indexes)) {
		for ; next < i; next++ {
			gaps = append(gaps, next)
		}
		next = i + 1
	}
	return gaps
}

// Indexes returns the indexes of the members of a role in ascending order.
func (d GroupDocument) Indexes(role string) []int { return Indexes(d.Counts[role], d.Absent[role]) }
