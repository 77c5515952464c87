package nodes

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

var errMissing = fmt.Errorf("the Docker Engine at here: %w", dockerapi.ErrNoManager)

func TestPlan(t *testing.T) {
	ours := labNetwork
	three := []swarm.Node{node("m1", reachable), node("m2", reachable), node("m3", reachable)}
	for name, test := range map[string]struct {
		facts   facts
		cluster domain.Cluster
		steps   []string
		// problems are "path: summary", with a star for warnings, and detail is a part of the first one's.
		problems []string
		detail   string
		check    func(*testing.T, domain.Cluster)
	}{
		"nothing to do": {
			facts: facts{nodes: three, networks: []network.Summary{ours}},
			cluster: lab(map[string]domain.Host{
				"m1": {}, "m2": {Role: domain.HostManager}, "m3": {Availability: domain.HostActive},
			}),
			check: func(t *testing.T, c domain.Cluster) {
				want := domain.Host{ID: "id-m1", Capacity: domain.Capacity{CPUs: 4, MemoryMiB: 8192}}
				if diff := cmp.Diff(want, c.Hosts["m1"]); diff != "" {
					t.Errorf("m1 (-want +got):\n%s", diff)
				}
			},
		},
		"a Swarm is adopted as it is": {
			facts: facts{
				nodes: []swarm.Node{
					node("M1.Lab", reachable),
					node("w1", withLabels(map[string]string{"gpu": "a"}), availability(swarm.NodeAvailabilityDrain)),
					node("w2", state(swarm.NodeStateDown)),
				},
				networks: []network.Summary{ours},
			},
			cluster: lab(nil),
			check: func(t *testing.T, c domain.Cluster) {
				has := domain.Capacity{CPUs: 4, MemoryMiB: 8192}
				want := map[string]domain.Host{
					"m1.lab": {ID: "id-M1.Lab", Capacity: has}, "w1": {ID: "id-w1", Capacity: has},
					"w2": {ID: "id-w2", Capacity: has},
				}
				if diff := cmp.Diff(want, c.Hosts); diff != "" {
					t.Errorf("hosts (-want +got):\n%s", diff)
				}
				if c.Endpoint != "" {
					t.Errorf("the endpoint is %s", c.Endpoint)
				}
			},
		},
		"what was joined stays so when it is no longer declared": {
			facts: facts{
				nodes: three[:1], networks: []network.Summary{ours}, joined: map[string]string{"m1": "ssh://m1"},
				stored: lab(map[string]domain.Host{"m1": {ID: "id-m1", Joined: true}}),
			},
			cluster: lab(nil),
			check: func(t *testing.T, c domain.Cluster) {
				if !c.Hosts["m1"].Joined {
					t.Error("m1 is not joined any more")
				}
			},
		},
		"no Swarm to adopt": {
			facts: facts{missing: errMissing}, cluster: lab(nil),
			problems: []string{"hosts: No Swarm"},
			detail:   "the Engine is not a Swarm manager; set the endpoint to that of a manager, or declare",
		},
		"no Swarm at the endpoint": {
			facts: facts{missing: errMissing}, cluster: domain.Cluster{Name: "lab", Endpoint: "ssh://x"},
			problems: []string{"endpoint: No Swarm"},
		},
		"two hosts of one name": {
			facts: facts{nodes: []swarm.Node{node("a", reachable), node("a", id("2"))}}, cluster: lab(nil),
			problems: []string{"hosts: Hosts of the same name"}, detail: `2 nodes of the Swarm are named "a"`,
		},
		"what is left of a node that joined again": {
			facts: facts{
				nodes: []swarm.Node{
					node("a", id("old"), state(swarm.NodeStateDown)), node("a", id("new"), reachable),
				},
				networks: []network.Summary{ours},
			},
			cluster: lab(nil),
			check: func(t *testing.T, c domain.Cluster) {
				if len(c.Hosts) != 1 || c.Hosts["a"].ID != "new" {
					t.Errorf("the hosts are %+v", c.Hosts)
				}
			},
		},
		"what is left of a host that joined again": {
			facts: facts{
				nodes: []swarm.Node{
					node("a", id("old"), state(swarm.NodeStateDown)), node("a", id("new")), node("m", reachable),
				},
				networks: []network.Summary{ours},
				stored:   lab(map[string]domain.Host{"a": {ID: "old"}, "m": {ID: "id-m"}}),
			},
			cluster: lab(map[string]domain.Host{"a": {}, "m": {}}),
			check: func(t *testing.T, c domain.Cluster) {
				if c.Hosts["a"].ID != "new" {
					t.Errorf("the host is %s", c.Hosts["a"].ID)
				}
			},
		},
		"a Swarm is formed": {
			facts: facts{missing: errMissing, engines: map[string]answer{
				"a": bare("1"), "b": bare("2"), "c": bare("3"), "d": bare("4"), "e": bare("5"),
			}},
			cluster: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{
				"a": {Address: "ssh://a"},
				"b": {Address: "ssh://b", Role: domain.HostManager, Labels: map[string]string{"gpu": "x"}},
				"c": {Address: "ssh://c", Role: domain.HostManager},
				"d": {Address: "ssh://d", Role: domain.HostManager},
				"e": {Address: "ssh://e", Role: domain.HostWorker, Labels: map[string]string{"disk": "fast"}},
			}},
			steps: []string{
				"initialise b", "join manager c", "join manager d", "join worker a", "join worker e", "create network",
				"amend b", "amend e",
			},
			check: func(t *testing.T, c domain.Cluster) {
				if c.Endpoint != "ssh://b" || c.Network.Subnet != "10.111.64.0/20" ||
					c.Hosts["a"].Capacity != (domain.Capacity{CPUs: 2, MemoryMiB: 4096}) {
					t.Errorf("the cluster is %+v with the network %+v", c, c.Network)
				}
			},
		},
		"a Swarm of hosts without roles": {
			facts: facts{missing: errMissing, engines: map[string]answer{"a": bare("1"), "b": bare("2")}},
			cluster: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{
				"a": {Address: "ssh://a", Role: domain.HostWorker}, "b": {Address: "ssh://b"},
			}},
			steps: []string{"initialise b", "join worker a", "create network"},
		},
		"a Swarm of workers": {
			facts:    facts{missing: errMissing, engines: map[string]answer{"a": bare("1")}},
			cluster:  lab(map[string]domain.Host{"a": {Address: "ssh://a", Role: domain.HostWorker}}),
			problems: []string{"hosts: No manager"},
		},
		"a Swarm is formed at the endpoint": {
			facts: facts{
				missing: errMissing, engines: map[string]answer{"a": bare("1"), "b": bare("2")},
				endpoint: &answer{info: system.Info{ID: "2"}},
			},
			cluster: domain.Cluster{
				Name: "lab", Endpoint: "tcp://b",
				Hosts: map[string]domain.Host{"a": {Address: "ssh://a"}, "b": {Address: "ssh://b"}},
			},
			steps: []string{"initialise b", "join worker a", "create network"},
		},
		"an endpoint that is no manager": {
			facts: facts{
				missing: errMissing, engines: map[string]answer{"a": bare("1"), "b": bare("2")},
				endpoint: &answer{info: system.Info{ID: "2"}},
			},
			cluster: domain.Cluster{Name: "lab", Endpoint: "tcp://b", Hosts: map[string]domain.Host{
				"a": {Address: "ssh://a"}, "b": {Address: "ssh://b", Role: domain.HostWorker},
			}},
			problems: []string{"endpoint: No Swarm"}, detail: "set it to the address of one of a",
		},
		"a host without an address, and no Swarm": {
			facts:    facts{missing: errMissing, engines: map[string]answer{"a": bare("1")}},
			cluster:  lab(map[string]domain.Host{"a": {Address: "ssh://a"}, "b": {}}),
			problems: []string{`hosts["b"].address: No Swarm`}, detail: "ssh://user@b",
		},
		"hosts join": {
			facts: facts{
				nodes: three, networks: []network.Summary{ours},
				engines: map[string]answer{"w1": bare("1"), "m4": bare("2")},
			},
			cluster: lab(map[string]domain.Host{
				"m1": {}, "m2": {}, "m3": {}, "w1": {Address: "ssh://w1"},
				"m4": {Address: "ssh://m4", Role: domain.HostManager},
			}),
			steps: []string{"join manager m4", "join worker w1"}, problems: []string{"hosts: Even number of managers*"},
			detail: "4 managers and tolerate the loss of 1, as it would with 3. Use an odd number",
		},
		"a host by its own Engine": {
			facts: facts{
				nodes: []swarm.Node{node("ip-1", reachable)}, networks: []network.Summary{ours},
				engines: map[string]answer{"gpu1": of("id-ip-1")},
			},
			cluster: lab(map[string]domain.Host{
				"gpu1": {Address: "ssh://gpu1", Labels: map[string]string{"gpu": "x"}},
			}),
			steps: []string{"amend gpu1"},
			check: func(t *testing.T, c domain.Cluster) {
				if c.Hosts["gpu1"].ID != "id-ip-1" || c.Hosts["gpu1"].Joined || c.Endpoint != "ssh://gpu1" {
					t.Errorf("the cluster is %+v", c)
				}
			},
		},
		"a host by the ID it had": {
			facts: facts{
				nodes: []swarm.Node{node("ip-1", reachable)}, networks: []network.Summary{ours},
				stored: lab(map[string]domain.Host{"gpu1": {ID: "id-ip-1"}}),
			},
			cluster: lab(map[string]domain.Host{"gpu1": {}}),
		},
		"a host that is renamed": {
			facts: facts{
				nodes: three[:1], networks: []network.Summary{ours}, joined: map[string]string{"old": "ssh://m1"},
				engines: map[string]answer{"new": of("id-m1")},
				stored:  lab(map[string]domain.Host{"old": {ID: "id-m1", Joined: true, Address: "ssh://m1"}}),
			},
			cluster: lab(map[string]domain.Host{"new": {Address: "ssh://m1"}}),
		},
		"a host of another Swarm": {
			facts:    facts{nodes: three, engines: map[string]answer{"x": of("elsewhere")}},
			cluster:  lab(map[string]domain.Host{"x": {Address: "ssh://x"}}),
			problems: []string{`hosts["x"].address: Host can't join`}, detail: "part of another Swarm",
		},
		"a Swarm without a declared manager": {
			facts:    facts{missing: errMissing, engines: map[string]answer{"x": of("elsewhere")}},
			cluster:  lab(map[string]domain.Host{"x": {Address: "ssh://x"}}),
			problems: []string{`hosts["x"].address: Host can't join`}, detail: "none of the cluster's hosts manages",
		},
		"a joined host that the Swarm has forgotten": {
			facts: facts{
				nodes: three, networks: []network.Summary{ours}, engines: map[string]answer{"w1": of("id-w1")},
				joined: map[string]string{"w1": "ssh://w1"},
				stored: lab(map[string]domain.Host{"w1": {ID: "id-w1", Joined: true, Address: "ssh://w1"}}),
			},
			cluster: lab(map[string]domain.Host{"w1": {Address: "ssh://w1"}}),
			steps:   []string{"join worker w1 again"},
			check: func(t *testing.T, c domain.Cluster) {
				if c.Hosts["w1"].ID != "" {
					t.Errorf("w1 is still %s", c.Hosts["w1"].ID)
				}
			},
		},
		"a joined host that is in another Swarm by now": {
			facts: facts{
				nodes: three, networks: []network.Summary{ours}, engines: map[string]answer{"w1": of("elsewhere")},
				joined: map[string]string{"w1": "ssh://w1"},
				stored: lab(map[string]domain.Host{"w1": {ID: "id-w1", Joined: true, Address: "ssh://w1"}}),
			},
			cluster:  lab(map[string]domain.Host{"w1": {Address: "ssh://w1"}}),
			problems: []string{`hosts["w1"].address: Host can't join`}, detail: "part of another Swarm",
		},
		"a host that joined, was forgotten, and was never stored": {
			facts: facts{
				nodes: three, networks: []network.Summary{ours}, engines: map[string]answer{"w1": of("id-w1", "id-m1")},
				joined: map[string]string{"w1": "ssh://w1"},
			},
			cluster: lab(map[string]domain.Host{"w1": {Address: "ssh://w1"}}),
			steps:   []string{"join worker w1 again"},
		},
		"a host that does not answer": {
			facts:    facts{nodes: three, engines: map[string]answer{"x": {err: errors.New("connection refused")}}},
			cluster:  lab(map[string]domain.Host{"x": {Address: "ssh://x"}}),
			problems: []string{`hosts["x"].address: Host can't be queried`}, detail: "connection refused",
		},
		"an address that is none": {
			facts:    facts{nodes: three, invalid: map[string]error{"x": errors.New(`"gopher" is no scheme`)}},
			cluster:  lab(map[string]domain.Host{"x": {Address: "gopher://x"}}),
			problems: []string{`hosts["x"].address: Invalid address`}, detail: "no scheme",
		},
		"a host that is not in the Swarm": {
			facts: facts{nodes: three}, cluster: lab(map[string]domain.Host{"x": {}}),
			problems: []string{`hosts["x"]: Not part of the Swarm`}, detail: "there are m1, m2, m3",
		},
		"one node, two hosts": {
			facts:    facts{nodes: three, engines: map[string]answer{"x": of("id-m1")}},
			cluster:  lab(map[string]domain.Host{"m1": {}, "x": {Address: "ssh://x"}}),
			problems: []string{`hosts["x"]: Host declared twice`}, detail: `"m1" and "x" are the same node`,
		},
		"more than a host has": {
			facts:   facts{nodes: three},
			cluster: lab(map[string]domain.Host{"m1": {Capacity: domain.Capacity{CPUs: 4.5, MemoryMiB: 8400}}}),
			problems: []string{
				`hosts["m1"].capacity.cpus: Capacity exceeds the host's`,
				`hosts["m1"].capacity.memory_mib: Capacity exceeds the host's`,
			},
			detail: `host "m1" has 4 CPUs, but 4.5 are declared`,
		},
		"as much as a host had": {
			facts:   facts{nodes: three, networks: []network.Summary{ours}},
			cluster: lab(map[string]domain.Host{"m1": {Capacity: domain.Capacity{CPUs: 4, MemoryMiB: 8300}}}),
		},
		"reserved labels": {
			facts:    facts{nodes: three},
			cluster:  lab(map[string]domain.Host{"m1": {Labels: map[string]string{"trainyard.x": ""}}}),
			problems: []string{`hosts["m1"].labels["trainyard.x"]: Reserved label`},
		},
		"managers come before managers go": {
			facts: facts{
				nodes: []swarm.Node{
					node("a", reachable), node("b", reachable), node("c", lost), node("d"), node("e"),
				},
				networks: []network.Summary{ours},
			},
			cluster: lab(map[string]domain.Host{
				"a": {Role: domain.HostWorker}, "c": {Role: domain.HostWorker}, "d": {Role: domain.HostManager},
				"e": {Role: domain.HostManager},
			}),
			steps: []string{"amend d", "amend e", "demote c", "demote a"},
		},
		"quorum would be lost": {
			facts: facts{
				nodes:    []swarm.Node{node("a", reachable), node("b", reachable), node("c", lost)},
				networks: []network.Summary{ours},
			},
			cluster:  lab(map[string]domain.Host{"a": {Role: domain.HostWorker}}),
			steps:    []string{"demote a"},
			problems: []string{"hosts: Quorum would be lost"},
			detail:   "2 managers, 1 reachable after the change, 2 needed: without a quorum the Swarm accepts no changes. Bring back c first",
		},
		"quorum is lost already": {
			facts: facts{
				nodes:    []swarm.Node{node("a", reachable), node("b", lost), node("c", lost)},
				networks: []network.Summary{ours},
			},
			cluster:  lab(map[string]domain.Host{"a": {}}),
			problems: []string{"hosts: Quorum lost*"},
			detail:   "3 managers, 1 reachable, 2 needed: the Swarm accepts no changes until b, c can be reached again",
		},
		"two nodes of a host's name": {
			facts:    facts{nodes: []swarm.Node{node("a", reachable), node("a", id("2"))}},
			cluster:  lab(map[string]domain.Host{"a": {}}),
			problems: []string{`hosts["a"]: Ambiguous host name`},
			detail:   `2 nodes of the Swarm are named "a": give the address`,
		},
		"the longest name": {
			facts:   facts{nodes: three},
			cluster: domain.Cluster{Name: strings.Repeat("a", 42), Hosts: map[string]domain.Host{"m1": {}}},
			steps:   []string{"create network"},
		},
		"a name that is too long": {
			facts:    facts{nodes: three},
			cluster:  domain.Cluster{Name: strings.Repeat("a", 43), Hosts: map[string]domain.Host{"m1": {}}},
			problems: []string{"name: Invalid cluster name"},
			detail:   "has 43 characters; at most 42 are allowed on a Swarm",
		},
		"a host of a locked Swarm": {
			facts: facts{nodes: three, engines: map[string]answer{
				"x": {info: system.Info{Swarm: swarm.Info{LocalNodeState: swarm.LocalNodeStateLocked}}},
			}},
			cluster:  lab(map[string]domain.Host{"x": {Address: "ssh://x"}}),
			problems: []string{`hosts["x"].address: Host can't join`}, detail: "docker swarm unlock",
		},
		"an even number of managers is adopted": {
			facts: facts{nodes: three[:2], networks: []network.Summary{ours}}, cluster: lab(nil),
			problems: []string{"hosts: Even number of managers*"},
		},
		"an even number of managers was adopted": {
			facts: facts{
				nodes: three[:2], networks: []network.Summary{ours},
				stored: lab(map[string]domain.Host{"m1": {ID: "id-m1"}, "m2": {ID: "id-m2"}}),
			},
			cluster: lab(nil),
		},
		"the last manager": {
			facts:   facts{nodes: three[:1], networks: []network.Summary{ours}},
			cluster: lab(map[string]domain.Host{"m1": {Role: domain.HostWorker}}),
			steps:   []string{"demote m1"}, problems: []string{"hosts: No manager would remain"},
		},
		"hosts go": {
			facts: facts{
				nodes: []swarm.Node{
					node("m1", reachable), node("m2", reachable), node("m3", reachable), node("w1"),
					node("w2", withLabels(map[string]string{"gpu": "x", ownLabels("lab"): `["gpu"]`})),
					node("w3", withLabels(map[string]string{"mine": "1"})),
				},
				networks: []network.Summary{
					ours,
				}, joined: map[string]string{"m2": "ssh://m2", "m3": "ssh://m3", "w1": "ssh://w1"},
				stored: lab(map[string]domain.Host{
					"m1": {ID: "id-m1"}, "m2": {ID: "id-m2"}, "m3": {ID: "id-m3"}, "w1": {ID: "id-w1"},
					"w2": {ID: "id-w2"}, "w3": {ID: "id-w3"},
				}),
			},
			cluster: lab(map[string]domain.Host{"m1": {}}),
			steps:   []string{"amend w2", "demote m2", "demote m3", "take out w1", "take out m2", "take out m3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.facts.plan(test.cluster)
			if diff := cmp.Diff(test.steps, words(p.steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			var problems []string
			for _, problem := range p.problems {
				text := problem.Path.String() + ": " + problem.Summary
				if problem.Warning {
					text += "*"
				}
				problems = append(problems, text)
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", diff, p.problems)
			}
			if len(p.problems) > 0 && !strings.Contains(p.problems[0].Detail, test.detail) {
				t.Errorf("the problem should say %q: %s", test.detail, p.problems[0].Detail)
			}
			if test.check != nil {
				test.check(t, p.cluster)
			}
		})
	}
}
