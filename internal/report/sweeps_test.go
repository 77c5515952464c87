package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// TestShownRuns checks that of many runs, the best and the failed ones are shown, in order.
func TestShownRuns(t *testing.T) {
	for name, c := range map[string]struct {
		good, failed, outOfMemory int
		// shown is how many of each are shown.
		shown [3]int
	}{
		"few":            {3, 2, 1, [3]int{3, 2, 1}},
		"few failed":     {9000, 20, 5, [3]int{975, 20, 5}},
		"many failed":    {9000, 9000, 5, [3]int{500, 500, 0}},
		"nearly all":     {10, 9000, 0, [3]int{10, 990, 0}},
		"all failed":     {0, 9000, 0, [3]int{0, 1000, 0}},
		"none failed":    {9000, 0, 0, [3]int{1000, 0, 0}},
		"exactly enough": {990, 10, 0, [3]int{990, 10, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []overview.Run // in the order of [sweep.Order]: those that succeeded first
			add := func(n int, state domain.RunState) {
				for range n {
					all = append(all, overview.Run{Key: fmt.Sprintf("%06d", len(all)), State: state})
				}
			}
			add(c.good, domain.RunSucceeded)
			add(c.failed, domain.RunFailed)
			add(c.outOfMemory, domain.RunOutOfMemory)
			shown := shownRuns(all)
			counts := map[domain.RunState]int{}
			for _, r := range shown {
				counts[r.State]++
			}
			got := [3]int{counts[domain.RunSucceeded], counts[domain.RunFailed], counts[domain.RunOutOfMemory]}
			if got != c.shown {
				t.Errorf("%v are shown, want %v", got, c.shown)
			}
			if !slices.IsSortedFunc(shown, func(a, b overview.Run) int { return strings.Compare(a.Key, b.Key) }) {
				t.Error("the runs are not in order")
			}
			if len(shown) > 0 && shown[0].Key != all[0].Key {
				t.Errorf("the first one is %s", shown[0].Key)
			}
		})
	}
}
