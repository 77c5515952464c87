package topology

import (
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// pytorch is torch.distributed: one process per member, or as many as torchrun starts if the member runs it. The first
// member (master 0 or, without one, worker 0) has rank 0, and its address is the rendezvous.
//
// A program that calls init_process_group reads MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK and LOCAL_RANK
// (docs.pytorch.org/docs/stable/distributed.html, "Environment variable initialization"). torchrun reads each of its
// options from PET_<option> (torch/distributed/argparse_util.py and run.py), starts a process for each GPU of the
// member, and sets the former variables itself. PYTHONUNBUFFERED, which shows logs as they are written, comes from
// Kubeflow (training-operator 1.9, pkg/controller.v1/pytorch/envvar.go).
var pytorch = framework{
	name:  "pytorch",
	roles: []role{{name: "master", most: 1}, {name: "worker"}},
	needs: [][]string{{"master", "worker"}},
	when:  domain.WhenAll,
	env: func(l *Layout) func(domain.Member) map[string]string {
		host, port := split(l.first("master", "worker"))
		masters := len(l.peers["master"])
		size := strconv.Itoa(masters + len(l.peers["worker"]))
		return func(m domain.Member) map[string]string {
			rank := m.Index
			if m.Role == "worker" {
				rank += masters
			}
			return map[string]string{
				"MASTER_ADDR":        host,
				"MASTER_PORT":        port,
				"WORLD_SIZE":         size,
				"RANK":               strconv.Itoa(rank),
				"LOCAL_RANK":         "0",
				"PET_MASTER_ADDR":    host,
				"PET_MASTER_PORT":    port,
				"PET_NNODES":         size,
				"PET_NPROC_PER_NODE": strconv.Itoa(max(1, gpuCount(l.group.Roles[m.Role]))),
				"PET_NODE_RANK":      strconv.Itoa(rank),
				"PYTHONUNBUFFERED":   "1",
			}
		}
	},
}
