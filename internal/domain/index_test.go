package domain

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestIndexes(t *testing.T) {
	for _, c := range []struct {
		count        int
		absent, want []int
	}{
		{3, nil, []int{0, 1, 2}},
		{0, []int{0}, []int{}},
		{2, []int{1}, []int{0, 2}},
		{3, []int{0, 2, 3}, []int{1, 4, 5}},
		{2, []int{5}, []int{0, 1}},
	} {
		if got := Indexes(c.count, c.absent); !slices.Equal(got, c.want) {
			t.Errorf("%d members without %v have the indexes %v, want %v", c.count, c.absent, got, c.want)
		}
	}
}

// TestGapsAreInverse checks that leaving the gaps out of all indexes yields the indexes again, whatever they are.
func TestGapsAreInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		indexes := random.Perm(12)[:random.IntN(13)]
		if got, want := Indexes(len(indexes),
			Gaps(indexes)), slices.Sorted(slices.Values(indexes)); !slices.Equal(got, want) {
			t.Fatalf("members %v have the gaps %v, which makes them %v", want, Gaps(indexes), got)
		}
	}
}
