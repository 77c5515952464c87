package topology

import (
	"fmt"
	"path"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The hostfiles of mpi: one line per host, with as many slots as it has workers. Open MPI writes "host slots=2", Hydra
// "host:2"; neither reads the other's format.
const (
	openMPIHostfile = "hostfile"
	hydraHostfile   = "hostfile.hydra"
)

// mpi is an mpirun in the launcher that starts its ranks in the workers. Open MPI, MPICH and Intel MPI find the
// workers' hosts through the environment.
//
// Sources: Kubeflow's mpi-operator 0.6 (pkg/controller/mpi_job_controller.go), for the variables of Open MPI 4, Intel
// MPI and MPICH, and the formats of their files; docs.open-mpi.org/en/v5.0.x/mca.html for Open MPI 5, whose runtime
// reads its parameters from PRTE_MCA_<name>. Open MPI rejects a host that is listed twice with slots
// (orte/util/hostfile), so each host has one line.
var mpi = framework{
	name:  "mpi",
	roles: []role{{name: "launcher", most: 1}, {name: "worker", serves: true}},
	needs: [][]string{{"launcher"}, {"worker"}},
	when:  domain.WhenChief,
	env: func(l *Layout) func(domain.Member) map[string]string {
		// Workers may begin to listen after the launcher has started.
		const patience = "-o ConnectionAttempts=10"
		return func(m domain.Member) map[string]string {
			dir := l.filesDir(m.Name, l.group.EffectiveTemplate(m.Role).Image)
			open, hydra := path.Join(dir, openMPIHostfile), path.Join(dir, hydraHostfile)
			return map[string]string{
				"OMPI_MCA_orte_default_hostfile":        open,
				"OMPI_MCA_orte_keep_fqdn_hostnames":     "true",
				"OMPI_MCA_plm_rsh_args":                 patience,
				"PRTE_MCA_prte_default_hostfile":        open,
				"PRTE_MCA_prte_keep_fqdn_hostnames":     "true",
				"PRTE_MCA_plm_ssh_args":                 patience,
				"HYDRA_HOST_FILE":                       hydra,
				"HYDRA_LAUNCH_EXTRA_ARGS":               patience,
				"I_MPI_HYDRA_HOST_FILE":                 hydra,
				"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": patience,
			}
		}
	},
	files: func(l *Layout) []domain.File {
		var hosts []string
		slots := map[string]int{}
		for _, address := range l.peers["worker"] {
			host, _ := split(address)
			if slots[host] == 0 {
				hosts = append(hosts, host)
			}
			slots[host]++
		}
		var open, hydra strings.Builder
		for _, host := range hosts {
			fmt.Fprintf(&open, "%s slots=%d\n", host, slots[host])
			fmt.Fprintf(&hydra, "%s:%d\n", host, slots[host])
		}
		return []domain.File{
			{Name: openMPIHostfile, Content: open.String()},
			{Name: hydraHostfile, Content: hydra.String()},
		}
	},
}
