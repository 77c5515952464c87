//go:build linux

package nvml

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestHang(t *testing.T) {
	const text = "NVML did not answer within 200ms"
	devices := fakenvml.V100s("host", 4)
	r, control := openFake(t, hasty(t), devices...)
	isIdle := func() bool {
		gpus, err := r.Read(t.Context())
		return err == nil && cmp.Equal(idle(devices), gpus)
	}
	eventually(t, "all devices", isIdle)

	for _, function := range []string{"nvmlDeviceGetPowerUsage", "nvmlDeviceGetHandleByIndex"} {
		t.Run(function, func(t *testing.T) {
			devices[2].Faults = fakenvml.Faults{function: fakenvml.Hang}
			control.Set(devices...)
			defer eventually(t, "the device to come back", isIdle)
			defer control.Set(fakenvml.V100s("host", 4)...)
			want := idle(devices)
			eventually(t, "the call to hang", func() bool {
				_, _ = r.Read(t.Context())
				current := r.slots[2].callQueue.current.Load()
				return current != nil && current.function == function
			})
			var gpus []domain.GPU
			eventually(t, "the other devices to be read", func() bool {
				gpus, _ = r.Read(t.Context())
				return len(gpus) == 4 &&
					cmp.Equal([]domain.GPU{want[0], want[1], want[3]}, []domain.GPU{gpus[0], gpus[1], gpus[3]})
			})
			hung := gpus[2]
			if hung.Trouble != "the driver does not answer" || hung.Unknown != text+" ("+function+")" {
				t.Errorf("trouble %q, unknown %q", hung.Trouble, hung.Unknown)
			}
			if diff := cmp.Diff(want[2].Device, hung.Device); diff != "" {
				t.Errorf("the device that hangs (-want +got):\n%s", diff)
			}

			// One call waits, and no other follows it, whichever read makes it.
			stuck := r.slots[2].callQueue.current.Load()
			for range 20 {
				if gpus, err := r.Read(t.Context()); err == nil && gpus[2].Trouble != "the driver does not answer" {
					t.Fatalf("the device that hangs reads as %+v", gpus[2])
				}
			}
			if r.slots[2].callQueue.current.Load() != stuck {
				t.Error("the device was asked again before it answered")
			}
			refusesToClose(t, r, function)
		})
		devices[2].Faults = nil
	}
}

func TestHangOfLibrary(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	r, control := openFake(t, hasty(t), devices...)
	for _, function := range []string{"nvmlDeviceGetCount", "nvmlInit"} {
		t.Run(function, func(t *testing.T) {
			control.Break(fakenvml.Faults{function: fakenvml.Hang})
			defer eventually(t, "the library to come back", func() bool {
				_, err := r.Read(t.Context())
				return err == nil
			})
			defer control.Break(nil)
			ask := func() error {
				_, err := r.Read(t.Context())
				if function == "nvmlInit" {
					settings := hasty(t)
					settings.Start = settings.Answer
					_, err = Open(t.Context(), settings)
				}
				return err
			}
			eventually(t, "a call to hang", func() bool {
				err := ask()
				return err != nil && strings.Contains(err.Error(), "NVML did not answer within 200ms ("+function+")")
			})
			stuck := libraryQueue.current.Load()
			for range 20 {
				if err := ask(); err == nil {
					t.Fatal("it answered")
				}
			}
			if libraryQueue.current.Load() != stuck {
				t.Error("the library was asked again before it answered")
			}
		})
	}
}

func TestHangSinceTheStart(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	devices[1].Faults = fakenvml.Faults{"nvmlDeviceGetUUID": fakenvml.Hang}
	r, control := openFake(t, hasty(t), devices...)
	eventually(t, "the device that answers", func() bool {
		gpus, err := r.Read(t.Context())
		if err != nil && strings.Contains(err.Error(), "some GPUs") && !isLate(err) {
			t.Fatalf("the error does not mark the GPU as late: %v", err)
		}
		return len(gpus) == 1 && err != nil &&
			strings.Contains(err.Error(), "GPU 1: NVML did not answer within 200ms (nvmlDeviceGetUUID)")
	})
	devices[1].Faults = nil
	control.Set(devices...)
	eventually(t, "both devices", func() bool {
		gpus, err := r.Read(t.Context())
		return err == nil && cmp.Equal(idle(devices), gpus)
	})
}

func TestReadEndsWithItsContext(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	r, control := openFake(t, patient(t), devices...)
	read(t, r)
	devices[1].Faults = fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.Hang}
	control.Set(devices...)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	go func() {
		eventually(t, "the call", func() bool {
			current := r.slots[1].callQueue.current.Load()
			return current != nil && current.function == "nvmlDeviceGetPowerUsage"
		})
		cancel(ended)
	}()
	if _, err := r.Read(ctx); !errors.Is(err, ended) {
		t.Errorf("%v, want the context's", err)
	}
	devices[1].Faults = nil
	control.Set(devices...)
	if diff := cmp.Diff(idle(devices), read(t, r)); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}
