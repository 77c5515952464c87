package nodes

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestAddressRoom(t *testing.T) {
	for subnet, want := range map[string]int{
		"10.64.0.0/20": 4086, "10.64.0.0/24": 246, "10.64.0.0/29": -2, "10.64.0.0/30": -6,
	} {
		if got := addressRoom(netip.MustParsePrefix(subnet), 3); got != want {
			t.Errorf("%s has room for %d members on 3 nodes, not %d", subnet, got, want)
		}
	}
}

func TestChooseSubnet(t *testing.T) {
	taken := func(prefixes ...string) []reserved {
		var all []reserved
		for _, prefix := range prefixes {
			all = append(all, reserved{prefix: netip.MustParsePrefix(prefix)})
		}
		return all
	}
	for name, test := range map[string]struct {
		taken []reserved
		want  string
	}{
		"nothing taken":  {nil, "10.111.64.0/20"},
		"elsewhere":      {taken("172.17.0.0/16", "10.0.0.0/24", "fd00::/64"), "10.111.64.0/20"},
		"the first":      {taken("10.111.64.0/20"), "10.113.144.0/20"},
		"a part of it":   {taken("10.111.79.0/24", "10.113.144.0/28"), "10.115.224.0/20"},
		"a gap":          {taken("10.111.64.0/20", "10.115.224.0/20"), "10.113.144.0/20"},
		"around a host":  {taken("10.111.3.7/32"), "10.113.144.0/20"},
		"after the last": {taken("10.111.0.0/16", "10.112.0.0/12"), "10.65.192.0/20"},
		"the only free one": {taken("10.64.0.0/11", "10.96.0.0/13", "10.104.0.0/14", "10.108.0.0/15",
			"10.110.0.0/16", "10.111.0.0/19", "10.111.32.0/20", "10.111.64.0/18", "10.111.128.0/17", "10.112.0.0/12"),
			"10.111.48.0/20"},
		"none": {taken("10.0.0.0/8"), ""},
	} {
		got, free := chooseSubnet("lab", test.taken)
		if free != (test.want != "") || free && got.String() != test.want {
			t.Errorf("%s: %s (%v), not %s", name, got, free, test.want)
		}
	}
}

// Clusters of one plan don't see each other's choice, also if their first ones lie in the same taken range.
func TestSubnetsOfOnePlan(t *testing.T) {
	taken := netip.MustParsePrefix("10.82.0.0/16")
	next := map[string]netip.Prefix{}
	for _, cluster := range []string{"a", "staging"} {
		if subnet, _ := chooseSubnet(cluster, nil); !taken.Contains(subnet.Addr()) {
			t.Errorf("cluster %q chooses %s first", cluster, subnet)
		}
		next[cluster], _ = chooseSubnet(cluster, []reserved{{prefix: taken}})
	}
	if next["a"] == next["staging"] {
		t.Errorf("both clusters choose %s after a taken range", next["a"])
	}

	chosen := map[netip.Prefix]string{}
	for _, cluster := range []string{"lab", "lab-two", "multiworker-lab-one", "multiworker-lab-two", "a", "b"} {
		subnet, _ := chooseSubnet(cluster, nil)
		if other, taken := chosen[subnet]; taken {
			t.Errorf("clusters %q and %q both choose %s", other, cluster, subnet)
		}
		chosen[subnet] = cluster
	}
}

func TestNetworkPlan(t *testing.T) {
	other := network.Summary{
		Name: "theirs", Scope: "swarm", IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.64.0.0/16"}}},
	}
	docker0 := network.Summary{
		Name: "bridge", Scope: "local", IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.80.0.0/16"}}},
	}
	foreign := labNetwork
	foreign.Labels = nil
	local := foreign
	local.Scope = "local"
	encrypted := labNetwork
	encrypted.Options = map[string]string{"encrypted": ""}
	joins := bare("1")
	joins.networks = []network.Summary{docker0}
	one := []swarm.Node{node("m1", reachable)}
	for name, test := range map[string]struct {
		facts    facts
		network  *domain.Network
		want     domain.Network
		steps    []string
		problem  string
		detail   string
		hosts    map[string]domain.Host
		existing bool
	}{
		"a free one is chosen": {
			facts: facts{networks: []network.Summary{other}}, want: domain.Network{Subnet: "10.111.64.0/20"},
			steps: []string{"create network"},
		},
		"the live one is kept": {
			facts: facts{networks: []network.Summary{other, labNetwork}}, want: domain.Network{Subnet: "10.64.0.0/20"},
		},
		"the stored one is kept": {
			facts: facts{stored: domain.Cluster{Network: &domain.Network{Subnet: "10.70.0.0/20"}}},
			want:  domain.Network{Subnet: "10.70.0.0/20"}, steps: []string{"create network"},
		},
		"the stored one is taken": {facts: facts{
			networks: []network.Summary{other},
			stored:   domain.Cluster{Network: &domain.Network{Subnet: "10.64.0.0/20"}},
		}, want: domain.Network{Subnet: "10.111.64.0/20"}, steps: []string{"create network"}},
		"a local one of its name": {
			facts: facts{networks: []network.Summary{local}}, problem: "network: Network already exists",
			detail: "not Trainyard's",
		},
		"one as declared": {
			facts: facts{networks: []network.Summary{encrypted}}, network: &domain.Network{Encrypted: true},
			want: domain.Network{Subnet: "10.64.0.0/20", Encrypted: true},
		},
		"one that is encrypted now": {
			facts: facts{networks: []network.Summary{labNetwork}}, network: &domain.Network{Encrypted: true},
			want:  domain.Network{Subnet: "10.64.0.0/20", Encrypted: true},
			steps: []string{"remove network", "create network"},
		},
		"one that is elsewhere now": {
			facts: facts{networks: []network.Summary{labNetwork}}, network: &domain.Network{Subnet: "10.99.0.0/24"},
			want: domain.Network{Subnet: "10.99.0.0/24"}, steps: []string{"remove network", "create network"},
		},
		"one over its own": {
			facts: facts{networks: []network.Summary{labNetwork}}, network: &domain.Network{Subnet: "10.64.0.0/19"},
			want: domain.Network{Subnet: "10.64.0.0/19"}, steps: []string{"remove network", "create network"},
		},
		"somebody else's of its name": {
			facts: facts{networks: []network.Summary{foreign}}, problem: "network: Network already exists",
			detail: "not Trainyard's",
		},
		"over another network": {
			facts: facts{networks: []network.Summary{other}}, network: &domain.Network{Subnet: "10.64.128.0/20"},
			problem: "network.subnet: Subnet in use",
			detail:  "10.64.128.0/20 overlaps with network theirs (10.64.0.0/16)",
		},
		"over a host's address": {
			network: &domain.Network{Subnet: "192.0.2.0/24"}, problem: "network.subnet: Subnet in use",
			detail: "the address of host m1:",
		},
		"over a joining host's": {
			facts:   facts{networks: []network.Summary{labNetwork}, engines: map[string]answer{"w1": joins}},
			hosts:   map[string]domain.Host{"m1": {}, "w1": {Address: "ssh://w1"}},
			network: &domain.Network{Subnet: "10.80.0.0/20"}, problem: "network.subnet: Subnet in use",
			detail: "network bridge of host w1 (10.80.0.0/16)",
		},
		"over an advertised address": {
			facts:   facts{networks: []network.Summary{}},
			hosts:   map[string]domain.Host{"m1": {AdvertiseAddress: "10.99.0.7"}},
			network: &domain.Network{Subnet: "10.99.0.0/24"}, problem: "network.subnet: Subnet in use",
			detail: "the address of host m1:",
		},
		"IPv6": {
			network: &domain.Network{Subnet: "fd00::/64"}, problem: "network.subnet: Invalid subnet", detail: "IPv4",
		},
		"too small": {
			network: &domain.Network{Subnet: "10.99.0.0/30"}, problem: "network.subnet: Subnet too small",
			detail: "has 4 addresses, which leaves none for members: the network itself takes 3, the controller one, and each of the 1 nodes two; a /20 has room for 4090 members",
		},
		"just large enough": {
			network: &domain.Network{Subnet: "10.99.0.0/29"}, want: domain.Network{Subnet: "10.99.0.0/29"},
			steps: []string{"create network"},
		},
		"none is free": {facts: facts{networks: []network.Summary{
			{Name: "all", IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.0.0.0/8"}}}},
		}}, problem: "network.subnet: No free subnet", detail: "use 10.0.0.0/8"},
		"left to the domain to refuse": {
			network: &domain.Network{Subnet: "10.99.0.1/24"}, want: domain.Network{Subnet: "10.99.0.1/24"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.nodes = one
			cluster := domain.Cluster{Name: "lab", Hosts: test.hosts, Network: test.network}
			if cluster.Hosts == nil {
				cluster.Hosts = map[string]domain.Host{"m1": {}}
			}
			p := test.facts.plan(cluster)
			if test.problem != "" {
				if len(p.problems) != 1 || p.problems[0].Path.String()+": "+p.problems[0].Summary != test.problem ||
					!strings.Contains(p.problems[0].Detail, test.detail) {
					t.Errorf("the problems are %v; one should be %s: … %s", p.problems, test.problem, test.detail)
				}
				return
			}
			swarmtest.Must(t, p.problems.Err())
			if diff := cmp.Diff(&test.want, p.cluster.Network); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.steps, words(p.steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNetworkInUse(t *testing.T) {
	f := facts{nodes: []swarm.Node{node("m1", reachable)}, networks: []network.Summary{labNetwork}}
	cluster := domain.Cluster{
		Name: "lab", Hosts: map[string]domain.Host{"m1": {}}, Network: &domain.Network{Attachable: true},
	}
	service := func(name, target string, labels map[string]string) swarm.Service {
		var s swarm.Service
		s.Spec.Name, s.Spec.Labels = name, labels
		s.Spec.TaskTemplate.Networks = []swarm.NetworkAttachmentConfig{{Target: target}}
		return s
	}
	group := map[string]string{spec.LabelCluster: "lab", spec.LabelGroup: "mnist"}
	for name, test := range map[string]struct {
		services []swarm.Service
		want     string
	}{
		"by nobody": {[]swarm.Service{service("mnist-ps-0", "other", group), {}}, ""},
		"by the agents": {[]swarm.Service{service("trainyard-lab-agent", "n1",
			map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindAgent})}, ""},
		"by its own controller": {[]swarm.Service{service("trainyard-lab-controller", "n1",
			map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindController})}, ""},
		"by another cluster's": {[]swarm.Service{
			service("trainyard-other-controller", "n1",
				map[string]string{spec.LabelCluster: "other", spec.LabelKind: spec.KindController}),
		}, "service trainyard-other-controller"},
		"by a group": {
			[]swarm.Service{service("mnist-ps-0", "n1", group), service("mnist-ps-1", "trainyard-lab", group)},
			"is in use by group mnist: destroy",
		},
		"by a stranger": {
			[]swarm.Service{service("web", "n1", nil)},
			"network trainyard-lab (10.64.0.0/20) would have to be recreated (10.64.0.0/20, attachable), as Docker can't change networks, but is in use by service web",
		},
	} {
		p := f.plan(cluster)
		p.checkUnused(labNetwork, test.services)
		switch err := p.problems.Err(); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v; it should say %s", name, err, test.want)
		}
	}
}

func TestReadNetwork(t *testing.T) {
	for _, want := range []domain.Network{
		{Subnet: "10.64.0.0/20"}, {Subnet: "10.65.0.0/20", Encrypted: true, Attachable: true},
	} {
		options := networkOptions("lab", want)
		live := network.Summary{
			Name: spec.NetworkName("lab"), Scope: options.Scope, Labels: options.Labels, IPAM: *options.IPAM,
			Options: options.Options, Attachable: options.Attachable,
		}
		found, own := dockerapi.OwnNetwork([]network.Summary{{Name: "x"}, live}, "lab")
		if got := dockerapi.ReadNetwork(found); !own || got != want {
			t.Errorf("created from %+v, read as %+v", want, got)
		}
	}
}
