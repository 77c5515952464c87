package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// noon is when tests take place.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// at returns a time some seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func seconds(n float64) *domain.Duration {
	return new(domain.Duration(n * float64(time.Second)))
}

// sweepOf returns a sweep with a number of runs, r0, r1, …, which request one CPU each.
func sweepOf(name string, n int) domain.Sweep {
	s := domain.Sweep{
		Cluster: "lab", Name: name, Template: domain.Template{Command: []string{"train"}},
		Runs:      make(map[string]map[string]string, n),
		Resources: domain.ResourceRequirements{CPUs: 1},
	}
	digits := len(fmt.Sprint(max(n-1, 0)))
	for i := range n {
		s.Runs[fmt.Sprintf("r%0*d", digits, i)] = map[string]string{"LR": fmt.Sprint(i)}
	}
	return s
}

// onGPUs makes runs ask for memory of one device of pool p.
func onGPUs(s domain.Sweep, mib int64) domain.Sweep {
	s.Resources, s.GPUs = domain.ResourceRequirements{}, &domain.GPURequest{Pool: "p", MemoryMiB: mib}
	return s
}

// documentOf returns the document of a sweep that was stored once.
func documentOf(s domain.Sweep) domain.SweepDocument {
	doc := domain.SweepDocument{
		Header: domain.Header{Version: 1, Revision: 1}, Spec: s, Count: len(s.Runs), ID: "id of " + s.Name, Since: noon,
		MinRun: 1,
	}
	doc.Spec.Runs = nil
	return doc
}

// queueOf returns a sweep without any stored state.
func queueOf(s domain.Sweep) Queue {
	return Queue{Document: documentOf(s), Spec: s, Keys: s.Keys(), Runs: map[string]domain.Run{}}
}

// with returns the queue with the stored state of some runs. An omitted revision and seal are those of the queue.
func (q Queue) with(runs map[string]domain.Run) Queue {
	q.Runs = maps.Clone(q.Runs)
	for key, run := range runs {
		if run.Revision == 0 {
			run.Revision = q.Document.Revision
		}
		if run.Seal == "" {
			run.Seal = Seal(q.Spec.Run(key))
		}
		q.Runs[key] = run
	}
	return q
}

// running returns a run that was started at some time, in a place such as "gpu1 GPU-a".
func running(place string, started time.Time) domain.Run {
	return domain.Run{
		State: domain.RunRunning, Attempts: 1, Batch: 1, Assignment: new(domain.ParsePlace(place)), StartedAt: &started,
	}
}

// endedRun returns a run that was in a place, and ended at some time.
func endedRun(state domain.RunState, place string, finished time.Time) domain.Run {
	run := running(place, finished.Add(-time.Minute))
	run.State, run.FinishedAt = state, &finished
	return run
}

// ranOut returns a waiting run that ran out of memory on a device alongside a number of others.
func ranOut(at time.Time, beside int) domain.Run {
	run := endedRun(domain.RunQueued, "gpu1 GPU-a", at)
	run.OutOfMemory, run.RanOut = 1, &domain.RanOut{At: at, GPUs: run.Assignment.GPUs, Beside: beside}
	return run
}

// hostsOf returns hosts with a number of CPUs and 64,000 MiB each.
func hostsOf(cpus float64, names ...string) map[string]domain.Host {
	hosts := map[string]domain.Host{}
	for _, name := range names {
		hosts[name] = domain.Host{
			Address: name + ".lab", Capacity: domain.Capacity{CPUs: cpus, MemoryMiB: 64_000},
			Labels: map[string]string{"name": name},
		}
	}
	return hosts
}

// a40 returns devices of 46,068 MiB.
func a40(uuids ...string) []domain.Device {
	var devices []domain.Device
	for _, uuid := range uuids {
		devices = append(devices, domain.Device{UUID: uuid, Model: "NVIDIA A40", MemoryMiB: 46_068})
	}
	return devices
}

// slots returns pool p, whose devices have slots of a size.
func slots(mib int64, devices map[string][]domain.Device) map[string]domain.GPUPoolDocument {
	spec := domain.GPUPool{Cluster: "lab", Name: "p", Sharing: domain.Slots, MemoryMiBPerSlot: mib}
	return map[string]domain.GPUPoolDocument{"p": {Spec: spec, Devices: devices}}
}

// exclusive returns pool p, whose devices have one owner each.
func exclusive(devices map[string][]domain.Device) map[string]domain.GPUPoolDocument {
	return map[string]domain.GPUPoolDocument{"p": {Spec: domain.GPUPool{Cluster: "lab", Name: "p"}, Devices: devices}}
}

// startTexts formats what is started, such as "a/r0 on gpu1 GPU-a".
func startTexts(starts []Admitted) []string {
	texts := []string{}
	for _, start := range starts {
		texts = append(texts, start.Sweep+"/"+start.Key+" on "+start.At.Place())
	}
	return texts
}

// says checks that a text has all parts.
func says(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
		t.Errorf("%s: %q does not say all of %q", what, text, parts)
	}
}
