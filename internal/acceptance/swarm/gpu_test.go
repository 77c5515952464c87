//go:build linux

package swarm_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// haveGPUs makes a node's agent find these GPUs.
func (l *swarmLab) haveGPUs(node *testbed.Node, gpus ...fakenvml.Device) {
	l.Helper()
	acctest.NewNodeDriver(l, node.Client(), l.name).Set(gpus...)
}

// onGPUs returns a check that members are on these hosts, each with GPUs of its own that are visible to its container.
func (l *swarmLab) onGPUs(hosts ...string) resource.TestCheckFunc {
	return func(state *terraform.State) error {
		placements := state.RootModule().Resources["trainyard_group.job"].Primary.Attributes
		seen := map[string]bool{}
		for i, host := range hosts {
			member := l.member("worker", i)
			on, gpus, _ := strings.Cut(placements["placements."+member], " ")
			if on != host || gpus == "" || seen[gpus] {
				return fmt.Errorf("%s is on %q with %q, want %s with a GPU of its own", member, on, gpus, host)
			}
			seen[gpus] = true
			env := " " + strings.Join(l.service(member).Spec.TaskTemplate.ContainerSpec.Env, " ") + " "
			for _, variable := range []string{"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"} {
				if !strings.Contains(env, " "+variable+"="+gpus+" ") {
					return fmt.Errorf("%s has %s, and its container the environment%s", member, gpus, env)
				}
			}
		}
		return nil
	}
}

// TestAccSwarmGPUs: workers, though interchangeable, get specific free GPUs, and keep them.
func TestAccSwarmGPUs(t *testing.T) { onEnginesAtNight(t, testAccSwarmGPUs) }

func testAccSwarmGPUs(t *testing.T, engine string) {
	l := newSwarmLab(t, sharedBedOf(t, engine), "gpus")
	l.program = acctest.ProviderBesideAgent(t)
	acctest.LoadAgent(t, l.bed)
	cluster := func(attributes string) string {
		var hosts []string
		for _, node := range l.bed.Nodes {
			hosts = append(hosts, fmt.Sprintf("%s = { address = %q, %s }", node.Name, node.Host(), attributes))
		}
		return l.cluster("hosts = { " + strings.Join(hosts, ", ") + " }")
	}
	config := func(parts ...string) string {
		return strings.Replace(l.config(append(parts, cluster(`labels = { gpu = "v100" }`))...), "{\n",
			"{\n  docker = { controller_image = \""+acctest.AgentImage+"\" }\n", 1)
	}
	v100s := func(selected string) string {
		return acceptance.Pool("v100",
			fmt.Sprintf("select = { model = \"Tesla V100*\", hosts = [\"node2\", \"node3\"], %s }", selected))
	}
	spark := func(workers string) string {
		return l.group(fmt.Sprintf(`
  framework = "spark"
  image     = %q
  args      = ["wait"]
  roles = {
    master = { replicas = 1, port = 7077 }
    worker = { gpus = { pool = trainyard_gpu_pool.v100.name }, %s }
  }`, memberImage, workers))
	}
	// Two GPUs of eight, and an A40 in 37 slots, each with a group of its own.
	dgx := append(fakenvml.V100s("node1", 8), acceptance.A40())
	pooled := func(name, attributes string, workers int) string {
		return acceptance.Pool(name, attributes) + l.named(name, "gpu-"+name, fmt.Sprintf(
			"image = %q\n args = [\"wait\"]\n roles = { worker = { replicas = %d, gpus = { pool = trainyard_gpu_pool.%s.name } } }",
			memberImage, workers, name,
		))
	}
	cards := pooled("cards", fmt.Sprintf("devices = { node1 = [%q, %q] }", dgx[5].UUID, dgx[4].UUID), 2)
	sweep := func(workers int) string {
		return pooled("sweep",
			fmt.Sprintf("devices = { node1 = [%q] }\n sharing = \"slots\"\n memory_mib_per_slot = 1199", dgx[8].UUID),
			workers)
	}
	const gpus = `
data "trainyard_gpus" "now" {
  cluster = trainyard_cluster.lab
}
`
	const oneEach, all = "max_per_host = 1", "max_per_host = null"
	const address, found = "trainyard_gpu_pool.v100", "data.trainyard_gpus.now"
	steps := []resource.TestStep{
		{
			// Our own image, made of the program beside the provider and this machine's C library, also runs on hosts
			// without a GPU. The agents are queried right after their start.
			Config: l.config(cluster(""), gpus),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(found, "hosts.%", "3"),
				resource.TestCheckResourceAttr(found, "hosts.node3.gpus.#", "0"),
				resource.TestCheckNoResourceAttr(found, "hosts.node3.reason"),
			),
		},
		{
			Config: config(`resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "gpus"
  image   = "` + memberImage + `"
  args    = ["wait"]
  roles   = { worker = { gpus = { pool = "v100" } } }
}`),
			ExpectError: regexp.MustCompile(`(?s)roles\["worker"\]\.gpus\.pool.*has\s+no\s+GPU\s+pool`),
		},
		{Config: config()},
		{
			PreConfig: func() {
				l.haveGPUs(l.bed.Nodes[0], dgx...)
				for _, node := range l.bed.Nodes[1:] {
					l.haveGPUs(node, fakenvml.V100s(node.Name, 2)...)
				}
			},
			Config: config(v100s(oneEach), spark("replicas = 2"), cards, sweep(2)),
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("+gpus-master-0", "+gpus-worker-0", "+gpus-worker-1", "+gpu-cards-worker-0",
					"+gpu-cards-worker-1", "+gpu-sweep-worker-0", "+gpu-sweep-worker-1"),
				resource.TestCheckResourceAttr("trainyard_group.cards", "placements.gpu-cards-worker-0",
					"node1 "+dgx[5].UUID),
				resource.TestCheckResourceAttr("trainyard_group.cards", "placements.gpu-cards-worker-1",
					"node1 "+dgx[4].UUID),
				resource.TestCheckResourceAttr("trainyard_gpu_pool.sweep", "slots", "37"),
				resource.TestCheckResourceAttr("trainyard_group.sweep", "placements.gpu-sweep-worker-1",
					"node1 "+dgx[8].UUID),
				resource.TestCheckResourceAttr(address, "slots", "2"),
				resource.TestCheckResourceAttr(address, "devices.node2.0", fakenvml.V100s("node2", 2)[0].UUID),
				l.onGPUs("node2", "node3"),
			),
		},
		{
			Config:   config(v100s(oneEach), spark("replicas = 2"), cards, sweep(37)),
			PlanOnly: true, ExpectNonEmptyPlan: true,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue("trainyard_group.sweep",
					acceptance.Attribute("placements", "gpu-sweep-worker-36"),
					knownvalue.StringExact("node1 "+dgx[8].UUID)),
			}},
		},
		{
			Config: config(v100s(oneEach), spark("replicas = 2"), cards, sweep(38)),
			ExpectError: regexp.MustCompile(
				`(?s)roles\["worker"\]\.gpus.*38\s+members\s+of\s+1\s+slot\s+of\s+1199\s+MiB.*only\s+37\s+of\s+them\s+fit`,
			),
		},
		{
			Config:      config(v100s(oneEach), spark("replicas = 3"), cards, sweep(2)),
			ExpectError: regexp.MustCompile(`(?s)roles\["worker"\]\.gpus.*3\s+members.*only\s+2\s+of\s+them\s+fit`),
		},
		{
			// Somebody else uses the second GPU of node 2, so the third worker gets that of node 3.
			PreConfig: func() {
				busy := fakenvml.V100s("node2", 2)
				busy[1].Processes = []fakenvml.Process{{PID: 1, MiB: 20_000}}
				l.haveGPUs(l.bed.Nodes[1], busy...)
			},
			Config: config(v100s(all), spark("replicas = 3"), cards, sweep(2)),
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("+gpus-worker-2"),
				resource.TestCheckResourceAttr(address, "slots", "4"),
				l.onGPUs("node2", "node3", "node3"),
			),
		},
	}
	// A GPU fails in each way in turn, which the controller learns from another host's agent: its member moves to the
	// GPU that is free by then, and back when that one fails.
	three := config(v100s(all), spark("replicas = 3"), cards, sweep(2))
	for i, fault := range []struct {
		change func(d *fakenvml.Device) // nil if the GPU is gone
		why    string
	}{
		{func(d *fakenvml.Device) { d.XIDs, d.Lost = []int{79}, true }, "fallen off the bus (XID 79)"},
		{
			func(d *fakenvml.Device) { d.RowsFailed = true },
			"rows of its memory could not be remapped: have it replaced",
		},
		{nil, "no longer found"},
	} {
		node, n, after := l.bed.Nodes[2], 0, []string{"node2", "node2", "node3"}
		if i%2 == 1 {
			node, n, after = l.bed.Nodes[1], 1, []string{"node2", "node3", "node3"}
		}
		uuid, reason := fakenvml.V100s(node.Name, 2)[n].UUID, "host "+node.Name+": "+fault.why
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				l.haveGPUs(l.bed.Nodes[1], fakenvml.V100s("node2", 2)...) // nobody else uses them any more
				gpus := fakenvml.V100s(node.Name, 2)
				if fault.change == nil {
					gpus = slices.Delete(gpus, n, n+1)
				} else {
					fault.change(&gpus[n])
				}
				l.haveGPUs(node, gpus...)
				l.awaitTrouble(uuid, fault.why)
			},
			Config: three,
			ConfigPlanChecks: acceptance.Planned(
				showsBefore{address, "unhealthy", map[string]any{uuid: reason}},
				plancheck.ExpectUnknownValue(address, acceptance.Attribute("unhealthy")),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate),
			),
			Check: resource.ComposeAggregateTestCheckFunc(
				l.changes("~gpus-worker-1"),
				resource.TestCheckResourceAttr(address, "unhealthy."+uuid, reason),
				l.onGPUs(after...),
			),
			ExpectNonEmptyPlan: true,
		}, resource.TestStep{
			PreConfig: func() {
				l.haveGPUs(node, fakenvml.V100s(node.Name, 2)...)
				l.awaitTrouble(uuid, "")
			},
			RefreshState: true,
		})
	}
	l.test(append(steps, resource.TestStep{Config: three, PlanOnly: true})...)
}

// awaitTrouble waits until the controller has recorded why a GPU of the pool can't be used; "" if it can.
func (l *swarmLab) awaitTrouble(uuid, why string) {
	l.Helper()
	acctest.Eventually(l, "the controller to see to "+uuid, func() bool {
		pools, err := engine.List[domain.GPUPoolDocument](l.Context(), l.engine())
		l.must(err)
		return pools["v100"].Trouble[uuid] == why
	})
}
