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
		return MemberUsage{State: domain.StateRunning, CPUs: domain.Instant(&cpus), MemoryMiB: domain.Instant(&memory), SampledAt: at(second)}
	}
	ended := MemberUsage{State: domain.StateCompleted, SampledAt: at(1), Reason: "no process"}
	lost := MemberUsage{State: domain.StateRunning, SampledAt: at(5), Reason: "no agent"}
	for name, test := range map[string]struct {
		members map[string]MemberUsage
		want    MemberUsage
	}{
		"two that run and one that ended": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7), "b": uses(1.5, 20, 3), "c": ended},
			want:    MemberUsage{CPUs: domain.Instant(new(2.0)), MemoryMiB: domain.Instant(new(120.0)), SampledAt: at(3)},
		},
		"one that is not known": {
			members: map[string]MemberUsage{"a": uses(0.5, 100, 7), "b": lost},
			want:    MemberUsage{SampledAt: at(5), Reason: "member b: no agent"},
		},
		"none that runs": {members: map[string]MemberUsage{"c": ended}, want: MemberUsage{Reason: "no member runs"}},
		"none":           {want: MemberUsage{Reason: "no member runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, SumUsage(test.members)); diff != "" {
				t.Errorf("together (-want +got):\n%s", diff)
			}
		})
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
		"on two GPUs, beside another": {domain.HostGPUs{GPUs: []domain.GPU{on(process("a", 5), process("b", 7)), on(process("a", 6))}}, 11},
		"on none":                     {domain.HostGPUs{GPUs: []domain.GPU{on(process("b", 7)), on()}}, 0},
		"without GPUs":                {domain.HostGPUs{}, 0},
		"as much as nobody knows":     {domain.HostGPUs{GPUs: []domain.GPU{on(domain.GPUProcess{Instance: "a"})}}, math.NaN()},
		"processes nobody knows":      {domain.HostGPUs{GPUs: []domain.GPU{{}}}, math.NaN()},
		"GPUs nobody knows":           {domain.HostGPUs{Unknown: "no driver"}, math.NaN()},
	} {
		if diff := cmp.Diff(test.want, GPUMemory("a", test.found), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
