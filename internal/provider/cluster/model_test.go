package cluster

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

func TestExpandCluster(t *testing.T) {
	m := Model{Name: types.StringValue("lab"), Hosts: map[string]HostModel{
		"bare": {},
		"half": {Labels: map[string]string{}, Capacity: &CapacityModel{CPUs: providertest.Inexact(1.5)}},
		"filled": {
			Address: new("10.0.0.1"), Labels: map[string]string{"a": "b"},
			Capacity: &CapacityModel{CPUs: providertest.Inexact(2.0), MemoryMiB: new(int64(512))},
		},
	}}
	want := domain.Cluster{Name: "lab", Engine: "process", Hosts: map[string]domain.Host{
		"bare":   {},
		"half":   providertest.Host("", 1.5, 0, nil),
		"filled": providertest.Host("10.0.0.1", 2, 512, map[string]string{"a": "b"}),
	}}
	var diags diag.Diagnostics
	if got := m.expand(&diags); !reflect.DeepEqual(got, want) || diags.HasError() {
		t.Errorf("got %+v, %v, want %+v", got, diags, want)
	}
	if got := (Model{Name: types.StringValue("lab"), Engine: types.StringValue("swarm")}).expand(
		&diags,
	); got.Engine != "swarm" || got.Hosts != nil {
		t.Errorf("got %+v, want no hosts on swarm", got)
	}
}

func TestHostsGoThereAndBack(t *testing.T) {
	managed := providertest.Host("ssh://gpu1", 8, 1024, nil)
	managed.Role, managed.Availability, managed.AdvertiseAddress = domain.HostManager, domain.HostPaused, "eth1"
	hosts := map[string]domain.Host{
		"a": providertest.Host("10.0.0.1", 2, 512, map[string]string{"x": "y"}),
		"b": providertest.Host("10.0.0.2", 0.5, 64, nil), "c": managed, "d": providertest.Host("", 1, 64, nil),
	}
	flattenHosts := func(prior map[string]HostModel) map[string]HostModel {
		return resourcekit.Flatten(domain.Cluster{Hosts: hosts}, Model{Hosts: prior}).Hosts
	}
	var diags diag.Diagnostics
	if got := (Model{Hosts: flattenHosts(nil)}).expand(&diags).Hosts; !reflect.DeepEqual(got, hosts) ||
		diags.HasError() {
		t.Errorf("got %+v, %v, want %+v", got, diags, hosts)
	}
	spelled := map[string]HostModel{"a": {}, "b": {Labels: map[string]string{}}}
	models := flattenHosts(spelled)
	if models["b"].Labels == nil {
		t.Error("empty labels turned to null")
	}
	plain := flattenHosts(nil)
	if plain["b"].Labels != nil {
		t.Error("null labels turned empty")
	}
	if d := plain["d"]; d.Address != nil || d.Role != nil || d.Availability != nil || d.AdvertiseAddress != nil {
		t.Errorf("what is not known is %+v, not null", d)
	}
}

// TestAgentGoesThereAndBack: agent settings keep their spelling if they mean what is stored, and
// changes from outside are shown.
func TestAgentGoesThereAndBack(t *testing.T) {
	for name, test := range map[string]struct {
		written *agentModel
		stored  domain.Agent
		want    *agentModel
	}{
		"nothing":       {nil, domain.Agent{}, nil},
		"nothing in it": {&agentModel{}, domain.Agent{}, &agentModel{}},
		"the default":   {&agentModel{Enabled: new(true)}, domain.Agent{}, &agentModel{Enabled: new(true)}},
		"a port": {
			&agentModel{MetricsPort: new(int64(9465))}, domain.Agent{MetricsPort: 9465},
			&agentModel{MetricsPort: new(int64(9465))},
		},
		"an imported port":  {nil, domain.Agent{MetricsPort: 9465}, &agentModel{MetricsPort: new(int64(9465))}},
		"imported, without": {nil, domain.Agent{Disabled: true}, &agentModel{Enabled: new(false)}},
		"another port": {
			&agentModel{Enabled: new(true), MetricsPort: new(int64(9465))}, domain.Agent{MetricsPort: 9000},
			&agentModel{Enabled: new(true), MetricsPort: new(int64(9000))},
		},
		"no port any more": {&agentModel{MetricsPort: new(int64(9465))}, domain.Agent{}, &agentModel{}},
		"an image, a port": {
			nil, domain.Agent{Image: "a:1", MetricsPort: 9465},
			&agentModel{Image: new("a:1"), MetricsPort: new(int64(9465))},
		},
	} {
		got := resourcekit.Flatten(domain.Cluster{Agent: test.stored}, Model{Agent: test.written}).Agent
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
		var diags diag.Diagnostics
		if back := (Model{Agent: got}).expand(&diags).Agent; back != test.stored || diags.HasError() {
			t.Errorf("%s: it means %+v, %v", name, back, diags)
		}
	}
}

func TestNetworkOverStored(t *testing.T) {
	stored := &domain.Network{Subnet: "10.1.0.0/20", Encrypted: true}
	for name, test := range map[string]struct {
		config *NetworkModel
		stored *domain.Network
		want   *domain.Network
	}{
		"neither":        {nil, nil, nil},
		"stored alone":   {nil, stored, stored},
		"nothing in it":  {&NetworkModel{}, stored, stored},
		"nothing stored": {&NetworkModel{Attachable: new(true)}, nil, &domain.Network{Attachable: true}},
		"a subnet": {
			&NetworkModel{Subnet: types.StringValue("10.2.0.0/20")}, stored,
			&domain.Network{Subnet: "10.2.0.0/20", Encrypted: true},
		},
		"false counts": {&NetworkModel{Encrypted: new(false)}, stored, &domain.Network{Subnet: "10.1.0.0/20"}},
		"an open subnet to be": {
			&NetworkModel{Subnet: types.StringUnknown(), Encrypted: new(true)}, nil, &domain.Network{Encrypted: true},
		},
	} {
		if got := test.config.over(test.stored); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
	if *stored != (domain.Network{Subnet: "10.1.0.0/20", Encrypted: true}) {
		t.Errorf("what is stored was changed: %+v", stored)
	}
}

func TestKeepMemory(t *testing.T) {
	for name, test := range map[string]struct {
		machine, stored, want int64
		config                HostModel
	}{
		"a new kernel": {16000, 16010, 16010, HostModel{}},
		"other part is set": {
			16000, 16010, 16010, HostModel{Capacity: &CapacityModel{CPUs: providertest.Inexact(1.0)}},
		},
		"more memory": {32000, 16010, 32000, HostModel{}},
		"less memory": {8000, 16010, 8000, HostModel{}},
		"memory is configured": {
			16000, 16010, 16000, HostModel{Capacity: &CapacityModel{MemoryMiB: new(int64(16000))}},
		},
	} {
		completed := map[string]domain.Host{
			"local": providertest.Host("", 1, test.machine, nil), "new": providertest.Host("", 1, 7, nil),
		}
		keepMemory(completed, map[string]domain.Host{"local": providertest.Host("", 1, test.stored, nil)},
			map[string]HostModel{"local": test.config})
		if got := completed["local"].Capacity.MemoryMiB; got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
		if got := completed["new"].Capacity.MemoryMiB; got != 7 {
			t.Errorf("%s: the new host has %d MiB", name, got)
		}
	}
}

func TestSameCluster(t *testing.T) {
	cluster := func(hosts map[string]domain.Host) domain.Cluster {
		return domain.Cluster{Name: "lab", Engine: "process", Hosts: hosts}
	}
	base := cluster(map[string]domain.Host{"a": providertest.Host("x", 1, 16000, nil)})
	for name, test := range map[string]struct {
		other domain.Cluster
		want  bool
	}{
		"itself":       {base, true},
		"a new kernel": {cluster(map[string]domain.Host{"a": providertest.Host("x", 1, 16010, nil)}), true},
		"empty labels": {
			cluster(map[string]domain.Host{"a": providertest.Host("x", 1, 16000, map[string]string{})}), true,
		},
		"labels": {
			cluster(map[string]domain.Host{"a": providertest.Host("x", 1, 16000, map[string]string{"a": "b"})}), false,
		},
		"memory":              {cluster(map[string]domain.Host{"a": providertest.Host("x", 1, 8000, nil)}), false},
		"CPUs":                {cluster(map[string]domain.Host{"a": providertest.Host("x", 2, 16000, nil)}), false},
		"an address":          {cluster(map[string]domain.Host{"a": providertest.Host("y", 1, 16000, nil)}), false},
		"another host's name": {cluster(map[string]domain.Host{"b": providertest.Host("x", 1, 16000, nil)}), false},
		"one host more": {cluster(map[string]domain.Host{
			"a": providertest.Host("x", 1, 16000, nil), "b": providertest.Host("x", 1, 16000, nil),
		}), false},
		"another engine":   {domain.Cluster{Name: "lab", Engine: "swarm", Hosts: base.Hosts}, false},
		"another endpoint": {domain.Cluster{Name: "lab", Engine: "process", Endpoint: "x", Hosts: base.Hosts}, true},
		"known by an ID": {
			cluster(map[string]domain.Host{
				"a": {Address: "x", Capacity: base.Hosts["a"].Capacity, ID: "i", Joined: true},
			}),
			true,
		},
		"a role": {cluster(map[string]domain.Host{
			"a": {Address: "x", Capacity: base.Hosts["a"].Capacity, Role: domain.HostWorker},
		}), false},
	} {
		if got := sameCluster(base, test.other); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

func TestSameNetwork(t *testing.T) {
	stored := &domain.Network{Subnet: "10.1.0.0/20", Encrypted: true}
	for name, test := range map[string]struct {
		stored, spec *domain.Network
		want         bool
	}{
		"none":             {nil, nil, true},
		"left open":        {stored, nil, true},
		"itself":           {stored, stored, true},
		"any subnet":       {stored, &domain.Network{Encrypted: true}, true},
		"another subnet":   {stored, &domain.Network{Subnet: "10.2.0.0/20", Encrypted: true}, false},
		"not encrypted":    {stored, &domain.Network{Subnet: "10.1.0.0/20"}, false},
		"one to be made":   {nil, stored, false},
		"one left to make": {nil, &domain.Network{}, false},
	} {
		if got := sameNetwork(test.stored, test.spec); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
