package telemetry

import (
	"os/exec"
	"path/filepath"
)

// AgentName is what the program is called that is built to speak to NVIDIA's driver, which this one may not be.
const AgentName = "trainyard-agent"

// AgentProgram returns the file from which agents are run on hosts like this one, for a program of this file: its neighbour
// of that name, or the one on PATH, or else the program itself, which knows no GPUs then.
func AgentProgram(program string) string {
	if resolved, err := filepath.EvalSymlinks(program); err == nil {
		if neighbour, err := exec.LookPath(filepath.Join(filepath.Dir(resolved), AgentName)); err == nil {
			return neighbour
		}
	}
	if onPath, err := exec.LookPath(AgentName); err == nil {
		return onPath
	}
	return program
}
