package sweep

import (
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
)

// TestAdmitKeepsOthers has a sweep without room, and others behind it.
func TestAdmitKeepsOthers(t *testing.T) {
	devices := map[string][]domain.Device{"gpu1": a40("GPU-a"), "gpu2": a40("GPU-b")}
	pools := exclusive(devices)
	pools["q"] = domain.GPUPoolDocument{
		Spec: domain.GPUPool{Name: "q"}, Devices: map[string][]domain.Device{"gpu3": a40("GPU-c")},
	}
	pools["both"] = domain.GPUPoolDocument{
		Spec:    domain.GPUPool{Name: "both"},
		Devices: map[string][]domain.Device{"gpu2": a40("GPU-b"), "gpu3": a40("GPU-c")},
	}
	gpus := func(name, pool string, count int) domain.Sweep {
		s := onGPUs(sweepOf(name, 1), 0)
		s.GPUs = &domain.GPURequest{Pool: pool, Count: &count}
		return s
	}
	on := func(s domain.Sweep, hosts ...string) domain.Sweep {
		s.Placement.Hosts = hosts
		return s
	}
	cpus := func(name string, n float64) domain.Sweep {
		s := sweepOf(name, 1)
		s.Resources.CPUs = n
		return s
	}
	// holder returns a group with members in places such as "gpu1 GPU-a", which occupy some CPUs and devices of pool p.
	holder := func(n float64, places ...string) map[string]domain.GroupDocument {
		doc := domain.GroupDocument{
			Spec: domain.Group{Name: "g", Roles: map[string]domain.Role{}}, Assignments: map[string]domain.Assignment{},
		}
		for i, place := range places {
			role := domain.Role{Resources: domain.ResourceRequirements{CPUs: n}}
			at := domain.ParsePlace(place)
			if at.GPUs != "" {
				role.GPUs = &domain.GPURequest{Pool: "p"}
			}
			name := fmt.Sprintf("w%d", i)
			doc.Spec.Roles[name], doc.Assignments[domain.MemberName("g", name, 0)] = role, at
		}
		return map[string]domain.GroupDocument{"g": doc}
	}
	hosts := hostsOf(4, "gpu1", "gpu2", "gpu3")
	const before = `sweep "a" is ahead of it`
	full := holder(0, "gpu1 GPU-a", "gpu2 GPU-b")
	run(t, map[string]testCase{
		"of the same pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: holder(0, "gpu1 GPU-a")},
			queues: []Queue{
				queueOf(func() domain.Sweep { s := gpus("a", "p", 1); s.Runs["r1"] = nil; return s }()),
				queueOf(gpus("b", "p", 1)),
			},
			starts: []string{"a/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"GPU-a"}, "b": {before}},
		},
		"of no pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(cpus("b", 4))},
			starts:  []string{"b/r0 on gpu3"}, waits: map[string][]string{"a": {"held by"}},
		},
		"of another pool": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(gpus("b", "q", 1))},
			starts:  []string{"b/r0 on gpu3 GPU-c"}, waits: map[string][]string{"a": {"held by"}},
		},
		// The free device of the other pool is not one that it waits for, but a run of that pool might take the one
		// that it does.
		"of another pool with the same device": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues:  []Queue{queueOf(gpus("a", "p", 1)), queueOf(gpus("b", "both", 1))},
			waits:   map[string][]string{"a": {"held by"}, "b": {before}},
		},
		"of the same pool on other hosts": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: holder(0, "gpu1 GPU-a")},
			queues:  []Queue{queueOf(on(gpus("a", "p", 1), "gpu1")), queueOf(on(gpus("b", "p", 1), "gpu2"))},
			starts:  []string{"b/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"held by"}},
		},
		"processors": {
			cluster: Cluster{Hosts: hostsOf(4, "h"), Groups: holder(1, "h")},
			queues:  []Queue{queueOf(cpus("a", 4)), queueOf(cpus("b", 1))},
			waits:   map[string][]string{"a": {"3 of 4 CPUs free"}, "b": {before}},
		},
		"processors of other hosts": {
			cluster: Cluster{Hosts: hosts, Groups: holder(1, "gpu1")},
			queues:  []Queue{queueOf(on(cpus("a", 4), "gpu1")), queueOf(on(cpus("b", 4), "gpu2"))},
			starts:  []string{"b/r0 on gpu2"}, waits: map[string][]string{"a": {"CPUs free"}},
		},
		// Its devices are free on one host, and its CPUs on the other: runs without GPUs must not take the CPUs of the
		// first.
		"processors where there are devices": {
			cluster: Cluster{Hosts: hostsOf(4, "gpu1", "gpu2"), Pools: pools,
				Groups: func() map[string]domain.GroupDocument {
					groups := holder(0, "gpu1 GPU-a")
					doc := groups["g"]
					doc.Spec.Roles["x"] = domain.Role{Resources: domain.ResourceRequirements{CPUs: 2}}
					doc.Assignments["g-x-0"] = domain.Assignment{Host: "gpu2"}
					return groups
				}()},
			queues: []Queue{
				queueOf(func() domain.Sweep { s := gpus("a", "p", 1); s.Resources.CPUs = 3; return s }()),
				queueOf(cpus("b", 1)),
			},
			waits: map[string][]string{"a": nil, "b": {before}},
		},
		"one that can't have what it needs": {
			cluster: Cluster{Hosts: hosts, Pools: pools}, queues: []Queue{
				queueOf(cpus("a", 5)), queueOf(gpus("aa", "p", 2)), queueOf(gpus("ab", "gone", 1)),
				queueOf(gpus("b", "p", 1)),
			},
			starts: []string{"b/r0 on gpu1 GPU-a"},
			waits:  map[string][]string{"a": {"5 CPUs"}, "aa": {"2 GPUs"}, "ab": {`no GPU pool "gone"`}},
		},
		"one whose host is away": {
			cluster: Cluster{Hosts: hosts, Closed: map[string]string{"gpu1": "host gpu1 is down"}},
			queues:  []Queue{queueOf(on(cpus("a", 1), "gpu1")), queueOf(cpus("b", 4))},
			starts:  []string{"b/r0 on gpu2"}, waits: map[string][]string{"a": {"host gpu1 is down"}},
		},
		"one whose device is lost": {
			cluster: Cluster{
				Hosts: hosts, Pools: pools,
				Devices: map[string]placement.DeviceState{"GPU-c": {Lost: "fallen off the bus (XID 79)"}},
			},
			queues: []Queue{queueOf(gpus("a", "q", 1)), queueOf(gpus("b", "both", 1))},
			starts: []string{"b/r0 on gpu2 GPU-b"}, waits: map[string][]string{"a": {"XID 79"}},
		},
		"two before it": {
			cluster: Cluster{Hosts: hosts, Pools: pools, Groups: full},
			queues: []Queue{
				queueOf(gpus("a", "p", 1)), queueOf(on(cpus("aa", 4), "gpu1")), queueOf(on(cpus("b", 4), "gpu3")),
				queueOf(on(cpus("c", 1), "gpu1")),
			},
			starts: []string{"aa/r0 on gpu1", "b/r0 on gpu3"},
			waits:  map[string][]string{"a": {"held by"}, "c": {"0 of 4 CPUs free"}},
		},
	})
}
