package nodes

import (
	"maps"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// reserving returns a task on a node that reserves one CPU and slightly more than one MiB.
func reserving(node string, state swarm.TaskState, labels map[string]string) swarm.Task {
	return swarm.Task{
		NodeID: node, Status: swarm.TaskStatus{State: state},
		Spec: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Labels: labels},
			Resources: &swarm.ResourceRequirements{
				Reservations: &swarm.Resources{NanoCPUs: spec.NanoCPUs, MemoryBytes: spec.MiB + 1},
			},
		},
	}
}

func TestTaken(t *testing.T) {
	called := func(name string, labels map[string]string) swarm.Service {
		return swarm.Service{Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: name, Labels: labels}}}
	}
	got := taken([]swarm.Service{
		called("mnist-ps-0", map[string]string{
			spec.LabelCluster: "lab", spec.LabelGroup: "mnist", spec.LabelRole: "ps", spec.LabelIndex: "0",
		}),
		called("web", nil),
		called("trainyard-lab-agent", map[string]string{spec.LabelCluster: "lab", spec.LabelKind: spec.KindAgent}),
		called("mnist-worker-0", map[string]string{
			spec.LabelCluster: "other", spec.LabelGroup: "mnist", spec.LabelRole: "worker", spec.LabelIndex: "0",
		}),
	}, "lab")
	want := map[string]string{
		"web": "a service that is not Trainyard's", "trainyard-lab-agent": "a service of Trainyard's own",
		"mnist-worker-0": "a service of cluster other",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestInventory(t *testing.T) {
	declared := domain.Capacity{CPUs: 3, MemoryMiB: 1000}
	cluster := lab(map[string]domain.Host{
		"ok":      {ID: "id-ok", Capacity: declared, Labels: map[string]string{"gpu": "x"}},
		"bare":    {ID: "id-bare"},
		"down":    {ID: "id-down", Capacity: declared},
		"unknown": {ID: "id-unknown", Capacity: declared},
		"drained": {ID: "id-drained", Capacity: declared},
		"paused":  {ID: "id-paused", Capacity: declared},
		"gone":    {ID: "id-gone", Capacity: declared, Address: "ssh://gone"},
		"comes":   {Capacity: declared, Address: "ssh://comes"},
		"todrain": {ID: "id-todrain", Capacity: declared, Availability: domain.HostDrained},
		"topause": {ID: "id-topause", Capacity: declared, Availability: domain.HostPaused},
		"toopen":  {ID: "id-toopen", Capacity: declared, Availability: domain.HostActive},
		"opened":  {ID: "id-opened", Capacity: declared, Availability: domain.HostActive},
	})
	stored := lab(map[string]domain.Host{
		"ok":     {Labels: map[string]string{"gpu": "x", "rack": "1", "row": "1"}},
		"toopen": {Availability: domain.HostDrained},
		"opened": {Availability: domain.HostActive},
	})
	nodes := []swarm.Node{
		node("ok", reachable, withLabels(map[string]string{
			"gpu": "drifted", "zone": "1", "rack": "1", "row": "1", ownLabels("lab"): `["gpu"]`,
			ownLabels("other"): `["row"]`,
		})), node("bare"), node("down", state(swarm.NodeStateDown)),
		node("unknown", state(swarm.NodeStateUnknown)), node("drained", availability(swarm.NodeAvailabilityDrain)),
		node("paused", availability(swarm.NodeAvailabilityPause)), node("todrain"), node("topause"),
		node("toopen", availability(swarm.NodeAvailabilityDrain)),
		node("opened", availability(swarm.NodeAvailabilityDrain)),
	}
	member := map[string]string{
		spec.LabelCluster: "lab", spec.LabelGroup: "mnist", spec.LabelRole: "ps", spec.LabelIndex: "0",
	}
	tasks := []swarm.Task{
		reserving("id-ok", swarm.TaskStateRunning, member), reserving("id-ok", swarm.TaskStateRunning, nil),
		reserving("id-ok", swarm.TaskStatePreparing, nil),
		reserving("id-ok", swarm.TaskStateFailed, nil), reserving("elsewhere", swarm.TaskStateRunning, nil),
		reserving("id-bare", swarm.TaskStateRunning, map[string]string{
			spec.LabelCluster: "other", spec.LabelGroup: "mnist",
		}), {NodeID: "id-bare", Status: swarm.TaskStatus{State: swarm.TaskStateRunning}},
	}
	got := inventory(cluster, stored, nodes, tasks)
	want := engine.Inventory{
		Hosts: map[string]domain.Host{},
		Closed: map[string]string{
			"down": "host down is down", "unknown": "host unknown is unknown", "drained": "host drained is drained",
			"paused": "host paused is paused",
			"gone":   "host gone is not part of the Swarm", "todrain": "host todrain will be drained",
			"topause": "host topause will be paused",
			"opened":  "host opened is drained",
		},
		Lost: map[string]string{
			"down": "host down is down", "drained": "host drained is drained",
			"gone": "host gone is not part of the Swarm", "todrain": "host todrain will be drained",
			"opened": "host opened is drained",
		},
		Reserved:  map[string]domain.Resources{"ok": {CPUs: 2, MemoryMiB: 4}, "bare": {CPUs: 1, MemoryMiB: 2}},
		Addresses: 4096 - 3 - 1 - 2*12,
	}
	maps.Copy(want.Hosts, cluster.Hosts)
	want.Hosts["ok"] = domain.Host{
		ID: "id-ok", Capacity: declared, Labels: map[string]string{"gpu": "x", "zone": "1", "row": "1"},
	}
	want.Hosts["bare"] = domain.Host{ID: "id-bare", Capacity: domain.Capacity{CPUs: 4, MemoryMiB: 8192}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoom(t *testing.T) {
	for name, test := range map[string]struct {
		network *domain.Network
		nodes   int
		want    int
	}{
		"no network": {nil, 1, 0}, "not chosen": {&domain.Network{}, 1, 0},
		"a /24":       {&domain.Network{Subnet: "10.64.0.0/24"}, 3, 246},
		"nearly full": {&domain.Network{Subnet: "10.64.0.0/28"}, 5, 2},
		"just full":   {&domain.Network{Subnet: "10.64.0.0/28"}, 6, -1},
		"full":        {&domain.Network{Subnet: "10.64.0.0/29"}, 7, -10},
	} {
		if got := room(domain.Cluster{Network: test.network}, make([]swarm.Node, test.nodes)); got != test.want {
			t.Errorf("%s: room for %d members, not %d", name, got, test.want)
		}
	}
}

func TestSurveyHost(t *testing.T) {
	live := node("a", reachable, availability(swarm.NodeAvailabilityPause),
		withLabels(map[string]string{"gpu": "other", "theirs": "1"}))
	for name, test := range map[string]struct{ host, want domain.Host }{
		"nothing declared": {domain.Host{}, domain.Host{ID: "id-a"}},
		"all drifted": {
			domain.Host{
				ID: "id-a", Role: domain.HostWorker, Availability: domain.HostActive,
				Labels: map[string]string{"gpu": "x", "gone": "1"}, Address: "ssh://a", Joined: true,
			},
			domain.Host{
				ID: "id-a", Role: domain.HostManager, Availability: domain.HostPaused,
				Labels: map[string]string{"gpu": "other"}, Address: "ssh://a", Joined: true,
			},
		},
	} {
		if diff := cmp.Diff(test.want, surveyHost(test.host, live)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
