package domain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterValidate(t *testing.T) {
	good := Host{Address: "127.0.0.1", Capacity: Capacity{CPUs: 0.5, MemoryMiB: 1}}
	with := func(change func(h *Host)) Host {
		h := good
		change(&h)
		return h
	}
	for name, c := range map[string]struct {
		cluster Cluster
		want    []string
	}{
		"good":     {Cluster{Name: "lab", Hosts: map[string]Host{"a": good, "b-1": good}}, nil},
		"bad name": {Cluster{Name: "Lab", Hosts: map[string]Host{"a": good}}, []string{"name"}},
		"no hosts": {Cluster{Name: "lab"}, []string{"hosts"}},
		"bad host": {Cluster{Name: "lab", Hosts: map[string]Host{"a_b": good}}, []string{`hosts["a_b"]`}},
		"no CPUs": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": with(func(h *Host) { h.Capacity.CPUs = 0 })}},
			[]string{`hosts["a"].capacity.cpus`},
		},
		"each fault of each host, in the order of names": {
			Cluster{Hosts: map[string]Host{
				"c": with(func(h *Host) { h.Capacity.MemoryMiB = -1 }),
				"b": with(func(h *Host) { h.Capacity = Capacity{} }),
				"a": good,
			}},
			[]string{
				"name", `hosts["b"].capacity.cpus`, `hosts["b"].capacity.memory_mib`, `hosts["c"].capacity.memory_mib`,
			},
		},
		"host of a swarm": {
			Cluster{
				Name:  "lab",
				Hosts: map[string]Host{"a": with(func(h *Host) { h.Role, h.Availability = HostManager, HostDrained })},
			}, nil,
		},
		"unknown role": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": with(func(h *Host) { h.Role = "leader" })}},
			[]string{`hosts["a"].role`},
		},
		"unknown availability": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": with(func(h *Host) { h.Availability = "drained" })}},
			[]string{`hosts["a"].availability`},
		},
		"subnet": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": good}, Network: &Network{Subnet: "10.20.0.0/20"}}, nil,
		},
		"subnet left out": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": good}, Network: &Network{Encrypted: true}}, nil,
		},
		"no subnet": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": good}, Network: &Network{Subnet: "10.20.0.0"}},
			[]string{"network.subnet"},
		},
		"address in a subnet": {
			Cluster{Name: "lab", Hosts: map[string]Host{"a": good}, Network: &Network{Subnet: "10.20.0.1/20"}},
			[]string{"network.subnet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range c.cluster.Validate() {
				got = append(got, p.Path.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("paths of the problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHostNames(t *testing.T) {
	c := Cluster{Hosts: map[string]Host{"b": {}, "a": {}, "c": {}}}
	if diff := cmp.Diff([]string{"a", "b", "c"}, c.HostNames()); diff != "" {
		t.Errorf("host names (-want +got):\n%s", diff)
	}
}
