package engine

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestSumUsage(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	uses := func(cpus, memory float64, second int64) MemberUsage {
		return MemberUsage{
			State: domain.StateRunning, CPUs: domain.Instant(&cpus), MemoryMiB: domain.Instant(&memory),
			GPUMemoryMiB: domain.Instant(new(0.0)), SampledAt: at(second),
			ReceivedBps: domain.Instant(new(10.0)), SentBps: domain.Instant(new(1.0)),
		}
	}
	hidden := uses(1, 1, 3)
	hidden.GPUMemoryMiB, hidden.Reason = domain.Measure{}, "no driver"
	uncounted := uses(1, 1, 3)
	uncounted.ReceivedBps, uncounted.SentBps, uncounted.TrafficReason = domain.Measure{}, domain.Measure{},
		"on its host's network"
	once, twice := domain.Instant(new(10.0)), domain.Instant(new(20.0))
	sent, sentTwice := domain.Instant(new(1.0)), domain.Instant(new(2.0))
	ended := MemberUsage{State: domain.StateCompleted, SampledAt: at(1), Reason: "no process"}
	lost := MemberUsage{State: domain.StateRunning, SampledAt: at(5), Reason: "no agent"}
	for name, test := range map[string]struct {
		members map[string]MemberUsage
		want    MemberUsage
	}{
		"two that run and one that ended": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7), "b": uses(1.5, 20, 3), "c": ended},
			want: MemberUsage{
				CPUs: domain.Instant(new(2.0)), MemoryMiB: domain.Instant(new(120.0)),
				GPUMemoryMiB: domain.Instant(new(0.0)), SampledAt: at(3),
				ReceivedBps: twice, SentBps: sentTwice,
			},
		},
		"one whose memory on GPUs is not known": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7), "b": hidden},
			want: MemberUsage{
				CPUs: domain.Instant(new(1.5)), MemoryMiB: domain.Instant(new(101.0)), SampledAt: at(3),
				Reason:      "member b: no driver",
				ReceivedBps: twice, SentBps: sentTwice,
			},
		},
		"one whose traffic is not counted": {
			members: map[string]MemberUsage{"a": uncounted, "b": uses(0.5, 100, 7)},
			want: MemberUsage{
				CPUs: domain.Instant(new(1.5)), MemoryMiB: domain.Instant(new(101.0)),
				GPUMemoryMiB: domain.Instant(new(0.0)), SampledAt: at(3),
				TrafficReason: "member a: on its host's network",
			},
		},
		"one alone": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7)},
			want: MemberUsage{
				CPUs: domain.Instant(new(0.5)), MemoryMiB: domain.Instant(new(100.0)),
				GPUMemoryMiB: domain.Instant(new(0.0)), SampledAt: at(7), ReceivedBps: once, SentBps: sent,
			},
		},
		"one that is not known": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7), "b": lost},
			want:    MemberUsage{SampledAt: at(5), Reason: "member b: no agent"},
		},
		"none that runs": {
			members: map[string]MemberUsage{"c": ended}, want: MemberUsage{Reason: "no member is running"},
		},
		"none": {want: MemberUsage{Reason: "it has no members"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, SumUsage(test.members)); diff != "" {
				t.Errorf("together (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhyNoTraffic(t *testing.T) {
	known := domain.Instant(new(0.0))
	for name, test := range map[string]struct {
		usage MemberUsage
		want  string
	}{
		"known":             {MemberUsage{ReceivedBps: known, SentBps: known, Reason: "no driver"}, ""},
		"the rest is known": {MemberUsage{CPUs: known, TrafficReason: "not counted"}, "not counted"},
		"a reason for each": {
			MemberUsage{Reason: "no driver", TrafficReason: "not counted"}, "not counted",
		},
		"nothing is known": {MemberUsage{Reason: "no agent"}, "no agent"},
		"a reason for another alone": {
			MemberUsage{CPUs: known, Reason: "no driver"}, "its network traffic was unknown at the last sample",
		},
		"one way alone, without reason": {
			MemberUsage{SentBps: known}, "its network traffic was unknown at the last sample",
		},
	} {
		if got := test.usage.WhyNoTraffic(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestExpected: expected GPUs and members without a report are listed, with the reason why they are unknown.
func TestExpected(t *testing.T) {
	usage := Usage{
		Hosts: map[string]HostUsage{"a": {}, "b": {GPUsReason: "no agent"}},
		GPUs:  map[string]GPUUsage{"GPU-1": {Host: "a"}},
		Members: map[string]MemberUsage{
			"job-worker-0": {Group: "job", Role: "worker", Host: "a", State: domain.StateRunning},
		},
	}
	device := func(uuid string) domain.Device { return domain.Device{UUID: uuid, MemoryMiB: 8} }
	got := usage.Expected(
		map[string]domain.GPUPoolDocument{"p": {
			Devices: map[string][]domain.Device{
				"a": {device("GPU-1"), device("GPU-2"), device("GPU-3")}, "b": {device("GPU-4")},
			},
			Trouble: map[string]string{"GPU-3": "no longer found"},
		}},
		map[string]domain.GroupDocument{
			"job": {
				Counts:      map[string]int{"worker": 2, "evaluator": 0},
				Assignments: map[string]domain.Assignment{"job-worker-1": {Host: "b"}},
			},
			// A policy has removed the first one.
			"farm": {Counts: map[string]int{"worker": 1}, Absent: map[string][]int{"worker": {0}}},
		},
	)
	want := Usage{
		Hosts: usage.Hosts,
		GPUs: map[string]GPUUsage{
			"GPU-1": {Host: "a"}, "GPU-2": {Host: "a", TotalMemoryMiB: 8, Reason: "not found on host a"},
			"GPU-3": {Host: "a", TotalMemoryMiB: 8, Reason: "no longer found"},
			"GPU-4": {Host: "b", TotalMemoryMiB: 8, Reason: "no agent"},
		},
		Members: map[string]MemberUsage{
			"job-worker-0":  usage.Members["job-worker-0"],
			"job-worker-1":  {Group: "job", Role: "worker", Host: "b", Reason: "the member is missing"},
			"farm-worker-1": {Group: "farm", Role: "worker", Reason: "the member is missing"},
		},
		Roles: map[string][]string{"job": {"evaluator", "worker"}, "farm": {"worker"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(usage.GPUs) != 1 || len(usage.Members) != 1 {
		t.Error("the original usage has changed")
	}
}

func TestGPUMemory(t *testing.T) {
	process := func(instance string, mib int64) domain.GPUProcess {
		return domain.GPUProcess{Instance: instance, MemoryMiB: &mib}
	}
	on := func(processes ...domain.GPUProcess) domain.GPU {
		return domain.GPU{Processes: append([]domain.GPUProcess{}, processes...)}
	}
	for name, test := range map[string]struct {
		found domain.HostGPUs
		want  float64
	}{
		"on two GPUs, beside another": {
			domain.HostGPUs{GPUs: []domain.GPU{on(process("a", 5), process("b", 7)), on(process("a", 6))}}, 11,
		},
		"on none":      {domain.HostGPUs{GPUs: []domain.GPU{on(process("b", 7)), on()}}, 0},
		"without GPUs": {domain.HostGPUs{}, 0},
		"as much as nobody knows": {
			domain.HostGPUs{GPUs: []domain.GPU{on(domain.GPUProcess{Instance: "a"})}}, math.NaN(),
		},
		"processes nobody knows": {domain.HostGPUs{GPUs: []domain.GPU{{}}}, math.NaN()},
		"GPUs nobody knows":      {domain.HostGPUs{Unknown: "no driver"}, math.NaN()},
	} {
		if diff := cmp.Diff(test.want, GPUMemory("a", test.found), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
