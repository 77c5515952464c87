package topology

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// ray is a Ray cluster: one head, interchangeable workers, and optional submitters that run a program and end. With a
// submitter the group completes with submit 0; without one it is a service.
//
// The head runs ray start --head --port={{ .Port }}, a worker ray start --address={{ address "head" 0 }} ("Launching an
// On-Premise Cluster", docs.ray.io/en/latest/cluster/vms/user-guides/launching-clusters/on-premises.html); both need
// --block to keep running. ray.init() looks for the cluster at RAY_ADDRESS first ("Starting Ray",
// docs.ray.io/en/latest/ray-core/starting-ray.html), except on the head, where it finds the local one.
var ray = framework{
	name: "ray",
	roles: []role{
		{name: "submit"},
		{name: "head", most: 1, serves: true},
		{name: "worker", interchangeable: true, serves: true},
	},
	needs: [][]string{{"head"}},
	when:  domain.WhenChief,
	env: func(l *Layout) func(domain.Member) map[string]string {
		head := l.first("head")
		return func(m domain.Member) map[string]string {
			if m.Role == "head" {
				return nil
			}
			return map[string]string{"RAY_ADDRESS": head}
		}
	},
}
