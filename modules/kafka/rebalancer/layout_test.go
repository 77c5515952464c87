package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLayout(t *testing.T) {
	a0, a1, a2, b0 := partition{"a", 0}, partition{"a", 1}, partition{"a", 2}, partition{"b", 0}
	for name, test := range map[string]struct {
		factors map[partition]int
		brokers []int32
		want    map[partition][]int32
	}{
		"nothing":     {nil, nil, map[partition][]int32{}},
		"one of each": {map[partition]int{a0: 1}, []int32{7}, map[partition][]int32{a0: {7}}},
		"round the ring": {
			map[partition]int{a0: 2, a1: 2, a2: 2}, []int32{0, 1, 2},
			map[partition][]int32{a0: {0, 1}, a1: {1, 2}, a2: {2, 0}},
		},
		"in whatever order they come": {
			map[partition]int{a0: 2, a1: 2}, []int32{5, 3, 4}, map[partition][]int32{a0: {3, 4}, a1: {4, 5}},
		},
		"topics go on": {map[partition]int{a0: 1, b0: 2}, []int32{0, 1, 2}, map[partition][]int32{a0: {0}, b0: {1, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := layout(test.factors, test.brokers)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := layout(map[partition]int{a0: 1, b0: 3}, []int32{0, 1})
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
		got, err := layout(factors, brokers)
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
