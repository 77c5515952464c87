//go:build linux

package nvml

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// keep returns a keeper of the fake library, with devices.
func keep(t *testing.T, settings Settings, devices ...fakenvml.Device) (*keeper, *fakenvml.Control) {
	t.Helper()
	control := fakenvml.New(t)
	control.Set(devices...)
	t.Setenv(fakenvml.Variable, control.Path())
	k := newKeeper(t, settings)
	t.Cleanup(func() { heal(control) })
	return k, control
}

// newKeeper returns a keeper that is closed at the end of the test.
func newKeeper(t *testing.T, settings Settings) *keeper {
	t.Helper()
	k := &keeper{life: t.Context(), settings: settings, log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() { // runs after its context has ended
		if k.reader == nil {
			return
		}
		k.ended.Wait()
		k.reader.settings.Start = time.Minute // closing must not be abandoned soon
		closeAtLast(t, k.reader)
	})
	return k
}

// reads reads the GPUs, without waiting for the next attempt to open the driver.
func (k *keeper) reads(t *testing.T) error {
	t.Helper()
	k.failed = time.Time{}
	_, err := k.read(t.Context())
	return err
}

// TestKeepWhoGoesAway: a caller that gives up waiting for the GPUs is not an error of the driver.
func TestKeepWhoGoesAway(t *testing.T) {
	k, _ := keep(t, patient(t), fakenvml.V100s("host", 2)...)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	goes := func() {
		t.Helper()
		if gpus, err := k.read(gone); len(gpus) > 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone reads %v, %v", gpus, err)
		}
		if err := k.open(gone); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	goes()
	if _, err := k.read(t.Context()); err != nil {
		t.Errorf("after one who has gone opened the driver: %v", err)
	}
	reader := k.reader
	goes()
	if _, err := k.read(t.Context()); err != nil || k.reader != reader {
		t.Errorf("after one who has gone read the GPUs: %v", err)
	}
}

// TestKeepQuarantine: a GPU that an error made unusable stays so when the driver is reopened.
func TestKeepQuarantine(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	k, control := keep(t, patient(t), devices...)
	trouble := func() string {
		k.failed = time.Time{}
		gpus, err := k.read(t.Context())
		if err != nil {
			return err.Error()
		}
		return gpus[1].Trouble
	}
	const want = "double-bit ECC error (XID 48)"
	eventually(t, "the driver", func() bool { return trouble() == "" })
	devices[1].XIDs = []int{48}
	control.Set(devices...)
	eventually(t, "the error", func() bool { return trouble() == want })

	devices[1].XIDs = nil // otherwise each start of the library would report it
	control.Set(devices...)
	control.Break(fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.Unknown})
	eventually(t, "the driver's end", func() bool { return k.reads(t) != nil && k.reader == nil })
	control.Break(nil)
	eventually(t, "the driver to be opened again", func() bool { return k.reads(t) == nil })
	if got := trouble(); got != want {
		t.Errorf("in a driver that was opened again, the device is in trouble %q, want %q", got, want)
	}
}

// TestKeepHearsToTheEnd: what a GPU reports while its driver fails is not lost, though the driver is closed because of
// that.
func TestKeepHearsToTheEnd(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	k, control := keep(t, patient(t), devices...)
	eventually(t, "the driver", func() bool { return k.reads(t) == nil })
	eventually(t, "the watch", func() bool { return waits(k.reader) })
	devices[1].XIDs = []int{62}
	control.Set(devices...)
	control.Break(fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.Unknown})
	if err := k.reads(t); err == nil || k.reader != nil {
		t.Fatalf("it reads with %v, and the driver is open: %t", err, k.reader != nil)
	}
	devices[1].XIDs = nil // otherwise each start of the library would report it
	control.Set(devices...)
	control.Break(nil)
	k.failed = time.Time{}
	if gpus, err := k.read(t.Context()); err != nil || gpus[1].Condemned == nil {
		t.Errorf("after the error that came with the driver's end: %+v (%v)", gpus, err)
	}
}

// logged are the lines of a log.
type logged chan string

func (l logged) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestKeepListening: errors are still reported after the driver refused to report them for a while, which is logged
// once.
func TestKeepListening(t *testing.T) {
	devices := fakenvml.V100s("host", 1)
	k, control := keep(t, patient(t), devices...)
	lines := make(logged, 8)
	k.log = slog.New(slog.NewTextHandler(lines, nil))
	control.Break(fakenvml.Faults{"nvmlEventSetCreate": 20})
	eventually(t, "the driver", func() bool { return k.reads(t) == nil })
	if line := <-lines; !strings.Contains(line, "out of memory") {
		t.Errorf("it logs %s", line)
	}
	control.Break(nil)
	devices[0].XIDs = []int{48}
	control.Set(devices...)
	eventually(t, "the error", func() bool {
		gpus, err := k.read(t.Context())
		return err == nil && gpus[0].Condemned != nil
	})
	if line := <-lines; !strings.Contains(line, "xid=48") || len(lines) > 0 {
		t.Errorf("it logs %s and %d other lines", line, len(lines))
	}
}

// TestKeepDriverLoadedAnew: a GPU that needs a reset is usable again after its driver was reloaded, and other GPUs are
// not affected by its error.
func TestKeepDriverLoadedAnew(t *testing.T) {
	devices := fakenvml.V100s("host", 2)
	k, control := keep(t, patient(t), devices...)
	eventually(t, "the driver", func() bool { return k.reads(t) == nil })
	devices[1].XIDs = []int{62}
	control.Set(devices...)
	condemned := func() bool {
		gpus, err := k.read(t.Context())
		return err == nil && gpus[1].Condemned != nil && gpus[1].GoneAt.IsZero() && gpus[0].Condemned == nil
	}
	eventually(t, "the error", condemned)

	devices[1].XIDs = nil // otherwise each start of the library would report it
	control.Set(devices...)
	control.Break(fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.DriverNotLoaded, "nvmlInit": fakenvml.DriverNotLoaded})
	eventually(t, "the driver's end", func() bool { return errors.Is(k.reads(t), ErrNoDriver) })
	control.Break(nil)
	eventually(t, "the driver to be opened again", func() bool { return k.reads(t) == nil })
	gpus, err := k.read(t.Context())
	if err != nil || gpus[1].Trouble != "" || gpus[0].GoneAt.IsZero() || gpus[1].GoneAt.IsZero() {
		t.Errorf("with a driver that was loaded anew: %+v (%v)", gpus, err)
	}
}

// TestKeepStuck: a driver with a stuck call is not opened a second time, and works again when the call returns.
func TestKeepStuck(t *testing.T) {
	for name, test := range map[string]struct{ device, library fakenvml.Faults }{
		"a device":    {device: fakenvml.Faults{"nvmlDeviceGetHandleByIndex": fakenvml.Hang}},
		"the library": {library: fakenvml.Faults{"nvmlDeviceGetCount": fakenvml.Hang}},
		"a wait for errors": {
			library: fakenvml.Faults{"nvmlEventSetWait": fakenvml.Hang, "nvmlDeviceGetCount": fakenvml.Unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			devices := fakenvml.V100s("host", 1)
			devices[0].Faults = test.device // before the watch has seen it
			settings := hasty(t)
			settings.Start = settings.Answer
			k, control := keep(t, settings, devices...)
			wait, stuck := test.library["nvmlEventSetWait"]
			if stuck {
				// On its own, as another fault would end the watch before it waits; and before there is a watch, so
				// that its first wait is stuck, rather than one that may be about to return.
				control.Break(fakenvml.Faults{"nvmlEventSetWait": wait})
			}
			eventually(t, "the library", func() bool { return k.open(t.Context()) == nil })
			reader := k.reader
			if stuck {
				eventually(t, "the device", func() bool { return k.reads(t) == nil })
				eventually(t, "a wait", func() bool { return waits(reader) })
			}
			control.Break(test.library)
			for range 5 {
				if err := k.reads(t); err == nil || strings.Contains(err.Error(), "closed") {
					t.Errorf("it reads with %v", err)
				}
				if k.reader != reader {
					t.Fatal("the driver was opened again")
				}
			}
			devices[0].Faults = nil
			control.Set(devices...)
			control.Break(nil)
			eventually(t, "the device to come back", func() bool {
				gpus, err := k.read(t.Context())
				return err == nil && cmp.Equal(idle(devices), gpus)
			})
			if k.reader != reader {
				t.Error("the driver was opened again")
			}
		})
	}
}
