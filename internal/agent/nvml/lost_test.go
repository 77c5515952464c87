//go:build linux

package nvml

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestLostDevice(t *testing.T) {
	devices := fakenvml.V100s("host", 4)
	devices[3].Lost = true
	r, control := openFake(t, patient(t), devices...)
	gpus, err := r.Read(t.Context())
	if len(gpus) != 3 || err == nil || !strings.Contains(err.Error(), "GPU 3: fallen off the bus") {
		t.Errorf("with a device that is lost from the start: %d devices, %v", len(gpus), err)
	}
	devices[3].Lost = false
	control.Set(devices...)
	want := idle(devices)
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("before the loss (-want +got):\n%s", diff)
	}

	// since reads the devices, and returns them without the time when the second one was gone, which has to be set.
	since := func(t *testing.T) []domain.GPU {
		t.Helper()
		gpus := read(t, r)
		if gpus[1].GoneAt.IsZero() {
			t.Error("nobody has noted when it was gone")
		}
		gpus[1].GoneAt = time.Time{}
		return gpus
	}
	// Its peers still have their links to it.
	want[1] = domain.GPU{Device: want[1].Device, Index: 1, PCIBusID: want[1].PCIBusID, Trouble: "fallen off the bus"}
	for name, faults := range map[string]fakenvml.Faults{
		"lost":                        {"nvmlDeviceGetHandleByIndex": fakenvml.IsLost},
		"lost before the driver came": {"nvmlDeviceGetHandleByIndex": fakenvml.Unknown},
		"lost since it was found":     {"nvmlDeviceGetUUID": fakenvml.IsLost},
	} {
		t.Run(name, func(t *testing.T) {
			devices[1].Faults = faults
			control.Set(devices...)
			if diff := cmp.Diff(want, since(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, test := range map[string]struct {
		faults  fakenvml.Faults
		trouble string
	}{
		"lost while it is read": {fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.IsLost}, "fallen off the bus"},
		"to be reset": {
			fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.ResetRequired},
			"it needs a reset (nvidia-smi --gpu-reset)",
		},
		"not ours": {
			fakenvml.Faults{"nvmlDeviceGetHandleByIndex": fakenvml.NoPermission},
			"the driver refuses it: no permission",
		},
	} {
		t.Run(name, func(t *testing.T) {
			devices[1].Faults = test.faults
			control.Set(devices...)
			if gpu := read(t, r)[1]; gpu.Trouble != test.trouble || gpu.UUID != devices[1].UUID || gpu.Unknown != "" {
				t.Errorf("%s: trouble %q, unknown %q", gpu.UUID, gpu.Trouble, gpu.Unknown)
			}
		})
	}

	devices[1].Faults = nil
	control.Set(devices...)
	if diff := cmp.Diff(idle(devices), since(t)); diff != "" {
		t.Errorf("after its return (-want +got):\n%s", diff)
	}
}
