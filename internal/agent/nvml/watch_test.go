//go:build linux

package nvml

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// xidEvent is an error that a watch reported.
type xidEvent struct {
	UUID string
	XID  int
}

// watcher is a watch in progress.
type watcher struct {
	mu   sync.Mutex
	seen []xidEvent
	end  context.CancelFunc
	done chan error
}

func watch(t *testing.T, r *Reader) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{end: cancel, done: make(chan error, 1)}
	go func() {
		w.done <- r.Watch(ctx, func(uuid string, xid int, at time.Time) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, xidEvent{uuid, xid})
			if at.IsZero() {
				t.Error("an error without its time")
			}
		})
	}()
	t.Cleanup(cancel)
	return w
}

// waits reports whether a wait for errors of GPUs is in progress.
func waits(r *Reader) bool {
	current := r.events.current.Load()
	return current != nil && current.function == "nvmlEventSetWait"
}

// wait returns the watch's error when it ends.
func (w *watcher) wait() error {
	return <-w.done
}

// ends ends the watch.
func (w *watcher) ends() error {
	w.end()
	return w.wait()
}

// hears waits until the watch has reported exactly these errors, in this order.
func (w *watcher) hears(t *testing.T, want ...xidEvent) {
	t.Helper()
	w.compare(t, want)
}

// hearsAnyhow is hears for errors of several GPUs, in any order.
func (w *watcher) hearsAnyhow(t *testing.T, want ...xidEvent) {
	t.Helper()
	w.compare(t, want, cmpopts.SortSlices(func(a, b xidEvent) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}))
}

func (w *watcher) compare(t *testing.T, want []xidEvent, options ...cmp.Option) {
	t.Helper()
	eventually(t, "errors of GPUs", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.seen) >= len(want)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.seen, options...); diff != "" {
		t.Errorf("errors reported (-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	devices := fakenvml.V100s("host", 8)
	r, control := openFake(t, patient(t), devices...)
	w := watch(t, r)

	devices[1].XIDs = []int{31}
	control.Set(devices...)
	want := []xidEvent{{devices[1].UUID, 31}}
	w.hears(t, want...)
	if gpu := read(t, r)[1]; gpu.XID == nil || *gpu.XID != 31 || gpu.XIDAt.IsZero() || gpu.Trouble != "" {
		t.Errorf("after a fault of a program: %+v", gpu)
	}

	// Later errors of a GPU do not cancel the one that made it unusable.
	devices[1].XIDs = append(devices[1].XIDs, 94, 45)
	control.Set(devices...)
	want = append(want, xidEvent{devices[1].UUID, 94}, xidEvent{devices[1].UUID, 45})
	w.hears(t, want...)
	if gpu := read(t, r)[1]; gpu.XID == nil || *gpu.XID != 45 || gpu.Trouble != "contained ECC error (XID 94)" ||
		gpu.Condemned != nil {
		t.Errorf("after an error that condemns it: %+v", gpu)
	}

	// A lost device reports that too.
	devices[6].XIDs, devices[6].Lost = []int{79}, true
	control.Set(devices...)
	want = append(want, xidEvent{devices[6].UUID, 79})
	w.hears(t, want...)
	gpus := read(t, r)
	if gpu := gpus[6]; gpu.Trouble != "fallen off the bus (XID 79)" || gpu.TemperatureC != nil ||
		gpu.UUID != devices[6].UUID {
		t.Errorf("after its loss: %+v", gpu)
	}
	if gpus[0].XID != nil || gpus[0].Trouble != "" {
		t.Errorf("another device: %+v", gpus[0])
	}
	// It comes back, as after a reset; a device that answered all the time is trusted again only after a while.
	devices[6].Lost = false
	control.Set(devices...)
	gpus = read(t, r)
	if gpu := gpus[6]; gpu.Trouble != "" || gpu.XID == nil || *gpu.XID != 79 {
		t.Errorf("after its return: %+v", gpu)
	}
	if gpus[1].Trouble == "" {
		t.Error("a device that an error condemned is acquitted at once")
	}
	r.settings.Quarantine = time.Nanosecond
	if gpu := read(t, r)[1]; gpu.Trouble != "" {
		t.Errorf("after its quarantine: %+v", gpu)
	}
	if err := r.Watch(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "already being watched") {
		t.Errorf("a second watch: %v", err)
	}
	if err := w.ends(); err != nil {
		t.Error(err)
	}
	w.hears(t, want...)
}

// TestWatchUntilReset: neither time, other errors nor a driver that hangs for a while make a GPU usable that needs a
// reset.
func TestWatchUntilReset(t *testing.T) {
	devices := fakenvml.V100s("host", 1)
	settings := patient(t)
	settings.Answer, settings.Quarantine = 2*time.Second, time.Nanosecond // the quarantine ends while the driver hangs
	r, control := openFake(t, settings, devices...)
	w := watch(t, r)
	var want []xidEvent
	reports := func(xids ...int) {
		t.Helper()
		devices[0].XIDs = append(devices[0].XIDs, xids...)
		control.Set(devices...)
		for _, xid := range xids {
			want = append(want, xidEvent{devices[0].UUID, xid})
		}
		w.hears(t, want...)
	}
	const ecc, reset = "double-bit ECC error (XID 48)", "it needs a reset (nvidia-smi --gpu-reset)"
	is := func(when, trouble string) (gpu domain.GPU) {
		t.Helper()
		hangs := func(trouble string) bool { return strings.Contains(trouble, "the driver does not answer") }
		eventually(t, when+", an answer in time", func() bool { // which a busy machine may give too late
			gpus, err := r.Read(t.Context())
			if err != nil && !isLate(err) {
				t.Fatal(err)
			}
			if err == nil {
				gpu = gpus[0]
			}
			return err == nil && hangs(gpu.Trouble) == hangs(trouble)
		})
		if gpu.Trouble != trouble || (gpu.Condemned != nil) != strings.Contains(trouble, "XID") {
			t.Errorf("%s: trouble %q, want %q; condemned %+v", when, gpu.Trouble, trouble, gpu.Condemned)
		}
		return gpu
	}
	recommended := func(action *int) {
		devices[0].Recovery = action
		control.Set(devices...)
	}

	reports(48)
	is("after its quarantine", ecc)
	reports(94, 63, 31)
	is("after other errors", ecc)
	devices[0].Faults = fakenvml.Faults{"nvmlDeviceGetPowerUsage": fakenvml.Hang}
	control.Set(devices...)
	is("while the driver hangs", ecc+"; the driver does not answer")
	devices[0].Faults = nil
	control.Set(devices...)
	is("after the driver hung", ecc)
	reports(62)
	is("after another one", "microcontroller halt (XID 62)")
	devices[0].Lost = true
	control.Set(devices...)
	is("when it is gone", "microcontroller halt (XID 62); fallen off the bus")
	devices[0].Lost = false
	control.Set(devices...)
	if back := is("when it is back", ""); back.GoneAt.IsZero() {
		t.Error("nobody has noted when it was gone")
	}

	// Once a driver recommends actions, its recommendation counts.
	reports(48)
	recommended(new(0))
	is("where the driver recommends nothing", ecc)
	recommended(new(fakenvml.ResetGPU))
	is("where the driver recommends a reset", ecc+"; "+reset)
	recommended(nil)
	is("where the driver does not say", ecc)
	recommended(new(0))
	is("where the driver no longer recommends a reset", "")
	recommended(new(fakenvml.ResetGPU))
	is("without an error", reset)
	recommended(new(0))
	is("without anything", "")
}

// TestWatchGoesOn: the watch continues when event sets break, and when devices don't support events, for good or for a
// while.
func TestWatchGoesOn(t *testing.T) {
	devices := fakenvml.V100s("host", 6)
	devices[1].Faults = fakenvml.Faults{"nvmlDeviceRegisterEvents": fakenvml.NotSupported}
	devices[2].Faults = fakenvml.Faults{"nvmlDeviceRegisterEvents": fakenvml.Unknown} // breaks the set
	devices[3].Faults = fakenvml.Faults{"nvmlDeviceRegisterEvents": fakenvml.Hang}
	devices[4].Lost = true
	for i := range devices {
		devices[i].XIDs = []int{13}
	}
	r, control := openFake(t, hasty(t), devices...)
	w := watch(t, r)
	want := []xidEvent{{devices[0].UUID, 13}, {devices[5].UUID, 13}}
	w.hearsAnyhow(t, want...)

	devices[2].Faults, devices[3].Faults, devices[4].Lost = nil, nil, false
	control.Set(devices...)
	for _, i := range []int{2, 3, 4} {
		want = append(want, xidEvent{devices[i].UUID, 13})
	}
	w.hearsAnyhow(t, want...)

	// The next set is requested in vain as long as the last one would be broken, which shows that the last one was
	// abandoned.
	control.Break(fakenvml.Faults{"nvmlEventSetWait": fakenvml.IsLost, "nvmlEventSetCreate": fakenvml.Hang})
	eventually(t, "the set to be given up", func() bool {
		current := r.events.current.Load()
		return current != nil && current.function == "nvmlEventSetCreate"
	})
	devices[5].XIDs = append(devices[5].XIDs, 94)
	control.Set(devices...)
	control.Break(nil)
	want = append(want, xidEvent{devices[5].UUID, 94})
	w.hearsAnyhow(t, want...)
	if err := w.ends(); err != nil {
		t.Error(err)
	}
	w.hearsAnyhow(t, want...)
}

func TestWatchFails(t *testing.T) {
	r, control := openFake(t, patient(t), fakenvml.V100s("host", 1)...)
	control.Break(fakenvml.Faults{"nvmlEventSetCreate": 20})
	if err := watch(t, r).wait(); err == nil || err.Error() != "watching for GPU errors: out of memory" {
		t.Errorf("%v", err)
	}
}

// TestWatchHangs: if a wait hangs, the watch still ends, late errors are not lost, and NVML stays open meanwhile.
func TestWatchHangs(t *testing.T) {
	devices := fakenvml.V100s("host", 1)
	r, control := openFake(t, hasty(t), devices...)
	control.Break(fakenvml.Faults{"nvmlEventSetWait": fakenvml.Hang})
	w := watch(t, r)
	eventually(t, "a wait", func() bool { return waits(r) })
	devices[0].XIDs = []int{13}
	control.Set(devices...)
	control.Break(nil)
	w.hears(t, xidEvent{devices[0].UUID, 13})
	if err := w.ends(); err != nil {
		t.Error(err)
	}

	// Without a call in progress, so that the next wait hangs, rather than one that is about to return.
	eventually(t, "the last call's end", func() bool { return r.events.current.Load() == nil })
	control.Break(fakenvml.Faults{"nvmlEventSetWait": fakenvml.Hang})
	w = watch(t, r)
	eventually(t, "another wait", func() bool { return waits(r) })
	if err := w.ends(); err != nil {
		t.Error(err)
	}
	refusesToClose(t, r, "nvmlEventSetWait")
	control.Break(nil)
	eventually(t, "the wait to end", func() bool { return !waits(r) })
}
