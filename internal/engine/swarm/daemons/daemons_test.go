package daemons

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestMetricsAreOnTheNetworkAlone: metrics can't be read through a network of the resident's container other than the
// cluster's.
func TestMetricsAreOnTheNetworkAlone(t *testing.T) {
	on := network.Summary{ID: "id", IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: "10.99.0.0/20"}}}}
	for want, service := range map[string]swarm.ServiceSpec{
		"--metrics 10.99.0.0/20:9466": controllerService("lab", residentImage{}, on, "/var/run/docker.sock", nil),
		"--metrics 10.99.0.0/20:9465": agentService("lab", residentImage{}, on, swarm.Secret{}),
	} {
		if args := strings.Join(service.TaskTemplate.ContainerSpec.Args, " "); !strings.HasSuffix(args, want) {
			t.Errorf("%s runs with %s, want %s", service.Name, args, want)
		}
		if networks := service.TaskTemplate.Networks; len(networks) != 1 || networks[0].Target != "id" {
			t.Errorf("%s is on %v", service.Name, networks)
		}
	}
}

// TestResidentMemory: a resident has a memory limit, which its garbage collector knows, which reserves nothing, and
// which does not restart a resident that has it already.
func TestResidentMemory(t *testing.T) {
	controller := controllerService("lab", residentImage{}, network.Summary{}, "/var/run/docker.sock", nil)
	agents := agentService("lab", residentImage{}, network.Summary{}, swarm.Secret{})
	for name, test := range map[string]struct {
		spec      swarm.ServiceSpec
		limit     int64
		processes int64
	}{"controller": {controller, controllerMemory, 1}, "agent": {agents, agentMemory, 2}} {
		resources := test.spec.TaskTemplate.Resources
		if resources == nil || resources.Limits == nil || resources.Limits.MemoryBytes != test.limit ||
			resources.Reservations != nil {
			t.Errorf("%s has %+v", name, resources)
		}
		env := test.spec.TaskTemplate.ContainerSpec.Env
		i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") })
		if i < 0 {
			t.Errorf("%s has the variables %q", name, env)
			continue
		}
		if each, err := strconv.ParseInt(strings.TrimPrefix(env[i], "GOMEMLIMIT="), 10, 64); err != nil ||
			each < test.limit/4 || test.processes*each >= test.limit {
			t.Errorf("%s collects garbage at %d of %d bytes in each process: %v", name, each, test.limit, err)
		}
		if again := spec.Overlay(test.spec, test.spec); !spec.Equal(again, test.spec) {
			t.Errorf("%s would start again", name)
		}
		without := test.spec
		without.TaskTemplate.Resources = nil
		if spec.Equal(spec.Overlay(without, test.spec), without) {
			t.Errorf("%s of an earlier version gets no limit", name)
		}
	}
}
