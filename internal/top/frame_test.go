package top

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

func last(value float64) domain.Measure { return domain.Measure{Last: &value} }

const (
	uuidA = "GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91"
	uuidB = "GPU-5a17c3d2-77f0-4c51-8a0b-1f6f0f1f2b3c"
)

// lab returns a cluster of two hosts, one of which is silent, with two GPUs and a group that lacks one of its members.
func lab() state {
	observed := []domain.Observed{
		{Name: "job-ps-0", Group: "job", Role: "ps", Host: "gpu1", State: domain.StateRunning},
		{Name: "job-worker-2", Group: "job", Role: "worker", Host: "gpu1", State: domain.StateRunning},
		{
			Name: "job-worker-10", Group: "job", Role: "worker", Host: "gpu2", State: domain.StateFailed, Restarts: 3,
			LastError: "exit code 1:\n\x1b[31mout of memory",
		},
	}
	usage := engine.Usage{
		Hosts: map[string]engine.HostUsage{
			"gpu1": {
				CPUs: last(12.04), TotalCPUs: 16, MemoryMiB: last(61_440), TotalMemoryMiB: 65_536, Load: last(3.5),
			},
			"gpu2": {Reason: "the agent does not answer", GPUsReason: "the agent does not answer"},
		},
		GPUs: map[string]engine.GPUUsage{
			uuidB: {
				Host: "gpu1", TotalMemoryMiB: 46_068, Utilisation: last(87), MemoryMiB: last(11_517),
				TemperatureC: last(63), PowerW: last(212.4), Members: []string{"job-worker-2"},
			},
			uuidA: {Host: "gpu1", TotalMemoryMiB: 46_068, Reason: "fallen off the bus (XID 79)"},
		},
		Members: map[string]engine.MemberUsage{
			"job-ps-0": engine.MemberUsage{CPUs: last(0.5), MemoryMiB: last(200)}.Of(observed[0]),
			"job-worker-2": engine.MemberUsage{
				CPUs: last(7.25), MemoryMiB: last(4096), GPUMemoryMiB: last(9216),
			}.Of(observed[1]),
			"job-worker-10": engine.MemberUsage{Reason: "no container: the member is failed"}.Of(observed[2]),
		},
	}
	return state{cluster: "lab", engine: "swarm", reading: overview.Reading{
		Cluster: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"gpu1": {}, "gpu2": {}}},
		Groups: map[string]domain.GroupDocument{"job": {Assignments: map[string]domain.Assignment{
			"job-ps-0": {Host: "gpu1"}, "job-worker-2": {Host: "gpu1"}, "job-worker-3": {Host: "gpu2"},
			"job-worker-10": {Host: "gpu2"},
		}}},
		Observed: observed, Usage: usage, Devices: map[string]domain.GPU{
			uuidA: {Index: 0, Device: domain.Device{Model: "NVIDIA A40"}},
			uuidB: {Index: 1, Device: domain.Device{Model: "NVIDIA A40"}},
		},
		At: time.Date(2026, 11, 20, 10, 57, 56, 0, time.UTC),
	}}
}

func shown(f frame) string {
	var b strings.Builder
	for _, l := range append(f.head, f.body...) {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

// TestFrameIsPrintable checks that, whatever texts of members, agents, hosts and drivers were read, a frame can be
// printed, and is no wider than expected.
func TestFrameIsPrintable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := lab()
		text := acctest.Hostile().Draw(r, "text")
		s.cluster, s.engine = s.cluster+text, s.engine+text
		s.reading.Cluster, s.reading.Groups = within(s.reading.Cluster, text), within(s.reading.Groups, text)
		s.reading.Policies = map[string]domain.AutoscalingPolicyDocument{
			"job/w": {Spec: domain.AutoscalingPolicy{Group: "job" + text, Role: "w" + text}},
		}
		s.reading.Hooks = map[string]domain.HookCallsDocument{
			"job" + text + "/w" + text: {Calls: []domain.HookCall{{Called: time.Now(), Progress: text}}},
		}
		s.reading.Silent = map[string]domain.SilentGuardsDocument{
			"job" + text + "/w" + text: {Guards: []domain.SilentGuard{{Name: text, Why: text}}},
		}
		s.reading.Observed, s.reading.Usage, s.reading.Devices = within(s.reading.Observed, text),
			within(s.reading.Usage, text), within(s.reading.Devices, text)
		s.reading.Residents = domain.Residents{
			Controller: domain.Resident{State: domain.ResidentAbsent, Host: text, Error: text, Advice: text},
		}
		if rapid.Bool().Draw(r, "fails") {
			s.err = errors.New(text)
		}
		width := rapid.SampledFrom([]int{0, 40, 100}).Draw(r, "width")
		f := s.frame(byName, width)
		var out strings.Builder
		if err := write(&out, f); err != nil || width == 0 && strings.Count(out.String(), acctest.HostileMark) < 20 {
			t.Fatalf("the texts are not in\n%s (%v)", out.String(), err)
		}
		for _, l := range append(f.head, f.body...) {
			for _, s := range l {
				if s.text != printable.Line(s.text) {
					t.Fatalf("%q can't be printed", s.text)
				}
			}
			if width > 0 && l.width() > width {
				t.Fatalf("%q is wider than %d", l, width)
			}
		}
	})
}

// within returns a copy of a value with a text appended to each string in it, except words of the domain, such as
// states.
func within[T any](value T, text string) T {
	var copied func(v reflect.Value) reflect.Value
	copied = func(v reflect.Value) reflect.Value {
		changed := reflect.New(v.Type()).Elem()
		changed.Set(v)
		switch {
		case v.Type() == reflect.TypeFor[string]() && v.Len() > 0:
			changed.SetString(v.String() + text)
		case v.Type() == reflect.TypeFor[time.Time]():
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				changed.Field(i).Set(copied(v.Field(i)))
			}
		case v.Kind() == reflect.Slice && !v.IsNil():
			changed.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				changed.Index(i).Set(copied(v.Index(i)))
			}
		case v.Kind() == reflect.Map && !v.IsNil():
			changed.Set(reflect.MakeMap(v.Type()))
			for key, element := range v.Seq2() {
				changed.SetMapIndex(copied(key), copied(element))
			}
		}
		return changed
	}
	changed, _ := reflect.TypeAssert[T](copied(reflect.ValueOf(value)))
	return changed
}

func TestFrame(t *testing.T) {
	for name, c := range map[string]struct {
		width int
		by    sorting
		want  string
	}{
		"without bounds": {0, byName, `
lab  swarm  2 hosts, 2 GPUs, 1 group  10:57:56

HOST     CPUS                               MEMORY                        LOAD
gpu1  12.0/16  ███████████████░░░░░  60.0/64.0 GiB  ███████████████████░   3.5
gpu2        –                                    –                           –

GPU     BUSY                               MEMORY                         TEMP  POWER  USED BY       MODEL
gpu1:0     –                           –/45.0 GiB                            –      –  –             NVIDIA A40
gpu1:1  87 %  █████████████████░░░  11.2/45.0 GiB  █████░░░░░░░░░░░░░░░  63 °C  212 W  job-worker-2  NVIDIA A40

GROUP AND MEMBERS  STATE                           CPUS   MEMORY  GPU MEMORY  HOST  RESTARTS
job                2 running, 1 failed, 1 missing  7.75  4.2 GiB           –
  job-ps-0         running                         0.50  200 MiB           –  gpu1
  job-worker-2     running                         7.25  4.0 GiB     9.0 GiB  gpu1
  job-worker-3     missing                            –        –           –  gpu2
  job-worker-10    failed                             –        –           –  gpu2         3

NOTES
GPU gpu1:0: fallen off the bus (XID 79)
host gpu2: the agent does not answer
job-worker-10: exit code 1: �[31mout of memory
`},
		"a wide screen, by memory": {100, byMemory, `
lab  swarm  2 hosts, 2 GPUs, 1 group                                                        10:57:56

HOST     CPUS                     MEMORY              LOAD
gpu1  12.0/16  ████████░░  60.0/64.0 GiB  █████████░   3.5
gpu2        –                          –                 –

GPU     BUSY                     MEMORY               TEMP  POWER  USED BY       MODEL
gpu1:1  87 %  █████████░  11.2/45.0 GiB  ███░░░░░░░  63 °C  212 W  job-worker-2  NVIDIA A40
gpu1:0     –                 –/45.0 GiB                  –      –  –             NVIDIA A40

GROUP AND MEMBERS  STATE                           CPUS   MEMORY  GPU MEMORY  HOST  RESTARTS
job                2 running, 1 failed, 1 missing  7.75  4.2 GiB           –
  job-worker-2     running                         7.25  4.0 GiB     9.0 GiB  gpu1
  job-ps-0         running                         0.50  200 MiB           –  gpu1
  job-worker-3     missing                            –        –           –  gpu2
  job-worker-10    failed                             –        –           –  gpu2         3

NOTES
GPU gpu1:0: fallen off the bus (XID 79)
host gpu2: the agent does not answer
job-worker-10: exit code 1: �[31mout of memory
`},
		"a narrow screen": {48, byCPU, `
lab  swarm  2 hosts, 2 GPUs, 1 group    10:57:56

HOST     CPUS                MEMORY         LOAD
gpu1  12.0/16  ████░  60.0/64.0 GiB  █████   3.5
gpu2        –                     –            –

GPU     BUSY                MEMORY  USED BY
gpu1:1  87 %  ████░  11.2/45.0 GiB  job-worker-2
gpu1:0     –            –/45.0 GiB  –
`},
	} {
		t.Run(name, func(t *testing.T) {
			got := "\n" + shown(lab().frame(c.by, c.width))
			if c.width > 0 && c.width < 60 {
				got, _, _ = strings.Cut(got, "\nGROUP")
			}
			if diff := cmp.Diff(strings.Split(c.want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFrameFits checks that no line is wider than the screen, however narrow, and that names and states are visible.
func TestFrameFits(t *testing.T) {
	for width := 1; width < 140; width++ {
		f := lab().frame(byName, width)
		for _, l := range append(f.head, f.body...) {
			if l.width() > width {
				t.Errorf("in a width of %d is %q", width, l)
			}
		}
		if text := shown(f); width >= 40 &&
			(!strings.Contains(text, "job-worker") || !strings.Contains(text, "running")) {
			t.Errorf("in a width of %d, members are not on\n%s", width, text)
		}
	}
}

func TestFrameOfFailure(t *testing.T) {
	failure := errors.New("the Docker Engine at ssh://gpu1\ncan't be reached")
	first := state{cluster: "lab", engine: "swarm"}
	failed := first
	failed.err = failure
	stale := lab()
	stale.err = failure
	for name, c := range map[string]struct {
		state state
		want  []string
	}{
		"before the first answer": {first, []string{"lab  swarm", "Waiting for the first answer."}},
		"without any answer": {
			failed, []string{"the Docker Engine at ssh://gpu1 can't be reached", "Trying again.\n"},
		},
		"after an answer": {
			stale, []string{"can't be reached", "Trying again. Showing data from 10:57:56.", "job-worker-2 "},
		},
	} {
		got := shown(c.state.frame(byName, 100))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, got)
			}
		}
	}
}

// TestNotesOfResidents checks that a controller that isn't running comes first, with what to do about it.
func TestNotesOfResidents(t *testing.T) {
	s := lab()
	s.reading.Residents = domain.Residents{
		Controller: domain.Resident{
			State: domain.ResidentFailing, Host: "gpu1", Error: "no socket\x1b[2J", Advice: "Set socket.",
		},
		Agents: map[string]domain.Resident{
			"gpu1": {State: domain.ResidentRunning},
			"gpu2": {State: domain.ResidentAbsent, Error: "host gpu2 is down", Excused: true},
		},
	}
	if got := notes(s.reading,
		0)[1].printable().String(); got != "The controller isn't running on host gpu1: no socket�[2J. Set socket." {
		t.Errorf("the first note is %q", got)
	}
	for _, l := range notes(s.reading, 0) {
		if strings.Contains(l.String(), "gpu2 is down") {
			t.Errorf("an agent that nobody expects is missed: %s", l)
		}
	}
}

// TestNotes checks that a common reason is given once.
func TestNotes(t *testing.T) {
	s := lab()
	s.reading.Usage.GPUs = nil
	s.reading.Observed = nil
	s.reading.Usage.Hosts = map[string]engine.HostUsage{
		"a": {GPUsReason: "no driver"}, "b": {GPUsReason: "no driver"}, "c": {Reason: "no agent"},
	}
	var got []string
	for _, l := range notes(s.reading, 20) {
		got = append(got, l.String())
	}
	if diff := cmp.Diff([]string{"NOTES", "GPUs of a, GPUs of", "  b: no driver", "host c: no agent"},
		got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGPUCount(t *testing.T) {
	silent := map[string]engine.HostUsage{"a": {}, "b": {GPUsReason: "no agent"}}
	for _, c := range []struct {
		usage engine.Usage
		want  string
	}{
		{engine.Usage{Hosts: map[string]engine.HostUsage{"a": {}}}, "0 GPUs"},
		{engine.Usage{Hosts: silent}, "– GPUs"},
		{engine.Usage{Hosts: silent, GPUs: map[string]engine.GPUUsage{uuidA: {}}}, "1 GPU"},
	} {
		if got := gpuCount(overview.Reading{Usage: c.usage}); got != c.want {
			t.Errorf("%+v: %q, want %q", c.usage, got, c.want)
		}
	}
}
