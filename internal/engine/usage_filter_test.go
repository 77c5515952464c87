package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestUsageOnly(t *testing.T) {
	all := Usage{
		Hosts: map[string]HostUsage{"gpu1": {}, "gpu2": {}},
		GPUs:  map[string]GPUUsage{"GPU-1": {Host: "gpu1"}, "GPU-2": {Host: "gpu2"}},
		Members: map[string]MemberUsage{
			"a-ps-0":     {Group: "a", Role: "ps", Host: "gpu1"},
			"a-worker-0": {Group: "a", Role: "worker", Host: "gpu2"},
			"b-worker-0": {Group: "b", Role: "worker"},
		},
		Roles: map[string][]string{"a": {"ps", "worker"}, "b": {"evaluator", "worker"}},
	}
	for name, test := range map[string]struct {
		filter UsageFilter
		want   string
	}{
		"nothing is asked": {
			UsageFilter{},
			"[gpu1 gpu2] [GPU-1 GPU-2] [a-ps-0 a-worker-0 b-worker-0] map[a:[ps worker] b:[evaluator worker]]",
		},
		"a host": {UsageFilter{Hosts: []string{"gpu2"}}, "[gpu2] [GPU-2] [a-worker-0] map[]"},
		"a GPU": {
			UsageFilter{GPUs: []string{"GPU-1"}},
			"[gpu1 gpu2] [GPU-1] [a-ps-0 a-worker-0 b-worker-0] map[a:[ps worker] b:[evaluator worker]]",
		},
		"groups": {
			UsageFilter{Groups: []string{"b", "c"}}, "[gpu1 gpu2] [GPU-1 GPU-2] [b-worker-0] map[b:[evaluator worker]]",
		},
		"a role": {
			UsageFilter{Roles: []string{"worker"}},
			"[gpu1 gpu2] [GPU-1 GPU-2] [a-worker-0 b-worker-0] map[a:[worker] b:[worker]]",
		},
		"a role of a group": {
			UsageFilter{Groups: []string{"a"}, Roles: []string{"worker"}},
			"[gpu1 gpu2] [GPU-1 GPU-2] [a-worker-0] map[a:[worker]]",
		},
		"a member": {
			UsageFilter{Members: []string{"a-ps-0"}}, "[gpu1 gpu2] [GPU-1 GPU-2] [a-ps-0] map[]",
		},
		"a role without members": {
			UsageFilter{Roles: []string{"evaluator"}}, "[gpu1 gpu2] [GPU-1 GPU-2] [] map[b:[evaluator]]",
		},
		"no host":           {UsageFilter{Hosts: []string{}}, "[] [] [] map[]"},
		"what is not there": {UsageFilter{Hosts: []string{"gpu3"}}, "[] [] [] map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			only := all.Only(test.filter)
			got := fmt.Sprint(slices.Sorted(maps.Keys(only.Hosts)), slices.Sorted(maps.Keys(only.GPUs)),
				slices.Sorted(maps.Keys(only.Members)), only.Roles)
			if got != test.want {
				t.Errorf("%s pass, want %s", got, test.want)
			}
		})
	}
}
