package swarm

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
)

// Whoever reaches a container of a resident by another network than the cluster's finds nobody who tells of metrics.
func TestMetricsAreOnTheNetworkAlone(t *testing.T) {
	on := network.Summary{ID: "id", IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.99.0.0/20"}}}}
	for want, service := range map[string]swarm.ServiceSpec{
		"--metrics 10.99.0.0/20:9466": controllerService("lab", residentImage{}, on, "/var/run/docker.sock", nil),
		"--metrics 10.99.0.0/20:9465": agentService("lab", residentImage{}, on, nil),
	} {
		if args := strings.Join(service.TaskTemplate.ContainerSpec.Args, " "); !strings.HasSuffix(args, want) {
			t.Errorf("%s runs with %s, want %s", service.Name, args, want)
		}
		if networks := service.TaskTemplate.Networks; len(networks) != 1 || networks[0].Target != "id" {
			t.Errorf("%s is on %v", service.Name, networks)
		}
	}
}

func TestKeptOff(t *testing.T) {
	for name, test := range map[string]struct {
		placement *swarm.Placement
		nodes     []string
		want      []string
	}{
		"no node":                           {},
		"the first":                         {nodes: []string{"b"}, want: []string{"node.id!=b"}},
		"one that was rejecting before":     {placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"b"}, want: []string{"node.id!=b"}},
		"one before another, by its ID":     {placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"a"}, want: []string{"node.id!=a", "node.id!=b"}},
		"beside a constraint of somebody's": {placement: &swarm.Placement{Constraints: []string{"node.role==worker"}}, nodes: []string{"a"}, want: []string{"node.id!=a", "node.role==worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, keptOff(test.placement, test.nodes).Constraints); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
