//go:build linux

package nvml

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// onAnyDriver are tests that hold for every driver, whatever GPUs there are and whoever uses them.
var onAnyDriver = map[string]func(t *testing.T, settings Settings){
	"each GPU is another one":              testIdentities,
	"links lead both ways":                 testLinks,
	"what is reported is possible":         testQuantities,
	"processes are reported once":          testProcesses,
	"GPUs stay who they are":               testSameGPUs,
	"GPUs are the same to all who ask":     testSameToAll,
	"calls come back":                      testAnswers,
	"the driver is opened again and again": testOpenAgain,
	"errors can be waited for":             testEvents,
	"errors are watched until the end":     testWatchOfDriver,
}

// TestFakeDriver tests the fake driver with a variety of devices.
func TestFakeDriver(t *testing.T) {
	devices := fakenvml.V100s("host", 8)
	devices[1].Utilisation, devices[1].MemoryUtilisation, devices[1].UsedMiB = 100, 41,
		devices[1].MemoryMiB-devices[1].ReservedMiB
	devices[2].Processes = []fakenvml.Process{
		{PID: 103, MiB: 512, Graphics: true}, {PID: 101, MiB: -1}, {PID: 103, MiB: 700},
	}
	devices[4].MIG, devices[4].RowsFailed = true, true
	devices[5].Faults = fakenvml.Faults{
		"nvmlDeviceGetUtilizationRates":        fakenvml.NotSupported,
		"nvmlDeviceGetComputeRunningProcesses": fakenvml.NoPermission,
	}
	devices[6].Faults = fakenvml.Faults{"nvmlDeviceRegisterEvents": fakenvml.NotSupported}
	devices = append(devices, fakenvml.Device{
		UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
		MemoryMiB: 46_068,
	})
	for name, test := range onAnyDriver {
		t.Run(name, func(t *testing.T) {
			control := fakenvml.New(t)
			control.Set(devices...)
			t.Setenv(fakenvml.Variable, control.Path())
			test(t, patient(t))
		})
	}
}

// TestRealDriver tests the driver and the GPUs of this machine, if there are any.
func TestRealDriver(t *testing.T) {
	if !alone(t) {
		return
	}
	gpus, err := Source(Settings{})(t.Context())
	switch {
	case err != nil && len(gpus) == 0:
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	case len(gpus) == 0:
		t.Skip("NVIDIA's driver runs on this machine, and has no GPU")
	}
	for _, gpu := range gpus {
		t.Logf("%+v", gpu)
	}
	for name, test := range onAnyDriver {
		t.Run(name, func(t *testing.T) { test(t, Settings{}) })
	}
}

// opened returns a reader that is closed at the end of the test.
func opened(t *testing.T, settings Settings) *Reader {
	t.Helper()
	r, err := Open(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAtLast(t, r) })
	return r
}

// identities are the constant properties of GPUs, in order.
func identities(gpus []domain.GPU) []domain.GPU {
	same := make([]domain.GPU, len(gpus))
	for i, gpu := range gpus {
		same[i] = domain.GPU{Device: gpu.Device, Index: gpu.Index, PCIBusID: gpu.PCIBusID}
	}
	return same
}

func testIdentities(t *testing.T, settings Settings) {
	seen := map[string]int{}
	for i, gpu := range read(t, opened(t, settings)) {
		var problems domain.Problems
		if domain.CheckUUID(&problems, nil, gpu.UUID); len(problems) > 0 {
			t.Error(problems)
		}
		if gpu.Index != i || gpu.Trouble == "" && (gpu.Model == "" || kernelBusID(gpu.PCIBusID) == "") {
			t.Errorf("GPU %d is read as %+v", i, gpu)
		}
		for _, own := range []string{gpu.UUID, gpu.PCIBusID} {
			if other, taken := seen[own]; taken && own != "" {
				t.Errorf("GPUs %d and %d are both %s", other, i, own)
			}
			seen[own] = i
		}
	}
}

func testLinks(t *testing.T, settings Settings) {
	gpus := read(t, opened(t, settings))
	known := map[string]domain.GPU{}
	for _, gpu := range gpus {
		known[gpu.UUID] = gpu
	}
	for _, gpu := range gpus {
		if !slices.IsSorted(gpu.Links) || slices.Contains(gpu.Links, gpu.UUID) {
			t.Errorf("%s has links to %v", gpu.UUID, gpu.Links)
		}
		for _, uuid := range gpu.Links {
			// One that is not completely known may not report its links.
			if peer, found := known[uuid]; !found ||
				peer.Unknown == "" && peer.Trouble == "" && !slices.Contains(peer.Links, gpu.UUID) {
				t.Errorf("%s has a link to %s, which has links to %v", gpu.UUID, uuid, peer.Links)
			}
		}
	}
}

// within reports whether a value is in a range, or unknown.
func within[T int64 | float64](value *T, from, to T) bool {
	return value == nil || from <= *value && *value <= to
}

func testQuantities(t *testing.T, settings Settings) {
	const hot, much = 200, 100_000 // °C, W
	for _, gpu := range read(t, opened(t, settings)) {
		if !within(gpu.Utilisation, 0, 100) || !within(gpu.MemoryUtilisation, 0, 100) ||
			(gpu.Utilisation == nil) != (gpu.MemoryUtilisation == nil) {
			t.Errorf("%s is working %v and %v percent of the time", gpu.UUID, gpu.Utilisation, gpu.MemoryUtilisation)
		}
		if !within(gpu.TemperatureC, 0, hot) || !within(gpu.PowerW, 0, much) || !within(gpu.PowerLimitW, 0, much) ||
			gpu.ECCErrors != nil && *gpu.ECCErrors < 0 {
			t.Errorf("%s is measured as %+v", gpu.UUID, gpu)
		}
		if gpu.NUMANode != nil && *gpu.NUMANode < 0 {
			t.Errorf("%s is nearest to node %d", gpu.UUID, *gpu.NUMANode)
		}
		if gpu.XID != nil || gpu.XIDAt != nil {
			t.Errorf("%s has had an error %+v, though nobody listens", gpu.UUID, gpu)
		}
		switch used, free := gpu.MemoryUsedMiB, gpu.MemoryFreeMiB; {
		case (used == nil) != (free == nil), used != nil && (*used < 0 || *free < 0 || *used+*free > gpu.MemoryMiB):
			t.Errorf("of the %d MiB of %s %v are used, and %v free", gpu.MemoryMiB, gpu.UUID, used, free)
		}
	}
}

func testProcesses(t *testing.T, settings Settings) {
	for _, gpu := range read(t, opened(t, settings)) {
		last := 0
		for _, p := range gpu.Processes {
			if p.PID <= last || p.PID == os.Getpid() || strings.ContainsAny(p.Command, "\n\x00") ||
				!within(p.MemoryMiB, 0, gpu.MemoryMiB) {
				t.Errorf("%s is used by %+v, after process %d, says process %d, which only reads it", gpu.UUID, p, last,
					os.Getpid())
			}
			last = p.PID
		}
	}
}

// testSameGPUs reads in all three ways: once, repeatedly, and as the resident agent does.
func testSameGPUs(t *testing.T, settings Settings) {
	want, err := Source(settings)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := opened(t, settings)
	resident := newKeeper(t, settings)
	for range 3 {
		for name, read := range map[string]func(
			context.Context,
		) ([]domain.GPU, error){"reader": r.Read, "resident": resident.read} {
			gpus, err := read(t.Context())
			if diff := cmp.Diff(identities(want), identities(gpus)); err != nil || diff != "" {
				t.Errorf("the %s has other GPUs: %v (-want +got):\n%s", name, err, diff)
			}
		}
	}
}

func testSameToAll(t *testing.T, settings Settings) {
	r := opened(t, settings)
	want := identities(read(t, r))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				gpus, err := r.Read(t.Context())
				if diff := cmp.Diff(want, identities(gpus)); err != nil || diff != "" {
					t.Errorf("%v; GPUs (-want +got):\n%s", err, diff)
				}
			}
		})
	}
	all.Wait()
}

// testAnswers: the time limits of calls are far beyond what a healthy driver takes.
func testAnswers(t *testing.T, settings Settings) {
	r := opened(t, settings)
	for range 10 {
		for _, gpu := range read(t, r) {
			if strings.Contains(gpu.Unknown, "did not answer") || strings.Contains(gpu.Trouble, "does not answer") {
				t.Errorf("%s: %s (%s)", gpu.UUID, gpu.Trouble, gpu.Unknown)
			}
		}
	}
	for _, s := range r.slots {
		if call := s.callQueue.current.Load(); call != nil {
			t.Errorf("%s of GPU %d is still on its way", call.function, s.index)
		}
	}
}

// testOpenAgain opens the driver several times, also concurrently: it counts its users.
func testOpenAgain(t *testing.T, settings Settings) {
	open := func() *Reader {
		t.Helper()
		r, err := Open(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	end := func(r *Reader) {
		t.Helper()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	first := open()
	want := identities(read(t, first))
	for range 3 {
		second := open()
		end(first)
		if diff := cmp.Diff(want, identities(read(t, second))); diff != "" {
			t.Errorf("opened again (-want +got):\n%s", diff)
		}
		end(second)
		first = open()
	}
	end(first)
}

// eventsOf returns a set that records the errors of all devices that support it, and the number of these.
func eventsOf(t *testing.T, r *Reader) (set eventSet, devices int) {
	t.Helper()
	set, err := r.library.eventSetCreate()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.free(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range r.slots {
		switch err := s.recall().handle.registerEvents(set); {
		case err == nil:
			devices++
		case !errors.Is(err, notSupported):
			t.Errorf("errors of GPU %d are not heard of: %v", s.index, err)
		}
	}
	return set, devices
}

// testEvents waits for errors by its own calls. An error that happens to occur meanwhile, as on a machine that trains,
// is an error like any other.
func testEvents(t *testing.T, settings Settings) {
	r := opened(t, settings)
	read(t, r)
	set, devices := eventsOf(t, r)
	if devices == 0 {
		t.Skip("no GPU of this machine has events")
	}
	heard, err := set.wait(settings.withDefaults().Answer / 1000)
	known := slices.ContainsFunc(r.slots, func(s *slot) bool { return s.recall().handle == heard.device })
	if err != nil && !errors.Is(err, timedOut) || err == nil && (!known || heard.xid <= 0) {
		t.Errorf("waiting for errors of %d GPUs: %+v, %v", devices, heard, err)
	}
}

// testWatchOfDriver watches while the GPUs are read.
func testWatchOfDriver(t *testing.T, settings Settings) {
	r := opened(t, settings)
	want := identities(read(t, r))
	_, devices := eventsOf(t, r)
	w := watch(t, r)
	if devices > 0 {
		eventually(t, "a wait for errors", func() bool { return waits(r) })
	}
	if diff := cmp.Diff(want, identities(read(t, r))); diff != "" {
		t.Errorf("while errors are watched (-want +got):\n%s", diff)
	}
	if err := w.ends(); err != nil {
		t.Error(err)
	}
}
