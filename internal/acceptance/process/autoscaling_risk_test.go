//go:build linux

package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
)

// A policy with the algorithm risk has at least as many members as the load needs, even when the controller is killed
// and its source fails: what it has learned survives the controller, and no member is removed while the source fails.
// Each change is made once.
func TestAccScalingKeepsRisk(t *testing.T) {
	l := newFollowLab(t)
	d := newDial(t, 2)
	l.apply(theCluster, quiet, follows(fmt.Sprintf(`min = 1
  max      = 8
  scale_in = { stabilisation_window = "0s" }
  metrics  = { load = {
    source    = { queue = { http = { url = %q, path = "length" } } }
    algorithm = { risk = { percent = 5, capacity = 1, per = "total" } }
  } }`, d.URL)))
	says := func(what string) func(e autoscale.Entry) bool {
		return func(e autoscale.Entry) bool { return strings.Contains(e.Why(), what) }
	}
	l.awaitAtLeast(2)
	l.awaitHistory("the share so far", says("too few for"))
	l.kill("trainyard-controller")
	d.value.Store(5)
	l.awaitAtLeast(5)
	d.awaitAsked(t)
	l.workspace.ExpectNoChange("under load")

	// A failing source is not a load of 0.
	d.value.Store(broken)
	l.awaitHistory("the source", says("500"))
	l.kill("trainyard-controller")
	d.awaitAsked(t)
	if count := l.read().Document.Counts["worker"]; count < 5 {
		t.Errorf("%d members are left while nothing is known of a load that was 5", count)
	}
	d.value.Store(7)
	l.awaitAtLeast(7)

	// With what it has learned by then, it scales in to what is needed and no further.
	d.value.Store(6)
	d.awaitAsked(t)
	acctest.Eventually(t, "all that are wanted to run", func() bool {
		group := l.read()
		return !group.Document.Scaling && len(group.Observed) == group.Document.Counts["worker"]
	})
	if count := l.read().Document.Counts["worker"]; count < 6 {
		t.Errorf("%d members are left of a load of 6", count)
	}
	l.workspace.ExpectNoChange("with less load")
	counts := []int{1}
	for _, e := range l.history() {
		if !e.Scaled() {
			continue
		}
		if e.From != counts[len(counts)-1] {
			t.Errorf("a change from %d to %d is recorded after the counts %v", e.From, e.To, counts)
		}
		counts = append(counts, e.To)
	}
	if slices.Max(counts) < 7 {
		t.Errorf("the counts were %v", counts)
	}
}
