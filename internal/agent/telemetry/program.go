package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
)

// AgentName is the name of the program that is built with support for NVIDIA's driver, which this one may lack.
const AgentName = "trainyard-agent"

// The environment variables of agents.
const (
	// ProcVariable names the folder of the host's process table, for an agent in a container, which has its own at
	// /proc.
	ProcVariable = "HOST_PROC"
	// SysVariable names the folder of the host's devices.
	SysVariable = "HOST_SYS"
	// NodeVariable and HostVariable name the node that an agent runs on, as its engine knows it, and as users do.
	NodeVariable = "TRAINYARD_NODE"
	HostVariable = "TRAINYARD_HOST"
)

// AgentProgram returns the file from which agents are run on hosts like this one, for a program with this file: the
// agent next to it or, if none can be run here, the program itself, without GPU support. PATH is not searched, as a
// program there may be of any version, or anybody's.
func AgentProgram(program string) string {
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		if neighbour, err := exec.LookPath(filepath.Dir(resolved) + "/" + AgentName); err == nil &&
			hasLoader(neighbour) {
			return neighbour
		}
	}
	return program
}

// hasLoader reports whether this machine has the dynamic loader that a program needs, which it lacks if its C library
// is another one, such as musl. If the file is not a Linux program, starting it will fail with the error.
func hasLoader(program string) bool {
	need, err := libc.Of(program)
	if err != nil || need.Loader == "" {
		return true
	}
	_, err = os.Stat(need.Loader)
	return err == nil
}
