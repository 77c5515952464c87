//go:build linux

package acceptance

import (
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// SharedRoom is a cluster with room for four members, which the workers of the group "job" fill.
type SharedRoom struct {
	*testing.T

	Engine func() engine.Engine
	// Apply applies the configuration of the cluster, the group, its policy, and these parts, and expects an empty plan
	// afterwards.
	Apply func(parts ...string) (output string)
	// AwaitWorkers waits until exactly this many workers run.
	AwaitWorkers func(count int)
}

// FillsRoom returns the configuration of the policy, with more attributes.
func FillsRoom(attributes string) string {
	return Follows("job", `min = 1
  max = 10
  metrics = { room = { algorithm = { idle_room = {} } } }
  `+attributes)
}

// YieldsTo checks that the workers yield half of the room to a group of two members of higher priority, whose apply
// waits for it, and fill the room again when the group is gone.
func (r SharedRoom) YieldsTo(urgent string) {
	r.Helper()
	ExpectSaid(r.T, r.Apply(urgent), "Waits for room", `role "worker" of group "job" (4 to 2 members)`)
	r.AwaitWorkers(2)
	if waiting := r.Requests(); len(waiting) > 0 {
		r.Errorf("requests are left: %+v", waiting)
	}
	r.awaitScaled(4, 2)
	r.Apply()
	r.AwaitWorkers(4)
	r.awaitScaled(2, 4)
}

// YieldsToRun checks that, beside these parts, a sweep of higher priority gets room for as many runs as may run at a
// time, one, which leaves this many workers.
func (r SharedRoom) YieldsToRun(workers int, parts ...string) {
	r.Helper()
	r.Apply(parts...)
	acctest.Eventually(r, "a run to be on", func() bool {
		found, err := reconcile.Reconciler{Engine: r.Engine()}.SweepRuns(r.Context(), "lr")
		if err != nil {
			r.Fatal(err)
		}
		return sweep.Summarise(found.Document, found.Spec, found.Runs).Counts[domain.RunRunning] == 1
	})
	r.AwaitWorkers(workers)
}

// Requests are the requests for room.
func (r SharedRoom) Requests() map[string]domain.RoomRequest {
	r.Helper()
	requests, err := engine.List[domain.RoomRequest](r.Context(), r.Engine())
	if err != nil {
		r.Fatal(err)
	}
	return requests
}

// awaitScaled waits until the history has a change of the count.
func (r SharedRoom) awaitScaled(from, to int) {
	r.Helper()
	acctest.Eventually(r, "the change in the history", func() bool {
		return slices.ContainsFunc(Recorded(r.T, r.Engine()), func(e autoscale.Entry) bool {
			return e.From == from && e.To == to && e.Scaled()
		})
	})
}
