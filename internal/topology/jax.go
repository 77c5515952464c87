package topology

import (
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// jax is jax.distributed: one process per member, which uses all GPUs of the member. Worker 0 is process 0 and runs the
// coordinator.
//
// jax.distributed.initialize reads JAX_COORDINATOR_ADDRESS from the environment. Outside Slurm, Open MPI, Kubernetes
// and TPUs it reads neither the number of processes nor the process's own (JAX 0.12, jax/_src/distributed.py and
// jax/_src/clusters), so a program passes it JAX_NUM_PROCESSES and JAX_PROCESS_ID, as Kubeflow calls them
// (kubeflow/trainer, pkg/runtime/framework/plugins/jax/jax.go). PYTHONUNBUFFERED is set as for pytorch, and by
// Kubeflow, too (training-operator 1.9, pkg/controller.v1/jax/envvar.go).
var jax = framework{
	name:  "jax",
	roles: []role{{name: "worker", fixed: true}},
	needs: [][]string{{"worker"}},
	when:  domain.WhenAll,
	env: func(l *Layout) func(domain.Member) map[string]string {
		coordinator, processes := l.first("worker"), strconv.Itoa(len(l.peers["worker"]))
		return func(m domain.Member) map[string]string {
			return map[string]string{
				"JAX_COORDINATOR_ADDRESS": coordinator,
				"JAX_NUM_PROCESSES":       processes,
				"JAX_PROCESS_ID":          strconv.Itoa(m.Index),
				"PYTHONUNBUFFERED":        "1",
			}
		}
	},
}
