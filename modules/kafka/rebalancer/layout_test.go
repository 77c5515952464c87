package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLayout(t *testing.T) {
	a0, a1, a2, b0 := partition{"a", 0}, partition{"a", 1}, partition{"a", 2}, partition{"b", 0}
	for name, test := range map[string]struct {
		factors map[partition]int
		brokers []int32
		racks   map[int32]string
		want    map[partition][]int32
	}{
		"nothing":     {nil, nil, nil, map[partition][]int32{}},
		"one of each": {map[partition]int{a0: 1}, []int32{7}, nil, map[partition][]int32{a0: {7}}},
		"round the ring": {
			map[partition]int{a0: 2, a1: 2, a2: 2}, []int32{0, 1, 2}, nil,
			map[partition][]int32{a0: {0, 1}, a1: {1, 2}, a2: {2, 0}},
		},
		"in whatever order they come": {
			map[partition]int{a0: 2, a1: 2}, []int32{5, 3, 4}, nil, map[partition][]int32{a0: {3, 4}, a1: {4, 5}},
		},
		"topics go on": {
			map[partition]int{a0: 1, b0: 2}, []int32{0, 1, 2}, nil, map[partition][]int32{a0: {0}, b0: {1, 2}},
		},
		"racks in turn are the ring": {
			map[partition]int{a0: 2, a1: 2, a2: 2}, []int32{0, 1, 2, 3},
			map[int32]string{0: "x", 1: "y", 2: "x", 3: "y"},
			map[partition][]int32{a0: {0, 1}, a1: {1, 2}, a2: {2, 3}},
		},
		"neighbours share a rack": {
			map[partition]int{a0: 2, a1: 2, a2: 2, b0: 2}, []int32{0, 1, 2, 3},
			map[int32]string{0: "x", 1: "x", 2: "y", 3: "y"},
			map[partition][]int32{a0: {0, 2}, a1: {1, 3}, a2: {2, 0}, b0: {3, 1}},
		},
		"a fourth broker beside the first one": {
			map[partition]int{a0: 3, a1: 3, a2: 3, b0: 3}, []int32{0, 1, 2, 3},
			map[int32]string{0: "x", 1: "y", 2: "z", 3: "x"},
			map[partition][]int32{a0: {0, 1, 2}, a1: {1, 2, 3}, a2: {2, 3, 1}, b0: {3, 1, 2}},
		},
		"more replicas than racks": {
			map[partition]int{a0: 3, a1: 3}, []int32{0, 1, 2, 3}, map[int32]string{0: "x", 1: "x", 2: "x", 3: "y"},
			map[partition][]int32{a0: {0, 3, 1}, a1: {1, 3, 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := layout(test.factors, test.brokers, test.racks)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := layout(map[partition]int{a0: 1, b0: 3}, []int32{0, 1}, nil)
	if few, ok := errors.AsType[*tooFewError](err); !ok || few.partition != b0 || few.factor != 3 || few.brokers != 2 {
		t.Errorf("too few brokers: %v", err)
	}
}

// TestLayoutProperty: no broker has two replicas of a partition, and all lead, and have first, second, … followers,
// equally often, give or take one.
func TestLayoutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := rapid.SliceOfNDistinct(rapid.Int32Range(0, 100), 1, 9, rapid.ID).Draw(t, "brokers")
		factor := rapid.IntRange(1, len(brokers)).Draw(t, "factor")
		factors := map[partition]int{}
		for topic, partitions := range rapid.MapOf(rapid.StringMatching(`[a-z_]{1,4}`), rapid.IntRange(1, 20)).Draw(t,
			"topics") {
			for n := range partitions {
				factors[partition{topic, int32(n)}] = factor
			}
		}
		got, err := layout(factors, brokers, nil)
		if err != nil || len(got) != len(factors) {
			t.Fatalf("%d of %d: %v", len(got), len(factors), err)
		}
		for place := range factor {
			count := map[int32]int{}
			for _, b := range brokers {
				count[b] = 0
			}
			for p, replicas := range got {
				if distinct := slices.Compact(slices.Sorted(slices.Values(replicas))); len(distinct) != factor {
					t.Fatalf("%v has %v", p, replicas)
				}
				count[replicas[place]]++
			}
			most, least := 0, len(got)
			for _, c := range count {
				most, least = max(most, c), min(least, c)
			}
			if len(count) != len(brokers) || most-least > 1 {
				t.Fatalf("at place %d: %v", place, count)
			}
		}
	})
}

// TestLayoutOverRacks: a partition has replicas on as many racks as there are, and no rack has two more of them than
// another with a free broker. All brokers lead equally often, give or take one; in racks of the same size, if it is one
// or two brokers, they have equally many replicas, give or take one for each place.
func TestLayoutOverRacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(t, "racks")
		var names []string
		for rack, size := range sizes {
			names = append(names, slices.Repeat([]string{fmt.Sprint(rack)}, size)...)
		}
		brokers, racks := []int32{}, map[int32]string{}
		for b, rack := range rapid.Permutation(names).Draw(t, "brokers") {
			brokers, racks[int32(b)] = append(brokers, int32(b)), rack
		}
		factor := rapid.IntRange(1, len(brokers)).Draw(t, "factor")
		factors := map[partition]int{}
		for n := range rapid.IntRange(0, 60).Draw(t, "partitions") {
			factors[partition{"a", int32(n)}] = factor
		}
		got, err := layout(factors, brokers, racks)
		if err != nil {
			t.Fatal(err)
		}
		leads, has := make([]int, len(brokers)), make([]int, len(brokers))
		for p, replicas := range got {
			leads[replicas[0]]++
			inRack := make([]int, len(sizes))
			for _, b := range replicas {
				has[b]++
				rack, _ := strconv.Atoi(racks[b])
				inRack[rack]++
			}
			for rack, count := range inRack {
				if count < sizes[rack] && slices.Max(inRack) > count+1 {
					t.Fatalf("%v is on %v: on racks %v of %v brokers", p, replicas, inRack, sizes)
				}
			}
		}
		if slices.Max(leads)-slices.Min(leads) > 1 {
			t.Fatalf("they lead %v", leads)
		}
		same := slices.Min(sizes) == slices.Max(sizes) && sizes[0] < 3
		if same && slices.Max(has)-slices.Min(has) > factor {
			t.Fatalf("they have %v", has)
		}
	})
}
