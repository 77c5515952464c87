package daemons

import (
	"fmt"
	"os"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// Program is what the controllers of clusters are run from.
type Program struct {
	// File is the program's file; empty for that of this process. If there is an agent program next to it, that one is
	// used, see [telemetry.AgentProgram].
	File string
	// Version distinguishes programs: a controller of another version is replaced at the next change of the cluster.
	Version string
}

// NoResidents says why this program can't start a cluster's controller and agents, and what to do; "" if it can.
func (e Daemons) NoResidents() string {
	return noResidents(runtime.GOOS, e.Connection.Settings.Docker.ControllerImage)
}

// noResidents is [Daemons.NoResidents] for a program of this operating system, with the configured image.
func noResidents(goos, given string) string {
	if goos == "linux" || given != "" {
		return ""
	}
	return fmt.Sprintf("a cluster's controller and agents run from a Linux image of Trainyard, which can't be built "+
		"from this program for %s: "+
		"push an image with the trainyard-agent of a Linux release to a registry, and set the provider's "+
		"docker.controller_image to it",
		engine.System(goos))
}

// Image returns the image of a program.
func (p Program) Image() (v1.Image, error) {
	file := p.File
	if file == "" {
		var err error
		if file, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	file = telemetry.AgentProgram(file)
	libraries, err := image.Libraries(file)
	if err != nil {
		return nil, fmt.Errorf("%w; set the provider's docker.controller_image to a Trainyard image", err)
	}
	program, err := image.FromDisk(ProgramPath, file)
	if err != nil {
		return nil, err
	}
	program.Mode = 0o755
	return image.Build(v1.Config{Entrypoint: []string{ProgramPath}, Env: []string{libraryPath}},
		append(libraries, program)...)
}

// libraryPath lists where NVIDIA's container runtime may put its libraries, depending on the distribution that it
// detects in an image.
const libraryPath = "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64"
