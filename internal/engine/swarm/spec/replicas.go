package spec

import "github.com/docker/docker/api/types/swarm"

// Replicas returns how many tasks a service should have.
func Replicas(spec swarm.ServiceSpec) int {
	if spec.Mode.Replicated == nil || spec.Mode.Replicated.Replicas == nil {
		return 0
	}
	return int(*spec.Mode.Replicated.Replicas) //nolint:gosec // the Engine's maximum is far lower
}

// SetReplicas sets how many tasks a service should have.
func SetReplicas(spec *swarm.ServiceSpec, n int) {
	count := uint64(max(n, 0)) //nolint:gosec // it is not negative
	spec.Mode = swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &count}}
}
