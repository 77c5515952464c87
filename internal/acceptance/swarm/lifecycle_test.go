//go:build linux

package swarm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// expectNodes returns a check that the nodes of the Swarm, according to the first one, have these roles; with none,
// that no engine of the bed is in a Swarm.
func (l *swarmLab) expectNodes(want map[string]dockerswarm.NodeRole) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got := map[string]dockerswarm.NodeRole{}
		if len(want) > 0 {
			nodes, err := l.bed.Nodes[0].Client().NodeList(l.Context(), dockerswarm.NodeListOptions{})
			if err != nil {
				return err
			}
			for _, node := range nodes {
				got[node.Description.Hostname] = node.Spec.Role
			}
			return acceptance.Differences(want, got)
		}
		for _, node := range l.bed.Nodes {
			if state := l.inSwarm(node); state != dockerswarm.LocalNodeStateInactive {
				return fmt.Errorf("%s is %s in a Swarm", node.Name, state)
			}
		}
		return nil
	}
}

// inSwarm returns an engine's own Swarm state.
func (l *swarmLab) inSwarm(node *testbed.Node) dockerswarm.LocalNodeState {
	l.Helper()
	info, err := node.Client().Info(l.Context())
	l.must(err)
	return info.Swarm.LocalNodeState
}

// Plain engines form a Swarm that runs a group, in one apply; the group is changed, lost and recovered; and in the end
// the engines are as before.
func TestAccSwarmFormed(t *testing.T) { onEnginesAtNight(t, testAccSwarmFormed) }

func testAccSwarmFormed(t *testing.T, engine string) {
	l := newSwarmLab(t, ownBed(t, testbed.Options{Nodes: 3, Engine: engine}), "formed")
	acctest.LoadMember(t, l.bed, otherImage)
	image := l.imageID(otherImage)
	config := func(image, rate string, workers int) string {
		return l.config(l.formed(map[string]string{
			"node1": `role = "manager"`, "node2": `labels = { gpu = "a" }`, "node3": "",
		}), l.group(fmt.Sprintf(`
  image    = %q
  args     = ["wait"]
  timeouts = { create = "10m", update = "10m" }
  roles = {
    ps     = { replicas = 1, placement = { labels = { gpu = "a" } } }
    worker = { replicas = %d, env = { RATE = %q } }
  }`, image, workers, rate)))
	}
	addresses := func(members ...string) knownvalue.Check {
		want := map[string]string{}
		for _, member := range members {
			want[member] = member + ":20000"
		}
		return acceptance.Texts(want)
	}
	members := func(check knownvalue.Check) []statecheck.StateCheck {
		return []statecheck.StateCheck{statecheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("members"), check)}
	}
	ps, first, second := l.member("ps", 0), l.member("worker", 0), l.member("worker", 1)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: l.providers(),
		CheckDestroy:             l.expectNodes(nil),
		Steps: []resource.TestStep{{
			Config: config(memberImage, "0.1", 1),
			Check: resource.ComposeTestCheckFunc(
				l.expectNodes(map[string]dockerswarm.NodeRole{
					"node1": "manager", "node2": "worker", "node3": "worker",
				}),
				resource.TestCheckResourceAttr(acceptance.TheLab, "endpoint", l.bed.Nodes[0].Host()),
				resource.TestCheckResourceAttr(acceptance.TheJob, "placements."+ps, "node2"),
				l.changes("+"+ps, "+"+first),
			),
			ConfigStateChecks: members(addresses(ps, first)),
		}, {
			Config:           config(memberImage, "0.1", 1),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			Check:            l.changes(),
		}, {
			Config: config(memberImage, "0.1", 2),
			ConfigPlanChecks: acceptance.Planned(acceptance.Shows(acceptance.TheJob,
				acceptance.Attribute("roles", "worker", "replicas"), 1, 2)),
			Check:             l.changes("~"+ps, "~"+first, "+"+second), // they learn each other's address
			ConfigStateChecks: members(addresses(ps, first, second)),
		}, {
			Config: config(memberImage, "0.2", 2),
			ConfigPlanChecks: acceptance.Planned(acceptance.Shows(acceptance.TheJob,
				acceptance.Attribute("roles", "worker", "env", "RATE"), "0.1", "0.2")),
			Check: l.changes("~"+first, "~"+second),
		}, {
			Config: config(image, "0.2", 2),
			ConfigPlanChecks: acceptance.Planned(acceptance.Shows(acceptance.TheJob, acceptance.Attribute("image"),
				memberImage, image)),
			Check: resource.ComposeTestCheckFunc(l.changes("~"+ps, "~"+first, "~"+second),
				func(*terraform.State) error {
					return acceptance.Differences(image, l.service(first).Spec.TaskTemplate.ContainerSpec.Image)
				}),
		}, {
			PreConfig: func() {
				for _, member := range []string{ps, first, second} {
					l.removeService(member)
				}
				l.seen = l.tasks()
			},
			Config:           config(image, "0.2", 2),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check:            l.changes("+"+ps, "+"+first, "+"+second),
		}, {
			// Its documents are gone, and what runs is found again.
			PreConfig: func() {
				docker := l.bed.Nodes[0].Client()
				configs, err := docker.ConfigList(t.Context(), dockerswarm.ConfigListOptions{})
				l.must(err)
				for _, config := range configs {
					if config.Spec.Labels["trainyard.kind"] == "group" {
						l.must(docker.ConfigRemove(t.Context(), config.ID))
					}
				}
			},
			Config:           config(image, "0.2", 2),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionCreate),
			Check: func(*terraform.State) error {
				return acceptance.Differences([]string{ps, first, second}, slices.Sorted(maps.Keys(l.tasks())))
			},
		}},
	})
}

// An import restores what was in a lost state.
func TestAccSwarmImport(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "imported")
	w := newSwarmWorkspace(l)
	w.Env("DOCKER_HOST", l.bed.Nodes[0].Host())
	w.configure(l.cluster(`
  hosts = { node1 = {}, node2 = { labels = { imported = "yes" } } }`), l.group(`
  framework = "pytorch"
  image     = "`+memberImage+`"
  args      = ["print:{{ .Name }}", "wait"]
  mounts    = [{ type = "volume", source = "imported", target = "/data" }]
  timeouts  = { create = "10m" }
  container = {
    user         = "1000:100"
    init         = true
    stop_signal  = "SIGINT"
    shm_size_mib = 128
    ulimits      = { nofile = { soft = 512, hard = 1024 } }
    configs      = { setting = { content = "1", target = "/etc/setting", mode = "0440" } }
    logging      = { driver = "json-file", options = { max-size = "1m" } }
    ports        = { metrics = { target = 9000, published = 9000 } }
  }
  roles = {
    master = { replicas = 1, resources = { cpus = 0.1, memory_mib = 32, limits = { memory_mib = 64 } } }
    worker = { replicas = 1, placement = { labels = { imported = "yes" } }, restart = { condition = "never" }, grace_period = "3s" }
  }
  completion    = { when = "all", deadline = "10h0m0s" }
  restart_scope = "group"`))
	w.Must("apply", "-auto-approve")
	before := w.attributes()
	l.seen = l.tasks()
	for address, id := range map[string]string{acceptance.TheLab: l.name, acceptance.TheJob: l.name + "/" + l.name} {
		w.Must("state", "rm", address)
		w.Must("import", address, id)
	}
	after := w.attributes()
	for address := range before {
		delete(before[address], "timeouts") // only in the configuration
		delete(after[address], "timeouts")
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what was imported (-before +after):\n%s", diff)
	}
	if code, output := w.exit("plan", "-detailed-exitcode"); code != 2 || !strings.Contains(output, "timeouts") ||
		strings.Contains(output, "roles") {
		t.Errorf("after an import something else than timeouts is to be changed (%d):\n%s", code, output)
	}
	w.Must("apply", "-auto-approve")
	l.must(l.changes()(nil))
}

// attributes returns the resources in the state by address.
func (w *swarmWorkspace) attributes() map[string]map[string]any {
	w.swarmLab.Helper()
	var state struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string
					Values  map[string]any
				}
			} `json:"root_module"`
		}
	}
	w.must(json.Unmarshal([]byte(w.Must("show", "-json")), &state))
	attributes := map[string]map[string]any{}
	for _, r := range state.Values.Root.Resources {
		attributes[r.Address] = r.Values
	}
	return attributes
}

// An existing Swarm is adopted as it is, at the endpoint of any of its managers, and outlives the cluster. Its network
// is created as specified, and recreated when that changes.
func TestAccSwarmAdopted(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "adopted")
	config := func(options string) string {
		return l.config(strings.Replace(l.cluster(""), fmt.Sprintf("{ subnet = %q }", l.subnet), options, 1))
	}
	live := func(want network.Inspect) resource.TestCheckFunc {
		return func(*terraform.State) error {
			is, err := l.bed.Nodes[0].Client().NetworkInspect(t.Context(), "trainyard-adopted",
				network.InspectOptions{})
			if err != nil {
				return err
			}
			_, encrypted := is.Options["encrypted"]
			_, wanted := want.Options["encrypted"]
			if is.IPAM.Config[0].Subnet != want.IPAM.Config[0].Subnet || is.Attachable != want.Attachable ||
				encrypted != wanted {
				return fmt.Errorf("the network is %+v", is)
			}
			return nil
		}
	}
	like := func(subnet string, attachable bool, options map[string]string) network.Inspect {
		return network.Inspect{
			IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}, Attachable: attachable,
			Options: options,
		}
	}
	nodes := map[string]dockerswarm.NodeRole{"node1": "manager", "node2": "worker", "node3": "worker"}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: l.providers(),
		CheckDestroy:             l.expectNodes(nodes),
		Steps: []resource.TestStep{{
			Config: config(fmt.Sprintf("{ subnet = %q, attachable = true }", l.subnet)),
			Check: resource.ComposeTestCheckFunc(live(like(l.subnet, true, nil)),
				resource.TestCheckResourceAttr(acceptance.TheLab, "hosts.%", "3")),
		}, {
			Config: config(fmt.Sprintf("{ subnet = %q, encrypted = true }", l.subnet)),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction(acceptance.TheLab,
				plancheck.ResourceActionUpdate)),
			// What is left out is unmanaged from then on.
			Check: resource.ComposeTestCheckFunc(live(like(l.subnet, true, map[string]string{"encrypted": ""})),
				l.expectNodes(nodes)),
		}, {
			Config: config(fmt.Sprintf("{ subnet = %q, encrypted = false }",
				strings.Replace(l.subnet, ".0.0/20", ".16.0/24", 1))),
			ConfigPlanChecks: acceptance.Planned(acceptance.Shows(acceptance.TheLab,
				acceptance.Attribute("network", "encrypted"), true, false)),
			Check: live(like(strings.Replace(l.subnet, ".0.0/20", ".16.0/24", 1), true, nil)),
		}},
	})
}

// Hosts are added, promoted, demoted and removed, as long as the Swarm keeps its quorum.
func TestAccSwarmManagers(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, ownBed(t, testbed.Options{Nodes: 3}), "managers")
	w := newSwarmWorkspace(l)
	roles := func(roles ...string) {
		hosts := map[string]string{}
		for i, role := range roles {
			hosts[l.bed.Nodes[i].Name] = fmt.Sprintf("role = %q", role)
		}
		w.configure(l.formed(hosts))
	}
	is := func(want map[string]dockerswarm.NodeRole) {
		t.Helper()
		l.must(l.expectNodes(want)(nil))
		w.ExpectNoChange("after the apply")
	}
	refused := func(phrases ...string) {
		t.Helper()
		if code, output := w.exit("plan", "-detailed-exitcode"); code != 1 ||
			!acceptance.Says(phrases...).MatchString(output) {
			t.Errorf("the plan ends with %d, want an error like %q\n%s", code, phrases, output)
		}
	}
	roles("manager", "worker")
	w.Must("apply", "-auto-approve")
	is(map[string]dockerswarm.NodeRole{"node1": "manager", "node2": "worker"})

	roles("manager", "manager")
	if code, output := w.exit("plan", "-detailed-exitcode"); code != 2 ||
		!acceptance.Says("Warning: Even number of managers",
			"2 managers and tolerate the loss of 0").MatchString(output) {
		t.Errorf("a plan with two managers ends with %d\n%s", code, output)
	}
	roles("manager", "manager", "manager")
	w.Must("apply", "-auto-approve")
	is(map[string]dockerswarm.NodeRole{"node1": "manager", "node2": "manager", "node3": "manager"})

	third := l.bed.Nodes[2]
	l.must(third.Kill())
	acctest.Eventually(t, "node3 to be unreachable", func() bool {
		node, err := l.findNode("node3")
		return err == nil && node.ManagerStatus != nil &&
			node.ManagerStatus.Reachability == dockerswarm.ReachabilityUnreachable
	})
	roles("manager", "worker", "manager")
	refused(`hosts: 2 managers, 1 reachable after the change, 2 needed`, `Bring back node3 first`)
	roles("worker", "worker", "worker")
	refused(`No manager`)
	l.must(third.Restart(t.Context()))
	acctest.Eventually(t, "node3 to be reachable", func() bool {
		node, err := l.findNode("node3")
		return err == nil && node.Status.State == dockerswarm.NodeStateReady && node.ManagerStatus != nil &&
			node.ManagerStatus.Reachability == dockerswarm.ReachabilityReachable
	})
	roles("manager", "worker")
	w.Must("apply", "-auto-approve")
	is(map[string]dockerswarm.NodeRole{"node1": "manager", "node2": "worker"})
	if state := l.inSwarm(third); state != dockerswarm.LocalNodeStateInactive {
		t.Errorf("node3 was taken out of the Swarm, and is %s", state)
	}
	w.Must("destroy", "-auto-approve")
	l.must(l.expectNodes(nil)(nil))
	if left := w.attributes(); !reflect.DeepEqual(left, map[string]map[string]any{}) {
		t.Errorf("in the state there is left %v", left)
	}
}
