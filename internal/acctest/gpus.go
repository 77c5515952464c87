package acctest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// slot are files below /sys on a machine with an NVIDIA device in a PCI slot. With them, a driver that fails makes the
// GPUs unknown rather than absent.
var slot = map[string]string{
	"bus/pci/devices/0000:10:00.0/vendor": "0x10de\n",
	"bus/pci/devices/0000:10:00.0/class":  "0x030200\n",
}

// ProviderBesideAgent returns the path of a provider with the agent in the same folder, as in a release.
func ProviderBesideAgent(t testing.TB) string {
	t.Helper()
	provider := providerInFolder(t)
	if err := os.Link(BuildAgent(t), filepath.Join(filepath.Dir(provider), telemetry.AgentName)); err != nil {
		t.Fatal(err)
	}
	return provider
}

// ProviderWithGPUs returns the path of a provider with an agent that finds a control's GPUs, through an NVML library
// without some functions. So each test has its own GPUs.
func ProviderWithGPUs(t testing.TB, control *fakenvml.Control, without ...string) string {
	t.Helper()
	provider, sys := providerInFolder(t), t.TempDir()
	for file, content := range slot {
		file = filepath.Join(sys, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
			os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{
		"LD_LIBRARY_PATH=" + fakenvml.Build(t, without...), fakenvml.Variable + "=" + control.Path(),
		telemetry.SysVariable + "=" + sys,
	}
	script := fmt.Sprintf("#!/bin/sh\nexec env '%s' '%s' \"$@\"\n", strings.Join(env, "' '"), BuildAgent(t))
	written := filepath.Join(sys, telemetry.AgentName)
	if err := errors.Join(os.WriteFile(written, []byte(script), 0o700), //nolint:gosec // it is a program
		CopyProgram(written, filepath.Join(filepath.Dir(provider), telemetry.AgentName))); err != nil {
		t.Fatal(err)
	}
	return provider
}

// providerInFolder returns the path of a provider in a folder of its own.
func providerInFolder(t testing.TB) string {
	t.Helper()
	provider := filepath.Join(t.TempDir(), filepath.Base(Provider))
	if err := os.Link(Build(t, Provider), provider); err != nil { // a symbolic link would be resolved
		t.Fatal(err)
	}
	return provider
}

// AgentImage is the image of an agent that finds the GPUs of a [NodeDriver]. They are listed in controlFile in the
// volume controlFolder, the only writable place in an agent's container.
const (
	AgentImage    = "trainyard/agent:fake"
	controlFolder = "/control"
	controlFile   = "gpus"
)

// LoadAgent loads [AgentImage] as [LoadMember] does, with an NVML library without some functions.
func LoadAgent(t testing.TB, bed loader, without ...string) {
	t.Helper()
	const library, sys = "/nvidia", "/slot"
	entrypoint, agent := "/"+path.Base(Provider), BuildAgent(t)
	files, err := image.Libraries(agent)
	if err != nil {
		t.Fatal(err)
	}
	for in, on := range map[string]string{
		entrypoint:                           agent,
		path.Join(library, fakenvml.Library): filepath.Join(fakenvml.Build(t, without...), fakenvml.Library),
	} {
		file, err := image.FromDisk(in, on)
		if err != nil {
			t.Fatal(err)
		}
		file.Mode = 0o755
		files = append(files, file)
	}
	for file, content := range slot {
		files = append(files, image.FromBytes(path.Join(sys, file), 0o644, []byte(content)))
	}
	loadImage(t, bed, AgentImage, v1.Config{
		Entrypoint: []string{entrypoint},
		Env: []string{
			"LD_LIBRARY_PATH=" + library, telemetry.SysVariable + "=" + sys,
			fakenvml.Variable + "=" + path.Join(controlFolder, controlFile),
		},
		Volumes: map[string]struct{}{controlFolder: {}},
	}, files...)
}

// NodeDriver is the GPU driver of a node, as seen by a cluster's agent that runs from [AgentImage]. If another agent
// replaces that one, it finds no GPUs.
type NodeDriver struct {
	t       testing.TB
	docker  *client.Client
	cluster string
	control *fakenvml.Control
}

// NewNodeDriver returns the driver of the node with this Docker Engine.
func NewNodeDriver(t testing.TB, docker *client.Client, cluster string) *NodeDriver {
	t.Helper()
	return &NodeDriver{t, docker, cluster, fakenvml.New(t)}
}

// Set does what [fakenvml.Control.Set] does.
func (d *NodeDriver) Set(devices ...fakenvml.Device) {
	d.t.Helper()
	d.control.Set(devices...)
	d.copy()
}

// Break does what [fakenvml.Control.Break] does.
func (d *NodeDriver) Break(faults fakenvml.Faults) {
	d.t.Helper()
	d.control.Break(faults)
	d.copy()
}

// copy copies the control's file into the agent's container as soon as the agent runs.
func (d *NodeDriver) copy() {
	d.t.Helper()
	content, err := os.ReadFile(d.control.Path())
	d.must(err)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	// PAX keeps exact modification times, by which the library notices that the file has changed.
	d.must(w.WriteHeader(&tar.Header{
		Name: controlFile, Mode: 0o644, Size: int64(len(content)), ModTime: time.Now(), Format: tar.FormatPAX,
	}))
	_, err = w.Write(content)
	d.must(errors.Join(err, w.Close()))

	agents := filters.NewArgs(filters.Arg("label", "trainyard.cluster="+d.cluster),
		filters.Arg("label", "trainyard.kind=agent"), filters.Arg("ancestor", AgentImage))
	Eventually(d.t, "the agent of cluster "+d.cluster, func() bool {
		found, err := d.docker.ContainerList(d.t.Context(), container.ListOptions{Filters: agents})
		d.must(err)
		if len(found) == 1 {
			into := container.CopyToContainerOptions{}
			d.must(d.docker.CopyToContainer(d.t.Context(), found[0].ID, controlFolder, bytes.NewReader(archive.Bytes()),
				into))
		}
		return len(found) == 1
	})
}

func (d *NodeDriver) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}
