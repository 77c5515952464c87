package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
)

// AgentName is what the program is called that is built to speak to NVIDIA's driver, which this one may not be.
const AgentName = "trainyard-agent"

// The environment variables of agents.
const (
	// ProcVariable names the folder where the host's process table is, for an agent in a container, which has its own
	// at /proc.
	ProcVariable = "HOST_PROC"
	// SysVariable names that of its devices.
	SysVariable = "HOST_SYS"
	// NodeVariable and HostVariable name the node that an agent runs on, as its engine knows it, and as people do.
	NodeVariable = "TRAINYARD_NODE"
	HostVariable = "TRAINYARD_HOST"
)

// AgentProgram returns the file from which agents are run on hosts like this one, for a program of this file: its
// neighbour of that name, or, without one that can be run here, the program itself, which knows no GPUs then. One from
// PATH may be of any version, or anybody's.
func AgentProgram(program string) string {
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		if neighbour, err := exec.LookPath(filepath.Dir(resolved) + "/" + AgentName); err == nil && hasLoader(neighbour) {
			return neighbour
		}
	}
	return program
}

// hasLoader reports whether this machine has the dynamic loader that a program asks for: it has not where its C library
// is another one, such as musl. Of what is no program of Linux its start will tell.
func hasLoader(program string) bool {
	need, err := libc.Of(program)
	if err != nil || need.Loader == "" {
		return true
	}
	_, err = os.Stat(need.Loader)
	return err == nil
}
