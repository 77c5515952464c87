package providertest

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// LabOf returns the cluster "lab" of these hosts, as first stored.
func LabOf(hosts ...string) domain.ClusterDocument {
	lab := domain.ClusterDocument{
		Header: domain.Header{Revision: 1},
		Spec:   domain.Cluster{Name: "lab", Engine: "process", Hosts: map[string]domain.Host{}},
	}
	for _, name := range hosts {
		lab.Spec.Hosts[name] = Host("127.0.0.1", 4, 8000, nil)
	}
	return lab
}

// Host returns a host with this address, capacity and labels.
func Host(address string, cpus float64, memory int64, labels map[string]string) domain.Host {
	return domain.Host{Address: address, Labels: labels, Capacity: domain.Capacity{CPUs: cpus, MemoryMiB: memory}}
}

// ObservedGroup returns a group of two workers with observed members, all as desired.
func ObservedGroup(t *testing.T, applying bool) reconcile.Group {
	t.Helper()
	replicas, port := 2, 9000
	document := domain.GroupDocument{
		Header: domain.Header{Version: domain.DocumentVersion, Revision: 1}, MinRun: 1, Applying: applying,
		Spec: domain.Group{
			Cluster: "lab", Name: "g", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
			Template: domain.Template{Command: []string{"/bin/true"}},
			Roles:    map[string]domain.Role{"worker": {Replicas: &replicas, Port: &port}},
		},
		Counts: map[string]int{"worker": 2},
		Assignments: map[string]domain.Assignment{
			"g-worker-0": {Host: "local", Port: 9000},
			"g-worker-1": {Host: "local", Port: 9001},
		},
	}
	decision := reconcile.Current(engine.Traits{}, map[string]domain.Host{"local": {Address: "10.0.0.1"}}, document)
	group := reconcile.Group{Decision: decision}
	for i, m := range decision.Members {
		group.Observed = append(group.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	return group
}
