//go:build linux

package nvml

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// idle returns the expected readings of the first devices of V100s.
func idle(devices []fakenvml.Device) []domain.GPU {
	gpus := make([]domain.GPU, len(devices))
	for i, d := range devices {
		gpus[i] = domain.GPU{
			Device: domain.Device{UUID: d.UUID, Model: "Tesla V100-SXM2-32GB", MemoryMiB: 32768, NUMANode: d.NUMANode},
			Index:  i, PCIBusID: d.PCIBusID,
			MemoryUsedMiB: new(int64(0)), MemoryFreeMiB: new(int64(32500)),
			Utilisation: new(0.0), MemoryUtilisation: new(0.0),
			TemperatureC: new(int64(34)), PowerW: new(42.5), PowerLimitW: new(300.0),
			ECCErrors: new(int64(0)), MIG: new(false), Processes: []domain.GPUProcess{},
		}
		for j := i &^ 3; j < i&^3+4 && j < len(devices); j++ {
			if j != i {
				gpus[i].Links = append(gpus[i].Links, devices[j].UUID)
			}
		}
	}
	return gpus
}

func TestRead(t *testing.T) {
	devices := fakenvml.V100s("host", 8)
	r, control := openFake(t, patient(t), devices...)
	want := idle(devices)
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("8 idle devices (-want +got):\n%s", diff)
	}

	d, gpu := &devices[5], &want[5]
	d.UsedMiB, gpu.MemoryUsedMiB, gpu.MemoryFreeMiB = 20000, new(int64(20000)), new(int64(12500))
	d.Utilisation, gpu.Utilisation = 97, new(97.0)
	d.MemoryUtilisation, gpu.MemoryUtilisation = 41, new(41.0)
	d.TemperatureC, gpu.TemperatureC = 71, new(int64(71))
	d.PowerMW, gpu.PowerW = 287_250, new(287.25)
	d.PowerLimitMW, gpu.PowerLimitW = 250_000, new(250.0)
	d.ECCErrors, gpu.ECCErrors = new(3), new(int64(3))
	d.MIG, gpu.MIG = true, new(true)
	d.RowsFailed, gpu.Trouble = true, "rows of its memory could not be remapped: have it replaced"
	d, gpu = &devices[6], &want[6]
	d.ECCErrors, gpu.ECCErrors = nil, nil
	control.Set(devices...)
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("after changes (-want +got):\n%s", diff)
	}

	// Another device at an index replaces the earlier one completely, and there may be fewer.
	control.Set(fakenvml.V100s("another host", 4)...)
	if diff := cmp.Diff(idle(fakenvml.V100s("another host", 4)), read(t, r)); diff != "" {
		t.Errorf("with other devices (-want +got):\n%s", diff)
	}
}

func TestReadLinks(t *testing.T) {
	const first, second = "00000000:C1:00.0", "00000000:C2:00.0"
	devices := fakenvml.V100s("host", 5)
	devices[0].Links = []string{first, first, ""}
	devices[1].Links = []string{"", first, second}
	devices[2].Links = []string{second}
	devices[3].Links = []string{"", ""}
	devices[4].Links = nil
	r, _ := openFake(t, patient(t), devices...)
	for i, want := range [][]string{
		{devices[1].UUID}, {devices[0].UUID, devices[2].UUID}, {devices[1].UUID}, nil, nil,
	} {
		if diff := cmp.Diff(want, read(t, r)[i].Links); diff != "" {
			t.Errorf("links of device %d by switches (-want +got):\n%s", i, diff)
		}
	}
}

func TestReadProcesses(t *testing.T) {
	settings := patient(t)
	settings.Proc = t.TempDir()
	for pid, name := range map[string]string{"101": "python3\n", "103": "odd \xff\n"} {
		if err := os.Mkdir(filepath.Join(settings.Proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(settings.Proc, pid, "comm"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	devices := fakenvml.V100s("host", 2)
	devices[0].Processes = []fakenvml.Process{
		{PID: 103, MiB: 512, Graphics: true}, {PID: 101, MiB: 20000}, {PID: 102, MiB: -1}, {PID: 103, MiB: 700},
	}
	r, control := openFake(t, settings, devices...)
	want := []domain.GPUProcess{
		{PID: 101, MemoryMiB: new(int64(20000)), Command: "python3"},
		{PID: 102},
		{PID: 103, MemoryMiB: new(int64(700)), Command: "odd ?"},
	}
	gpus := read(t, r)
	if diff := cmp.Diff(want, gpus[0].Processes); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if gpus[1].Processes == nil || len(gpus[1].Processes) > 0 {
		t.Errorf("processes of a device that nobody uses: %#v, want an empty list", gpus[1].Processes)
	}

	for name, test := range map[string]struct {
		faults  fakenvml.Faults
		unknown string
		want    []domain.GPUProcess
	}{
		"a device without graphics": {
			faults: fakenvml.Faults{"nvmlDeviceGetGraphicsRunningProcesses": fakenvml.NotSupported},
			want:   []domain.GPUProcess{want[0], want[1], want[2]},
		},
		"a device without process lists": {
			faults: fakenvml.Faults{
				"nvmlDeviceGetComputeRunningProcesses":  fakenvml.NotSupported,
				"nvmlDeviceGetGraphicsRunningProcesses": fakenvml.NotSupported,
			},
		},
		"only a part is known": {
			faults:  fakenvml.Faults{"nvmlDeviceGetComputeRunningProcesses": fakenvml.NoPermission},
			unknown: "nvmlDeviceGetComputeRunningProcesses: no permission",
		},
	} {
		t.Run(name, func(t *testing.T) {
			control.Break(test.faults)
			gpu := read(t, r)[0]
			if diff := cmp.Diff(test.want, gpu.Processes); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
			if gpu.Unknown != test.unknown {
				t.Errorf("unknown: %q, want %q", gpu.Unknown, test.unknown)
			}
		})
	}
}

// optional are the functions that may fail without making a device unusable.
var optional = []string{
	"nvmlDeviceGetName", "nvmlDeviceGetPciInfo", "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetNvLinkState",
	"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEccMode", "nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows",
	"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses",
}

func TestReadWithoutOptionalFunctions(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	bare := domain.GPU{Device: domain.Device{UUID: devices[1].UUID}, Index: 1}
	unsupported, failing := fakenvml.Faults{}, fakenvml.Faults{}
	for _, function := range optional {
		unsupported[function], failing[function] = fakenvml.NotSupported, fakenvml.Unknown
	}
	devices[1].Faults = failing
	r, control := openFake(t, patient(t), devices...)
	gpu := read(t, r)[1]
	for _, function := range optional {
		if function == "nvmlDeviceGetMemoryAffinity" || function == "nvmlDeviceGetGraphicsRunningProcesses" {
			continue // the kernel is asked instead; half of it is useless
		}
		if !strings.Contains(gpu.Unknown, function+": unknown error") {
			t.Errorf("unknown is %q, without %s", gpu.Unknown, function)
		}
	}
	failed := bare
	failed.Unknown = gpu.Unknown
	if diff := cmp.Diff(failed, gpu); diff != "" {
		t.Errorf("a device of which all fails (-want +got):\n%s", diff)
	}

	devices[1].Faults = nil
	control.Set(devices...)
	if diff := cmp.Diff(idle(devices), read(t, r)); diff != "" {
		t.Errorf("when all works again (-want +got):\n%s", diff)
	}

	devices[1].Faults = unsupported
	r, _ = openFake(t, patient(t), devices...)
	if diff := cmp.Diff(bare, read(t, r)[1]); diff != "" {
		t.Errorf("a device that supports nothing (-want +got):\n%s", diff)
	}
}

// TestReadWithOldLibrary reads with a library that lacks the symbols of all optional functions: go-nvml would abort the
// process at the first.
func TestReadWithOldLibrary(t *testing.T) {
	if !alone(t) {
		return
	}
	without := []string{
		"nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetNvLinkState",
		"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetMemoryInfo_v2",
		"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature",
		"nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEccMode",
		"nvmlDeviceGetTotalEccErrors",
		"nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlEventSetCreate",
	}
	devices := fakenvml.V100s("host", 2)
	devices[1].UsedMiB = 1000
	r, _ := openFake(t, patient(t, without...), devices...)
	want := domain.GPU{
		Device: domain.Device{UUID: devices[1].UUID, MemoryMiB: 32768}, Index: 1,
		// The first version counts reserved memory as used.
		MemoryUsedMiB: new(int64(1268)), MemoryFreeMiB: new(int64(31500)),
		// Eleven functions are one cause.
		Unknown: "the driver's library lacks nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetEccMode, nvmlDeviceGetEnforcedPowerLimit, " +
			"nvmlDeviceGetMigMode, nvmlDeviceGetName and 6 more: update the driver",
	}
	if diff := cmp.Diff(want, read(t, r)[1]); diff != "" {
		t.Errorf("a device of an old library (-want +got):\n%s", diff)
	}
	err := r.Watch(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "lacks nvmlEventSetCreate") {
		t.Errorf("watching without events: %v", err)
	}
}

func BenchmarkRead8(b *testing.B) {
	devices := fakenvml.V100s("host", 8)
	for i := range devices {
		devices[i].Processes = []fakenvml.Process{{PID: 100 + i, MiB: 20000}}
	}
	r, _ := openFake(b, patient(b), devices...)
	b.ReportAllocs()
	for b.Loop() {
		if gpus := read(b, r); len(gpus) != 8 {
			b.Fatalf("%d devices", len(gpus))
		}
	}
}
