//go:build linux

package process_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// hostOf checks a host in a state.
func hostOf(address string, labels knownvalue.Check, cpus float64, memory int64) knownvalue.Check {
	return knownvalue.ObjectExact(map[string]knownvalue.Check{
		"address": knownvalue.StringExact(address),
		"labels":  labels,
		"role":    knownvalue.Null(), "availability": knownvalue.Null(), "advertise_address": knownvalue.Null(),
		"socket": knownvalue.Null(),
		"capacity": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"cpus": knownvalue.Float64Exact(cpus), "memory_mib": knownvalue.Int64Exact(memory),
		}),
	})
}

// Two provider configurations may each have a cluster of one name: they don't know of each other.
func TestAccClustersOfOneName(t *testing.T) {
	elsewhere := t.TempDir()
	t.Cleanup(func() { acctest.ExpectNobody(t, elsewhere, "after the last destroy") })
	w, l := newWorkspace(t)
	site := func(alias, host string) string {
		return fmt.Sprintf(`
resource "trainyard_cluster" %[2]q {
  provider = %[1]s
  name     = "lab"
  hosts    = { %[2]s = {} }
}

resource "trainyard_group" %[2]q {
  provider = %[1]s
  cluster  = trainyard_cluster.%[2]s
  name     = "job"
  command  = [local.member, "wait"]
  roles    = { worker = { replicas = 1, placement = { hosts = [%[2]q] } } }
}
`, alias, host)
	}
	l.configure(w, site("trainyard", "a"), site("trainyard.elsewhere", "b"),
		fmt.Sprintf("provider \"trainyard\" {\n  alias     = \"elsewhere\"\n  state_dir = %q\n}\n", elsewhere))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("of two clusters of one name")
}

// A cluster is this machine, or the hosts that it declares. They can be changed in place.
func TestAccCluster(t *testing.T) {
	l := newLab(t)
	cpus, memory, err := telemetry.Capacity()
	l.must(err)
	hosts := func(want map[string]knownvalue.Check) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(acceptance.TheLab, tfjsonpath.New("id"), knownvalue.StringExact("lab")),
			statecheck.ExpectKnownValue(acceptance.TheLab, tfjsonpath.New("name"), knownvalue.StringExact("lab")),
			statecheck.ExpectKnownValue(acceptance.TheLab, tfjsonpath.New("engine"), knownvalue.StringExact("process")),
			statecheck.ExpectKnownValue(acceptance.TheLab, tfjsonpath.New("hosts"), knownvalue.MapExact(want)),
		}
	}
	action := func(want plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return acceptance.Planned(plancheck.ExpectResourceAction(acceptance.TheLab, want))
	}
	rack := l.config(`
resource "trainyard_cluster" "lab" {
  name = "lab"
  hosts = {
    node-1 = { address = "127.0.0.2", labels = { disk = "ssd" }, capacity = { cpus = 0.5, memory_mib = 512 } }
    node-2 = { capacity = { cpus = 1 } }
  }
}`)
	rackHosts := map[string]knownvalue.Check{
		"node-1": hostOf("127.0.0.2", acceptance.Texts(map[string]string{"disk": "ssd"}), 0.5, 512),
		"node-2": hostOf("127.0.0.1", knownvalue.Null(), 1, memory),
	}
	l.test(
		resource.TestStep{
			Config:           l.config(theCluster),
			ConfigPlanChecks: action(plancheck.ResourceActionCreate),
			ConfigStateChecks: hosts(map[string]knownvalue.Check{
				"local": hostOf("127.0.0.1", knownvalue.Null(), cpus, memory),
			}),
		},
		resource.TestStep{
			Config: rack, ConfigPlanChecks: action(plancheck.ResourceActionUpdate), ConfigStateChecks: hosts(rackHosts),
		},
		resource.TestStep{
			PreConfig:         func() { acctest.EndCluster(l, l.engine()) },
			Config:            rack,
			ConfigPlanChecks:  action(plancheck.ResourceActionCreate),
			ConfigStateChecks: hosts(rackHosts),
		},
		resource.TestStep{
			Config: rack, ResourceName: acceptance.TheLab, ImportState: true, ImportStateId: "lab",
			ImportStateVerify: true,
		},
		resource.TestStep{
			Config:           l.config(`resource "trainyard_cluster" "lab" { name = "other" }`),
			ConfigPlanChecks: action(plancheck.ResourceActionDestroyBeforeCreate),
			Check:            resource.TestCheckResourceAttr(acceptance.TheLab, "hosts.%", "1"),
		},
	)
}

// The agent runs unless the cluster disables it: then only momentary samples are available.
func TestAccClusterAgent(t *testing.T) {
	l := newLab(t)
	cluster := func(agent string) string {
		return l.config("resource \"trainyard_cluster\" \"lab\" {\n  name  = \"lab\"\n  agent = " + agent + "\n}" + `
data "trainyard_utilisation" "now" {
  cluster = trainyard_cluster.lab
}`)
	}
	runs := func(want bool) resource.TestCheckFunc {
		return func(*terraform.State) error {
			socket := l.files.Path("agent.sock")
			acctest.Eventually(t, fmt.Sprintf("an agent (%t)", want), func() bool {
				_, err := telemetry.Ask(t.Context(), socket, telemetry.Query{})
				return (err == nil) == want
			})
			return nil
		}
	}
	answers := func(port int, want string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			acctest.Eventually(t, fmt.Sprintf("an answer at port %d", port), func() bool {
				response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
				if err != nil {
					return false
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(text), want)
			})
			return nil
		}
	}
	measured := resource.TestCheckResourceAttrSet("data.trainyard_utilisation.now", "hosts.local.memory_used_mib")
	l.test(
		resource.TestStep{Config: cluster("null"), Check: resource.ComposeAggregateTestCheckFunc(runs(true), measured)},
		resource.TestStep{
			Config: cluster("{ enabled = false }"),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(acceptance.TheLab,
				plancheck.ResourceActionUpdate)),
			Check: resource.ComposeAggregateTestCheckFunc(runs(false), measured),
		},
		resource.TestStep{
			Config:      cluster(`{ image = "ops/trainyard:1" }`),
			ExpectError: acceptance.Says(`agent.image`, `does not support image = "ops/trainyard:1"`),
		},
		resource.TestStep{
			Config:      cluster("{ metrics_port = 80 }"),
			ExpectError: acceptance.Says(`agent.metrics_port`, `metrics_port = 80: must be between 1024 and 65534`),
		},
		resource.TestStep{
			Config:      cluster("{ metrics_port = 0 }"),
			ExpectError: acceptance.Says(`agent.metrics_port`, `must be at least 1`),
		},
		resource.TestStep{
			Config:      cluster("{ metrics_port = 9465, enabled = false }"),
			ExpectError: acceptance.Says(`agent.metrics_port`, `enabled = false`),
		},
		resource.TestStep{
			Config: cluster(fmt.Sprintf("{ metrics_port = %d }", l.port)),
			Check: resource.ComposeAggregateTestCheckFunc(runs(true), answers(l.port, "trainyard_host_cpus{"),
				answers(l.port+1, "")),
		},
		resource.TestStep{Config: cluster("{ enabled = true }"), Check: runs(true)},
		resource.TestStep{Config: cluster("{}"), ConfigPlanChecks: acceptance.Planned(
			plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionUpdate),
		)},
	)
}

// Members on a host that is removed move in the same apply; the others stay.
func TestAccClusterHostGoesAway(t *testing.T) {
	l := newLab(t)
	config := func(hosts string) string {
		return l.config(`
resource "trainyard_cluster" "lab" {
  name  = "lab"
  hosts = `+hosts+`
}`, group("job", `
  framework = "spark" # its workers are interchangeable: none has to know where another is
  command   = [local.member, "wait"]
  roles = {
    master = { replicas = 1, placement = { labels = { disk = "ssd" } } }
    worker = { replicas = 2, placement = { strategy = "one_per_host" } }
  }`))
	}
	placements := func(want map[string]string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), acceptance.Texts(want)),
		}
	}
	l.test(
		resource.TestStep{
			Config: config(`{ a = { labels = { disk = "ssd" } }, b = { address = "127.0.0.2" } }`),
			ConfigStateChecks: placements(map[string]string{
				"job-master-0": "a", "job-worker-0": "b", "job-worker-1": "a",
			}),
			Check: l.changes("+job-master-0", "+job-worker-0", "+job-worker-1"),
		},
		resource.TestStep{
			Config: config(`{ a = { labels = { disk = "ssd" } }, c = { address = "127.0.0.3" } }`),
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate),
			),
			ConfigStateChecks: placements(map[string]string{
				"job-master-0": "a", "job-worker-0": "c", "job-worker-1": "a",
			}),
			Check: l.changes("~job-worker-0"),
		},
	)
}

// Members are where their placement puts them.
func TestAccPlacement(t *testing.T) {
	l := newLab(t)
	role := func(placement string) string {
		return `
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 2, resources = { cpus = 0.25 }, placement = ` + placement + ` } }`
	}
	placements := func(group, first, second string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("trainyard_group."+group, tfjsonpath.New("placements"),
			acceptance.Texts(map[string]string{group + "-worker-0": first, group + "-worker-1": second}))
	}
	hosts := `
resource "trainyard_cluster" "lab" {
  name = "lab"
  hosts = {
    a = { capacity = { cpus = 4, memory_mib = 512 }, labels = { disk = "ssd", row = "1" } }
    b = { capacity = { cpus = 2, memory_mib = 512 }, labels = { disk = "ssd", row = "2" }, address = "127.0.0.2" }
  }
}`
	l.test(resource.TestStep{
		Config: l.config(hosts,
			group("spread", role(`{ strategy = "spread" }`)),
			group("pack",
				role(`{ strategy = "pack", labels = { disk = "ssd" } }`)+"\n  depends_on = [trainyard_group.spread]"),
			group("single", role(`{ strategy = "one_per_host" }`)+"\n  depends_on = [trainyard_group.pack]"),
			group("labels",
				role(`{ labels = { disk = "ssd", row = "2" } }`)+"\n  depends_on = [trainyard_group.single]"),
			group("rows", role(`{ strategy = "pack", spread_by = "row" }`)+"\n  depends_on = [trainyard_group.labels]"),
		),
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectUnknownValue("trainyard_group.spread",
			tfjsonpath.New("placements"))),
		ConfigStateChecks: []statecheck.StateCheck{
			placements("spread", "a", "b"),
			placements("pack", "a", "a"),
			placements("single", "b", "a"), // a has more members by now
			placements("labels", "b", "b"),
			placements("rows", "a", "b"),
		},
	})
}
