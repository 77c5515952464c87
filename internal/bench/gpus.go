//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// hostGPUs is the number of GPUs of a host.
const hostGPUs = 8

// gpuPool returns the configuration of a GPU pool with slots for some 500 members on the GPUs of one host. hosts
// selects that host if there are several.
func gpuPool(hosts string) string {
	return fmt.Sprintf(`
resource "trainyard_gpu_pool" "shared" {
  cluster             = trainyard_cluster.bench
  name                = "shared"
  select              = { model = "Tesla V100*", %s }
  sharing             = "slots"
  memory_mib_per_slot = 512
}
`, hosts)
}

// pooledRoles returns roles in which a third of all members have a slot of the pool.
func pooledRoles(members, port int, attributes string) string {
	workers := (members + 2) / 3
	roles := role("worker", workers, port, "gpus = { pool = trainyard_gpu_pool.shared.name }, "+attributes)
	if members > workers {
		roles += role("ps", members-workers, port+workers, attributes)
	}
	return roles
}

// gpus is an agent, and a library that provides GPUs to it.
type gpus struct {
	agent            string // the path of the agent's binary
	control, library string // the paths of a [fakenvml.Library]'s control file and folder
}

// agentWithGPUs builds an NVML library that provides GPUs to agents, and returns a program that runs the agent with it.
func (b *bench) agentWithGPUs(ctx context.Context) ([]byte, error) {
	g := &b.gpus
	g.control, g.library = filepath.Join(b.work, "gpus"), filepath.Join(b.work, "nvidia")
	if err := os.Mkdir(g.library, 0o755); err != nil {
		return nil, err
	}
	if err := fakenvml.Compile(ctx, g.library); err != nil {
		return nil, err
	}
	if err := os.WriteFile(g.control, []byte(fakenvml.Text(fakenvml.V100s("bench", hostGPUs)...)), 0o644); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "#!/bin/sh\n%s='%s' LD_LIBRARY_PATH='%s' exec '%s' \"$@\"\n", fakenvml.Variable, g.control,
		g.library, g.agent), nil
}

// loadAgent loads an image of the controller and the agent with GPUs, and returns its name.
func (s *swarmBench) loadAgent(ctx context.Context) (string, error) {
	const name, entrypoint, control, library = "bench-agent:1", "/terraform-provider-trainyard", "/gpus", "/nvidia"
	files, err := image.Libraries(s.gpus.agent)
	if err != nil {
		return "", err
	}
	for in, on := range map[string]string{entrypoint: s.gpus.agent, control: s.gpus.control, library + "/" +
		fakenvml.Library: filepath.Join(s.gpus.library, fakenvml.Library)} {
		file, err := image.FromDisk(in, on)
		if err != nil {
			return "", err
		}
		file.Mode = 0o755
		files = append(files, file)
	}
	_, err = s.load(ctx, name, v1.Config{
		Entrypoint: []string{entrypoint},
		Env:        []string{fakenvml.Variable + "=" + control, "LD_LIBRARY_PATH=" + library},
	}, files...)
	return name, err
}
