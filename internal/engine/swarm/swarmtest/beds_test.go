//go:build linux

package swarmtest

import (
	"fmt"
	"slices"
	"testing"
)

// TestOwnSubnet: however often tests are repeated, they get subnets below the bed's own, and use all of them in turn.
func TestOwnSubnet(t *testing.T) {
	got := map[string]int{}
	var want []string
	for i := 131; i < 200; i++ {
		want = append(want, fmt.Sprintf("10.%d", i))
	}
	for range 2 * len(want) {
		got[OwnSubnet()]++
	}
	for subnet, times := range got {
		if times != 2 || !slices.Contains(want, subnet) {
			t.Errorf("%s: %d times", subnet, times)
		}
	}
}
