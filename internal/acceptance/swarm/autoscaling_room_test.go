//go:build linux

package swarm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// A role fills two nodes, yields to a group of higher priority whose apply waits for it, fills the nodes again, and
// yields to a sweep.
func TestAccSwarmScalingSharesRoom(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 2, Managers: 1, Heartbeat: testbed.Steady})
	l := newSwarmLab(t, bed, "job")
	w := newSwarmWorkspace(l)
	hosts := map[string]string{}
	for _, node := range bed.Nodes {
		hosts[node.Name] = "capacity = { memory_mib = 128 }"
	}
	takes := func(name, attributes, role string) string {
		return l.named(name, name, fmt.Sprintf(`
  image = %q
  args  = ["wait"]
  roles = { worker = { resources = { memory_mib = 64 }, on_scale = "none", %s } }
  %s`, memberImage, role, attributes))
	}
	const program = "locals {\n  member = \"/member\"\n}"
	base := []string{program, l.formed(hosts), takes("job", "priority = -1", ""), acceptance.FillsRoom("")}
	shared := acceptance.SharedRoom{
		T: t, Engine: l.engine,
		Apply: func(parts ...string) string {
			w.configure(slices.Concat(base, parts)...)
			output := w.Must("apply", "-auto-approve")
			w.ExpectNoChange("after an apply")
			return output
		},
		AwaitWorkers: func(count int) {
			l.await(bed.Nodes[0], fmt.Sprintf("%d workers to run", count), func(group reconcile.Group) bool {
				return group.Document.Counts["worker"] == count && !group.Document.Scaling && runsOn(count)(group)
			})
		},
	}
	t.Cleanup(func() {
		manager := bed.Nodes[0].Host()
		acceptance.Explain(t, l.program, "job/worker", "--engine", "swarm", "--endpoint", manager, "--cluster", l.name)
	})
	shared.Apply()
	shared.AwaitWorkers(4)
	shared.YieldsTo(takes("urgent", "", "replicas = 2"))
	image := fmt.Sprintf("image = %q\n  resources = { memory_mib = 64 }\n  max_parallel = 1", memberImage)
	shared.YieldsToRun(3, acceptance.Runs(map[string]string{"a": "wait", "b": "wait"}, image))
}
