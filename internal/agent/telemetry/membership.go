package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// Membership is what an instance is of, as its environment says. All is empty where it is of nothing of ours, or where that can't be read, and
// Member for those that share their specification.
type Membership struct {
	Cluster string `json:"cluster,omitempty"`
	Group   string `json:"group,omitempty"`
	Role    string `json:"role,omitempty"`
	Member  string `json:"member,omitempty"`
}

// memberships returns what instances are of, in the process table below a folder. Those that were found before are not looked at again.
func memberships(proc string, instances map[string][]proctree.Process, before map[string]Membership) map[string]Membership {
	found := make(map[string]Membership, len(instances))
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return found
	}
	for id, processes := range instances {
		of := before[id]
		// What is of nothing may be of something after its exec.
		if of == (Membership{}) && len(processes) > 0 {
			of = membershipOf(fs, slices.MinFunc(processes, proctree.OldestFirst))
		}
		found[id] = of
	}
	return found
}

// membershipOf returns what a process is of.
func membershipOf(fs procfs.FS, p proctree.Process) Membership {
	var of Membership
	proc, err := fs.Proc(p.PID)
	if err != nil {
		return of
	}
	environ, err := proc.Environ() // of another user's process only root may
	if err != nil {
		return of
	}
	fields := map[string]*string{"TRAINYARD_CLUSTER": &of.Cluster, "TRAINYARD_GROUP": &of.Group, "TRAINYARD_ROLE": &of.Role, "TRAINYARD_MEMBER": &of.Member}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if field := fields[name]; field != nil {
			*field = value
		}
	}
	return of
}
