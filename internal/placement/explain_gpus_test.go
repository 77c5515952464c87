package placement

import (
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestPlaceExplainsGPUs(t *testing.T) {
	const first, second, third = "GPU-4fa6a2a8-1a3c-4b1e-9f0e-2c7d8e5b6a91", "GPU-5a17c3d2-77f0-4c51-8a0b-1f6f0f1f2b3c", "GPU-6b20aa31-0d4e-4a55-b7be-77c0c43f1d2e"
	exclusive := func(devices map[string][]domain.Device) map[string]domain.GPUPoolDocument {
		return map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{}, devices)}
	}
	// a40 divides an A40 into 37 slots, with the default reserve.
	a40 := func(uuids ...string) map[string]domain.GPUPoolDocument {
		var devices []domain.Device
		for _, uuid := range uuids {
			devices = append(devices, sized(uuid, 46_068))
		}
		return map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{
			Sharing: domain.Slots, MemoryMiBPerSlot: 1199,
		}, map[string][]domain.Device{"a": devices})}
	}
	numbered := func(n int) []domain.Device {
		var uuids []string
		for i := range n {
			uuids = append(uuids, fmt.Sprintf("GPU-%08d-0000", i))
		}
		return gpus(uuids...)
	}
	all := func(members int, text string) []string {
		texts := make([]string, members)
		for i := range texts {
			texts[i] = text
		}
		return texts
	}

	for _, tc := range []struct {
		name   string
		hosts  map[string]domain.Host
		pools  map[string]domain.GPUPoolDocument
		states map[string]DeviceState
		roles  map[string]role
		others map[string]domain.GroupDocument
		// current is what members have, and closed are the hosts that take no new ones.
		current map[string]string
		closed  []string
		want    []wanted
	}{
		{
			name:  "no pool of the name, for roles without members, too",
			pools: map[string]domain.GPUPoolDocument{"v100": {}, "a40": {}},
			roles: map[string]role{"v": {onGPUs(1, 0), 0}, "w": {onGPUs(1, 0), 1}},
			want: []wanted{
				{`roles["v"].gpus.pool`, []string{`cluster "lab" has no GPU pool "p"; its pools are a40, v100`}},
				{`roles["w"].gpus.pool`, nil},
			},
		},
		{
			name:  "no pool at all",
			roles: map[string]role{"w": {onGPUs(1, 0), 1}},
			want: []wanted{{
				`roles["w"].gpus.pool`,
				[]string{`cluster "lab" has no GPU pool "p", nor any other; declare a trainyard_gpu_pool`},
			}},
		},
		{
			name: "memory beyond any exclusive device",
			pools: exclusive(map[string][]domain.Device{
				"a": {sized(first, 16_160), sized(second, 32_510)}, "b": {sized(third, 81_920)},
			}),
			roles: map[string]role{"w": {placedOn(onGPUs(2, 40_000), domain.Placement{Hosts: []string{"a"}}), 1}},
			want: []wanted{{`roles["w"].gpus.memory_mib`, []string{
				"Request beyond any device",
				`asks for 2 GPUs of pool "p" with 40000 MiB or more, and the largest on the hosts that it may use, GPU-5a17c3d2, has 32510 MiB; lower memory_mib`,
			}}},
		},
		{
			name:  "memory beyond the slots of any device",
			pools: a40(first),
			roles: map[string]role{"w": {onGPUs(1, 46_000), 1}},
			want: []wanted{{`roles["w"].gpus.memory_mib`, []string{
				`asks for 39 slots of 1199 MiB on 1 GPU of pool "p" for its 46000 MiB, and the largest on the hosts that it may use, GPU-4fa6a2a8, has 37 slots (46068 MiB, of which 3 % are reserved);`,
			}}},
		},
		{
			name:  "count beyond any host",
			hosts: plainHosts("a", "b", "c"),
			pools: exclusive(map[string][]domain.Device{"a": numbered(4), "b": gpus(first)}),
			roles: map[string]role{"w": {onGPUs(8, 0), 1}},
			want: []wanted{{`roles["w"].gpus.count`, []string{
				"Request beyond any host",
				`asks for 8 GPUs of pool "p", all on one host, and of those that it may use, host a has 4, host b has 1; lower count`,
			}}},
		},
		{
			name:  "count beyond any host, of devices with enough memory",
			pools: exclusive(map[string][]domain.Device{"a": {sized(first, 16_160), sized(second, 32_510)}}),
			roles: map[string]role{"w": {onGPUs(2, 20_000), 1}},
			want: []wanted{{`roles["w"].gpus.count`, []string{
				`2 GPUs of pool "p" with 20000 MiB or more, all on one host, and of those that it may use, host a has 1;`,
			}}},
		},
		{
			name:  "devices on other hosts only",
			pools: exclusive(map[string][]domain.Device{"a": gpus(first)}),
			roles: map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{Hosts: []string{"b"}}), 1}},
			want: []wanted{{`roles["w"].gpus.count`, []string{
				`asks for 1 GPU of pool "p", and the hosts that it may use have 0; the pool's are on a: let the role use those`,
			}}},
		},
		{
			name:  "an empty pool",
			pools: exclusive(nil),
			roles: map[string]role{"w": {onGPUs(1, 0), 1}},
			want: []wanted{{
				`roles["w"].gpus.count`,
				[]string{`asks for 1 GPU of pool "p", and the pool has no devices; add some to it`},
			}},
		},
		{
			name:  "no host with the labels comes before the pool's devices",
			pools: exclusive(nil),
			roles: map[string]role{
				"w": {placedOn(onGPUs(1, 0), domain.Placement{Labels: map[string]string{"gpu": "t4"}}), 1},
			},
			want: []wanted{{`roles["w"].placement.labels`, nil}},
		},
		{
			name:  "held, used, lost and closed devices",
			hosts: plainHosts("a", "b", "c"),
			pools: exclusive(map[string][]domain.Device{
				"a": gpus(first, second), "b": gpus(third, "GPU-70000000-1"),
				"c": gpus("GPU-80000000-1", "GPU-90000000-1"),
			}),
			states: map[string]DeviceState{
				second: {Busy: "python (process 4711)"}, third: {Lost: "fallen off the bus (XID 79)"},
				"GPU-90000000-1": {Closed: "nothing is known of the GPUs of host c"},
			},
			roles:  map[string]role{"w": {onGPUs(1, 0), 3}},
			others: map[string]domain.GroupDocument{"mnist": otherOnGPUs("mnist", onGPUs(1, 0), "a: "+first)},
			want: []wanted{{`roles["w"].gpus`, []string{
				"Not enough GPUs",
				`role "w" has 3 members of 1 GPU of pool "p" each, and only 2 of them fit; cluster "lab" has 3 hosts with GPUs for them: `,
				"host a: 0 of 2 GPUs free, GPU-4fa6a2a8 held by mnist-w-0 of group mnist, GPU-5a17c3d2 used by python (process 4711); ",
				"host b: 1 of 2 GPUs free, GPU-6b20aa31 can't be used: fallen off the bus (XID 79); ",
				"host c: 1 of 2 GPUs free, GPU-90000000 takes no new members: nothing is known of the GPUs of host c; ",
				"; lower replicas, destroy what holds them, stop what uses them, or add devices to the pool",
			}}},
		},
		{
			name:    "what the role's own members have is free for it, and what other roles have is not",
			hosts:   plainHosts("a"),
			pools:   exclusive(map[string][]domain.Device{"a": gpus(first, second, third)}),
			states:  map[string]DeviceState{second: {Busy: "python (process 4711)"}},
			roles:   map[string]role{"v": {onGPUs(1, 0), 1}, "w": {onGPUs(1, 0), 3}},
			current: map[string]string{"m-w-0": "a: " + second},
			want: []wanted{{`roles["w"].gpus`, []string{
				"3 members of 1 GPU", "only 2 of them fit",
				"host a: 2 of 3 GPUs free, GPU-4fa6a2a8 held by m-v-0; lower replicas, stop what uses them, or add",
			}}},
		},
		{
			name:  "one per host",
			pools: exclusive(map[string][]domain.Device{"a": gpus(first)}),
			roles: map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{Strategy: domain.OnePerHost}), 2}},
			want: []wanted{{`roles["w"].placement.strategy`, []string{
				"2 members, at most one per host", `cluster "lab" has 1 host with GPUs for them (a)`,
				"set replicas to 1 or less",
			}}},
		},
		{
			name:   "one per host, with the devices at fault",
			pools:  exclusive(map[string][]domain.Device{"a": gpus(first), "b": gpus(second)}),
			roles:  map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{Strategy: domain.OnePerHost}), 2}},
			others: map[string]domain.GroupDocument{"mnist": otherOnGPUs("mnist", onGPUs(1, 0), "b: "+second)},
			want: []wanted{{`roles["w"].gpus`, []string{
				"2 members of 1 GPU of pool \"p\" each, at most one per host, and only 1 of them fit",
				"host a: 1 of 1 GPU free; host b: 0 of 1 GPU free, GPU-5a17c3d2 held by mnist-w-0 of group mnist",
			}}},
		},
		{
			name:  "37 members share an A40, and the next does not fit",
			hosts: plainHosts("a"),
			pools: a40(first),
			roles: map[string]role{"rl": {onGPUs(1, 0), 38}},
			want: []wanted{{`roles["rl"].gpus`, []string{
				`role "rl" has 38 members of 1 slot of 1199 MiB on 1 GPU of pool "p" each, and only 37 of them fit; cluster "lab" has 1 host with GPUs for them: host a: GPU-4fa6a2a8: 37 of 37 slots free; lower replicas, or add devices to the pool`,
			}}},
		},
		{
			name:  "slots that other groups and roles hold",
			hosts: plainHosts("a"),
			pools: a40(first, second, third),
			states: map[string]DeviceState{
				second: {Busy: "python (process 4711)"},
			},
			roles: map[string]role{"big": {onGPUs(1, 20_000), 1}, "w": {onGPUs(1, 5000), 4}},
			others: map[string]domain.GroupDocument{
				"rl":  otherOnGPUs("rl", onGPUs(1, 0), all(37, "a: "+first)...),
				"rl2": otherOnGPUs("rl2", onGPUs(1, 2000), "a: "+third, "a: "+third),
			},
			want: []wanted{{`roles["w"].gpus`, []string{
				`4 members of 5 slots of 1199 MiB on 1 GPU of pool "p" each, and only 3 of them fit`,
				`host a: GPU-4fa6a2a8: 0 of 37 slots free (37 held by group rl), GPU-5a17c3d2 used by python (process 4711), GPU-6b20aa31: 16 of 37 slots free (17 held by role "big", 4 held by group rl2)`,
			}}},
		},
		{
			name:  "slots of several devices",
			hosts: plainHosts("a"),
			pools: a40(first, second),
			roles: map[string]role{"w": {onGPUs(2, 20_000), 3}},
			want: []wanted{{
				`roles["w"].gpus`,
				[]string{`3 members of 2 GPUs of pool "p" with 17 slots of 1199 MiB each, and only 2 of them fit`},
			}},
		},
		{
			name:  "many devices and hosts are counted, not listed",
			hosts: plainHosts("a", "b", "c", "d", "e", "f", "g"),
			pools: exclusive(map[string][]domain.Device{
				"a": numbered(8), "b": gpus("b"), "c": gpus("c"), "d": gpus("d"), "e": gpus("e"), "f": gpus("f"),
				"g": gpus("g"),
			}),
			roles: map[string]role{"w": {onGPUs(1, 0), 10}},
			others: map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(7,
				0), "a: "+string(domain.NewDeviceSet(
				"GPU-00000000-0000", "GPU-00000001-0000", "GPU-00000002-0000", "GPU-00000003-0000", "GPU-00000004-0000",
				"GPU-00000005-0000", "GPU-00000006-0000",
			)))},
			want: []wanted{{`roles["w"].gpus`, []string{
				"host a: 1 of 8 GPUs free, GPU-00000000 held by x-w-0 of group x",
				"GPU-00000004 held by x-w-0 of group x, and 2 more; host b: 1 of 1 GPU free;",
				"; and 2 more; lower replicas",
			}}},
		},
		{
			name:   "a UUID is given in full where its first characters are another's, too",
			hosts:  plainHosts("a"),
			pools:  exclusive(map[string][]domain.Device{"a": gpus("GPU-4fa6a2a8-1", "GPU-4fa6a2a8-2")}),
			roles:  map[string]role{"w": {onGPUs(1, 0), 2}},
			others: map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(1, 0), "a: GPU-4fa6a2a8-2")},
			want:   []wanted{{`roles["w"].gpus`, []string{"GPU-4fa6a2a8-2 held by x-w-0"}}},
		},
		{
			name:   "a closed host",
			pools:  exclusive(map[string][]domain.Device{"a": gpus(first), "b": gpus(second)}),
			roles:  map[string]role{"w": {onGPUs(1, 0), 2}},
			closed: []string{"b"},
			want: []wanted{{`roles["w"].gpus`, []string{
				"only 1 of them fit",
				"host b: 1 of 1 GPU free, 1 of which take no new members: host b is down; lower replicas",
			}}},
		},
		{
			name: "CPUs at fault, whatever devices hosts without GPUs lack",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096)), "c": host("c", capacity(4, 4096)),
			},
			pools: exclusive(map[string][]domain.Device{"a": gpus(first, second)}),
			roles: map[string]role{"w": {requesting(onGPUs(1, 0), requests(3, 0)), 2}},
			want: []wanted{{`roles["w"].resources.cpus`, []string{
				`only 1 of them fit; cluster "lab" has 1 host with GPUs for them for this role: host a: 4 of 4 CPUs free`,
			}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hosts := tc.hosts
			if hosts == nil {
				hosts = plainHosts("a", "b")
			}
			in := input(hosts, tc.roles)
			in.Pools, in.Devices, in.Groups, in.Current, in.Closed = tc.pools, tc.states, tc.others,
				assigned(tc.current), down(tc.closed...)
			got, ps := Place(in)
			if got != nil {
				t.Errorf("assignments %v beside problems", got)
			}
			checkProblems(t, ps, tc.want)
		})
	}
}

// TestSharedDevice checks that an A40 of 46,068 MiB with slots of 1,199 MiB and a reserve of 3 % takes 37 members.
func TestSharedDevice(t *testing.T) {
	in := input(plainHosts("a"), map[string]role{"rl": {onGPUs(1, 0), 37}})
	in.Pools = map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{
		Sharing: domain.Slots, MemoryMiBPerSlot: 1199,
	}, map[string][]domain.Device{"a": {sized("GPU-1", 46_068)}})}
	got, ps := Place(in)
	if err := ps.Err(); err != nil {
		t.Fatal(err)
	}
	for member, a := range got {
		if a.Host != "a" || a.GPUs != "GPU-1" {
			t.Errorf("%s is on %s with %s", member, a.Host, a.GPUs)
		}
	}
}
