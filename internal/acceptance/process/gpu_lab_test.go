//go:build linux

package process_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// gpuLab is a lab on a machine with GPUs: an agent built as in a release finds those of a fake of NVIDIA's library.
type gpuLab struct {
	*lab
	nvml    *fakenvml.Control
	devices []fakenvml.Device
}

func newGPULab(t *testing.T, devices ...fakenvml.Device) *gpuLab {
	t.Helper()
	l := &gpuLab{newLab(t), fakenvml.New(t), devices}
	l.nvml.Set(devices...)
	l.provider = acctest.ProviderWithGPUs(t, l.nvml)
	return l
}

// thePool is the pool "p" of the cluster.
const thePool = "trainyard_gpu_pool.p"

// named returns the attribute for devices, given their numbers.
func (l *gpuLab) named(numbers ...int) string {
	return fmt.Sprintf("devices = { local = %s }", acceptance.List(l.uuids(numbers...)...))
}

// uuids returns the UUIDs of devices, given their numbers.
func (l *gpuLab) uuids(numbers ...int) []string {
	uuids := make([]string, len(numbers))
	for i, n := range numbers {
		uuids[i] = l.devices[n].UUID
	}
	return uuids
}

// place returns how a plan shows the place of a member with devices, given their numbers.
func (l *gpuLab) place(numbers ...int) string {
	return "local " + strings.Join(l.uuids(numbers...), ",")
}

// change changes a device, until it is changed again.
func (l *gpuLab) change(n int, change func(*fakenvml.Device)) {
	l.Helper()
	change(&l.devices[n])
	l.nvml.Set(l.devices...)
}

// usedBy makes exactly these processes use a device.
func usedBy(processes ...fakenvml.Process) func(*fakenvml.Device) {
	return func(d *fakenvml.Device) { d.Processes = processes }
}
