//go:build linux

package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// haveGPUs returns a check that waits until exactly these members run, each with a device of its own.
func (l *Lab) haveGPUs(members ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		acctest.Eventually(l, fmt.Sprintf("%v to have a device each", members), func() bool {
			observed, err := l.Open().Observe(l.Context(), "")
			l.must(err)
			var running []string
			for _, o := range observed {
				if o.State == domain.StateRunning {
					running = append(running, o.Name)
				}
			}
			slices.Sort(running)
			return slices.Equal(running, members) && slices.Equal(l.gpuOwners(), members)
		})
		return nil
	}
}

// gpuOwners returns the members of groups and runs of the sweep that have a device of their own.
func (l *Lab) gpuOwners() (members []string) {
	l.Helper()
	groups, err := engine.List[domain.GroupDocument](l.Context(), l.Open())
	l.must(err)
	places := map[string]domain.Assignment{}
	for _, group := range groups {
		maps.Copy(places, group.Assignments)
	}
	if found, err := (reconcile.Reconciler{Engine: l.Open()}).SweepRuns(l.Context(), "lr"); err == nil {
		for key, run := range found.Runs {
			if run.Active() {
				places[domain.RunName("lr", key)] = *run.Assignment
			}
		}
	}
	owners := map[domain.DeviceSet][]string{}
	for member, at := range places {
		owners[at.GPUs] = append(owners[at.GPUs], member)
	}
	for gpus, of := range owners {
		if len(of) == 1 && strings.HasPrefix(string(gpus), "GPU-") {
			members = append(members, of...)
		}
	}
	slices.Sort(members)
	return members
}

// A role takes all idle devices of a pool, yields to a group and a sweep of higher priority, to the latter for as many
// runs as may run at a time, and gets the devices back.
func sharedGPUs(l *Lab) {
	base := l.config(
		acceptance.Pool("p", l.named(0, 1, 2)),
		group("job", "priority = -1\n command = [local.member]\n roles = { worker = { on_scale = \"none\", gpus = { "+
			"pool = trainyard_gpu_pool.p.name }, args = [\"wait\"] } }"),
		acceptance.Follows("job", "min = 1\n max = 8\n metrics = { room = { algorithm = { idle_room = {} } } }"),
	)
	waiting := group("urgent", "command = [local.member]\n roles = {\n"+worker(1, `["wait"]`)+"}") +
		acceptance.Runs(map[string]string{"a": "wait", "b": "wait", "c": "wait"},
			"priority = 1\n max_parallel = 1\n gpus = { pool = trainyard_gpu_pool.p.name }")
	all := l.haveGPUs("job-worker-0", "job-worker-1", "job-worker-2")
	l.test(
		resource.TestStep{Config: base, Check: all},
		resource.TestStep{Config: base + waiting, Check: l.haveGPUs("job-worker-0", "lr-a-0", "urgent-worker-0")},
		resource.TestStep{Config: base, Check: all},
	)
}
