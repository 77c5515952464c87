package placement

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestPlaceGPUs(t *testing.T) {
	// square is eight devices in two linked sets of four, interleaved.
	square := func() []domain.Device {
		left, right := linked(gpus("0", "2", "4", "6")...), linked(gpus("1", "3", "5", "7")...)
		all := slices.Concat(left, right)
		slices.SortFunc(all, func(a, b domain.Device) int { return strings.Compare(a.UUID, b.UUID) })
		return all
	}
	exclusive := func(devices map[string][]domain.Device) map[string]domain.GPUPoolDocument {
		return map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{}, devices)}
	}
	slots := func(
		mib int64, strategy domain.Strategy, devices map[string][]domain.Device,
	) map[string]domain.GPUPoolDocument {
		spec := slotted(mib)
		spec.Strategy = strategy
		return map[string]domain.GPUPoolDocument{"p": pooled(spec, devices)}
	}
	foreign := func(rule domain.ForeignProcess, devices map[string][]domain.Device) map[string]domain.GPUPoolDocument {
		return map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{OnForeignProcess: rule}, devices)}
	}
	ab := map[string][]domain.Device{"a": gpus("a0", "a1"), "b": gpus("b0", "b1")}
	busy := func(uuids ...string) map[string]DeviceState {
		states := map[string]DeviceState{}
		for _, uuid := range uuids {
			states[uuid] = DeviceState{Busy: "python (process 4711)"}
		}
		return states
	}
	lost := func(uuids ...string) map[string]DeviceState {
		states := map[string]DeviceState{}
		for _, uuid := range uuids {
			states[uuid] = DeviceState{Lost: "fallen off the bus (XID 79)"}
		}
		return states
	}

	for _, tc := range []struct {
		name   string
		hosts  map[string]domain.Host
		pools  map[string]domain.GPUPoolDocument
		states map[string]DeviceState
		roles  map[string]role
		// before are roles that were different before, current what members have, and staying the members that keep
		// lost devices.
		before  map[string]domain.Role
		current map[string]string
		staying []string
		others  map[string]domain.GroupDocument
		want    map[string]string
		// warnings are parts of the warnings.
		warnings []string
	}{
		{
			name:  "each member gets devices of its own, on the host that the role's strategy prefers",
			pools: exclusive(ab),
			roles: map[string]role{"w": {onGPUs(1, 0), 3}},
			want:  map[string]string{"m-w-0": "a: a0", "m-w-1": "b: b0", "m-w-2": "a: a1"},
		},
		{
			name:  "pack fills a host's devices before the next host's",
			pools: exclusive(ab),
			roles: map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{Strategy: domain.Pack}), 3}},
			want:  map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1", "m-w-2": "b: b0"},
		},
		{
			name:  "several devices of one host",
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0"), "b": gpus("b0", "b1")}),
			roles: map[string]role{"w": {onGPUs(2, 0), 1}},
			want:  map[string]string{"m-w-0": "b: b0,b1"},
		},
		{
			name:  "members without GPUs go anywhere, and get none",
			pools: exclusive(map[string][]domain.Device{"b": gpus("b0")}),
			roles: map[string]role{"ps": {n: 1}, "w": {onGPUs(1, 0), 1}},
			want:  map[string]string{"m-ps-0": "a", "m-w-0": "b: b0"},
		},
		{
			name: "capacity, labels and closed devices still count",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(1, 4096), "ok=1"), "b": host("b", capacity(4, 4096)),
				"c": host("c", capacity(4, 4096), "ok=1"), "d": host("d", capacity(4, 4096), "ok=1"),
			},
			pools: exclusive(map[string][]domain.Device{
				"a": gpus("a0"), "b": gpus("b0"), "c": gpus("c0"), "d": gpus("d0"),
			}),
			roles: map[string]role{"w": {
				requesting(placedOn(onGPUs(1, 0), domain.Placement{Labels: map[string]string{"ok": "1"}}),
					requests(2, 0)),
				1,
			}},
			states: map[string]DeviceState{
				"c0": {Closed: "nothing is known of the GPUs of host c"},
			},
			want: map[string]string{"m-w-0": "d: d0"},
		},
		{
			name:  "one per host, on hosts that have devices",
			hosts: plainHosts("a", "b", "c"),
			pools: exclusive(map[string][]domain.Device{"b": gpus("b0", "b1"), "c": gpus("c0", "c1")}),
			roles: map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{Strategy: domain.OnePerHost}), 2}},
			want:  map[string]string{"m-w-0": "b: b0", "m-w-1": "c: c0"},
		},
		{
			name:  "devices of other groups are theirs, whatever pools they name",
			pools: exclusive(ab),
			roles: map[string]role{"w": {onGPUs(1, 0), 2}},
			others: map[string]domain.GroupDocument{
				"x": otherOnGPUs("x", onGPUs(1, 0), "a: a0"),
				"y": otherOnGPUs("y", domain.Role{GPUs: &domain.GPURequest{Pool: "gone"}}, "b: b1"),
			},
			want: map[string]string{"m-w-0": "a: a1", "m-w-1": "b: b0"},
		},
		{
			name: "hosts that are one machine do not have its devices twice",
			hosts: map[string]domain.Host{
				"a": host("127.0.0.1", capacity(4, 4096)), "b": host("127.0.0.1", capacity(4, 4096)),
			},
			pools: exclusive(map[string][]domain.Device{"a": gpus("0", "1"), "b": gpus("0", "1")}),
			roles: map[string]role{"w": {onGPUs(1, 0), 2}},
			want:  map[string]string{"m-w-0": "a: 0", "m-w-1": "b: 1"},
		},
		{
			name: "memory is asked of an exclusive device, too",
			pools: exclusive(map[string][]domain.Device{
				"a": {sized("a0", 16_000), sized("a1", 32_000)}, "b": gpus("b0", "b1"),
			}),
			roles: map[string]role{"w": {onGPUs(1, 20_000), 1}},
			want:  map[string]string{"m-w-0": "a: a1"},
		},

		{
			name:  "slots are shared, spread over the devices with the most of them",
			hosts: plainHosts("a"),
			pools: slots(4000, "", map[string][]domain.Device{"a": {sized("a0", 8000), sized("a1", 16_000)}}),
			roles: map[string]role{"w": {onGPUs(1, 0), 6}},
			want: map[string]string{
				"m-w-0": "a: a1", "m-w-1": "a: a1", "m-w-2": "a: a0", "m-w-3": "a: a1", "m-w-4": "a: a0",
				"m-w-5": "a: a1",
			},
		},
		{
			name:  "slots are shared, packed onto the devices with the least of them that hold a member",
			hosts: plainHosts("a"),
			pools: slots(4000, domain.Pack, map[string][]domain.Device{"a": {sized("a0", 16_000), sized("a1", 8000)}}),
			roles: map[string]role{"w": {onGPUs(1, 0), 3}, "x": {onGPUs(1, 9000), 1}},
			want:  map[string]string{"m-x-0": "a: a0", "m-w-0": "a: a0", "m-w-1": "a: a1", "m-w-2": "a: a1"},
		},
		{
			name:  "what others hold follows from the request of their role",
			hosts: plainHosts("a"),
			pools: slots(4000, domain.Pack, map[string][]domain.Device{"a": gpus("a0", "a1")}),
			roles: map[string]role{"w": {onGPUs(1, 0), 3}},
			others: map[string]domain.GroupDocument{
				"x": otherOnGPUs("x", onGPUs(2, 5000), "a: a0,a1"), "y": otherOnGPUs("y", onGPUs(1, 0), "a: a0"),
			},
			want: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1", "m-w-2": "a: a1"},
		},
		{
			name:  "a device that another pool shares, though it should not, is not had twice",
			hosts: plainHosts("a"),
			pools: map[string]domain.GPUPoolDocument{
				"p": pooled(domain.GPUPool{}, map[string][]domain.Device{"a": gpus("a0", "a1")}),
				"q": pooled(slotted(4000), map[string][]domain.Device{"a": gpus("a0")}),
			},
			roles: map[string]role{"w": {onGPUs(1, 0), 1}},
			others: map[string]domain.GroupDocument{
				"x": otherOnGPUs("x", domain.Role{GPUs: &domain.GPURequest{Pool: "q"}}, "a: a0"),
			},
			want: map[string]string{"m-w-0": "a: a1"},
		},

		{
			name:  "several devices are linked ones",
			hosts: plainHosts("a"),
			pools: exclusive(map[string][]domain.Device{"a": square()}),
			roles: map[string]role{"w": {onGPUs(3, 0), 2}},
			want:  map[string]string{"m-w-0": "a: 0,2,4", "m-w-1": "a: 1,3,5"},
		},
		{
			name:   "several devices are linked as far as they can be",
			hosts:  plainHosts("a"),
			pools:  exclusive(map[string][]domain.Device{"a": square()}),
			roles:  map[string]role{"w": {onGPUs(4, 0), 1}},
			others: map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(1, 0), "a: 0", "a: 3")},
			want:   map[string]string{"m-w-0": "a: 1,2,4,6"},
		},
		{
			name:  "a chain of links will do",
			hosts: plainHosts("a"),
			pools: exclusive(map[string][]domain.Device{"a": {
				{UUID: "0"}, {UUID: "1", Links: []string{"3"}}, {UUID: "2", Links: []string{"3"}},
				{UUID: "3", Links: []string{"1", "2"}},
			}}),
			roles: map[string]role{"w": {onGPUs(3, 0), 1}},
			want:  map[string]string{"m-w-0": "a: 1,2,3"},
		},
		{
			name:  "without links, several devices are on one NUMA node",
			hosts: plainHosts("a"),
			pools: exclusive(map[string][]domain.Device{
				"a": slices.Concat(onNode(0, gpus("0")...), onNode(1, gpus("1", "2")...), onNode(0, gpus("3")...)),
			}),
			roles: map[string]role{"w": {onGPUs(2, 0), 2}},
			want:  map[string]string{"m-w-0": "a: 0,3", "m-w-1": "a: 1,2"},
		},
		{
			name:  "links count more than nodes, and both more than free slots",
			hosts: plainHosts("a"),
			pools: slots(4000, "", map[string][]domain.Device{"a": slices.Concat(
				onNode(0, sized("0", 64_000), sized("1", 64_000)), onNode(1, sized("2", 64_000)),
				linked(onNode(0, sized("3", 16_000))[0], onNode(1, sized("4", 16_000))[0]),
			)}),
			roles: map[string]role{"w": {onGPUs(2, 0), 1}},
			want:  map[string]string{"m-w-0": "a: 3,4"},
		},

		{
			name:  "of hosts, that one is chosen where several devices are linked",
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1")...)}),
			roles: map[string]role{"w": {onGPUs(2, 0), 1}},
			want:  map[string]string{"m-w-0": "b: b0,b1"},
		},
		{
			name:   "of hosts, that one is chosen where those that are left are linked",
			pools:  exclusive(map[string][]domain.Device{"a": square(), "b": onNode(0, gpus("b0", "b1", "b2")...)}),
			roles:  map[string]role{"w": {onGPUs(3, 0), 1}},
			others: map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(2, 0), "a: 0,2", "a: 1,3")},
			want:   map[string]string{"m-w-0": "a: 4,5,6"},
		},
		{
			name: "of hosts without links, that one is chosen where several devices are on one NUMA node",
			pools: exclusive(map[string][]domain.Device{
				"a": slices.Concat(onNode(0, gpus("a0")...), onNode(1, gpus("a1")...)),
				"b": onNode(1, gpus("b0", "b1")...),
			}),
			roles: map[string]role{"w": {onGPUs(2, 0), 1}},
			want:  map[string]string{"m-w-0": "b: b0,b1"},
		},
		{
			name:  "a host with linked devices is chosen, though others are less in use",
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1")...)}),
			roles: map[string]role{
				"ps": {placedOn(domain.Role{}, domain.Placement{Hosts: []string{"b"}}), 2}, "w": {onGPUs(2, 0), 1},
			},
			want: map[string]string{"m-ps-0": "b", "m-ps-1": "b", "m-w-0": "b: b0,b1"},
		},
		{
			name: "the role's strategy decides before what is linked: spread",
			pools: exclusive(map[string][]domain.Device{
				"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1", "b2", "b3")...),
			}),
			roles: map[string]role{"w": {onGPUs(2, 0), 2}},
			want:  map[string]string{"m-w-0": "b: b0,b1", "m-w-1": "a: a0,a1"},
		},
		{
			name: "the role's strategy decides before what is linked: pack",
			pools: exclusive(map[string][]domain.Device{
				"a": gpus("a0", "a1", "a2"), "b": linked(gpus("b0", "b1")...),
			}),
			roles:  map[string]role{"w": {placedOn(onGPUs(2, 0), domain.Placement{Strategy: domain.Pack}), 1}},
			others: map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(1, 0), "a: a0")},
			want:   map[string]string{"m-w-0": "a: a1,a2"},
		},
		{
			name:  "where nothing else distinguishes hosts, pack begins where several devices are linked",
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1")...)}),
			roles: map[string]role{"w": {placedOn(onGPUs(2, 0), domain.Placement{Strategy: domain.Pack}), 2}},
			want:  map[string]string{"m-w-0": "b: b0,b1", "m-w-1": "a: a0,a1"},
		},
		{
			name:  "links do not matter to members with one device each",
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1")...)}),
			roles: map[string]role{"w": {onGPUs(1, 0), 1}},
			want:  map[string]string{"m-w-0": "a: a0"},
		},
		{
			name:  "where roles have to leave room for each other, links decide among what is left",
			hosts: plainHosts("a", "b", "c"),
			pools: exclusive(map[string][]domain.Device{
				"a": gpus("a0", "a1"), "b": linked(gpus("b0", "b1")...), "c": linked(gpus("c0", "c1")...),
			}),
			roles: map[string]role{
				"u": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"a", "b"}}), 1},
				"v": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"b", "c"}}), 1},
				"w": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"a", "c"}}), 1},
			},
			want: map[string]string{"m-u-0": "b: b0,b1", "m-v-0": "c: c0,c1", "m-w-0": "a: a0,a1"},
		},

		{
			name:    "members keep their devices, though others would be chosen, and in their order",
			pools:   exclusive(map[string][]domain.Device{"a": square(), "b": gpus("b0", "b1")}),
			roles:   map[string]role{"w": {onGPUs(2, 0), 2}},
			current: map[string]string{"m-w-0": "b: b1,b0", "m-w-1": "a: 3,0"},
			want:    map[string]string{"m-w-0": "b: b1,b0", "m-w-1": "a: 3,0"},
		},
		{
			name:  "members keep busy and closed devices",
			pools: exclusive(ab),
			states: map[string]DeviceState{
				"a1": {Busy: "python (process 4711)"}, "b1": {Closed: "nothing is known of it"},
			},
			roles:   map[string]role{"w": {onGPUs(1, 0), 2}},
			current: map[string]string{"m-w-0": "a: a1", "m-w-1": "b: b1"},
			want:    map[string]string{"m-w-0": "a: a1", "m-w-1": "b: b1"},
		},
		{
			name:    "new members take nothing from those that stay",
			hosts:   plainHosts("a"),
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a1", "a2")}),
			roles:   map[string]role{"v": {onGPUs(1, 0), 1}, "w": {onGPUs(1, 0), 2}},
			current: map[string]string{"m-w-1": "a: a0"},
			want:    map[string]string{"m-v-0": "a: a1", "m-w-0": "a: a2", "m-w-1": "a: a0"},
		},
		{
			name:    "a role that gets GPUs stays on a host that has them",
			hosts:   plainHosts("a", "b", "c"),
			pools:   exclusive(map[string][]domain.Device{"b": gpus("b0"), "c": gpus("c0", "c1")}),
			roles:   map[string]role{"w": {onGPUs(1, 0), 3}},
			before:  map[string]domain.Role{"w": {}},
			current: map[string]string{"m-w-0": "a", "m-w-1": "c", "m-w-2": "b"},
			want:    map[string]string{"m-w-0": "c: c1", "m-w-1": "c: c0", "m-w-2": "b: b0"},
		},
		{
			name:    "a role without GPUs by now has none",
			pools:   exclusive(ab),
			roles:   map[string]role{"v": {onGPUs(2, 0), 2}, "w": {n: 1}},
			before:  map[string]domain.Role{"w": onGPUs(1, 0)},
			current: map[string]string{"m-w-0": "a: a0"},
			want:    map[string]string{"m-v-0": "b: b0,b1", "m-v-1": "a: a0,a1", "m-w-0": "a"},
		},
		{
			name: "a role of another pool keeps no devices",
			pools: map[string]domain.GPUPoolDocument{
				"p": pooled(domain.GPUPool{}, map[string][]domain.Device{"a": gpus("a1")}),
				"q": pooled(domain.GPUPool{}, map[string][]domain.Device{"a": gpus("a0"), "b": gpus("b0")}),
			},
			roles:   map[string]role{"w": {onGPUs(1, 0), 1}},
			before:  map[string]domain.Role{"w": {GPUs: &domain.GPURequest{Pool: "q"}}},
			current: map[string]string{"m-w-0": "a: a0"},
			want:    map[string]string{"m-w-0": "a: a1"},
		},
		{
			name:    "a count that grew adds devices on the same host, to a member that has one before a new one",
			hosts:   plainHosts("a"),
			pools:   exclusive(map[string][]domain.Device{"a": square()}),
			roles:   map[string]role{"w": {onGPUs(2, 0), 3}},
			before:  map[string]domain.Role{"w": onGPUs(1, 0)},
			current: map[string]string{"m-w-1": "a: 3", "m-w-2": "a: 0"},
			want:    map[string]string{"m-w-0": "a: 4,6", "m-w-1": "a: 3,1", "m-w-2": "a: 0,2"},
		},
		{
			name:    "a count that grew beyond the host moves the member",
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a1"), "b": gpus("b0", "b1", "b2")}),
			roles:   map[string]role{"w": {onGPUs(3, 0), 1}},
			before:  map[string]domain.Role{"w": onGPUs(2, 0)},
			current: map[string]string{"m-w-0": "a: a0,a1"},
			want:    map[string]string{"m-w-0": "b: b0,b1,b2"},
		},
		{
			name:    "a count that grew moves the second of two members of a host",
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a1", "a2"), "b": gpus("b0", "b1")}),
			roles:   map[string]role{"w": {onGPUs(2, 0), 2}},
			before:  map[string]domain.Role{"w": onGPUs(1, 0)},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1"},
			want:    map[string]string{"m-w-0": "a: a0,a2", "m-w-1": "b: b0,b1"},
		},
		{
			name:    "a count that shrank leaves the member the devices that are linked",
			hosts:   plainHosts("a"),
			pools:   exclusive(map[string][]domain.Device{"a": square()}),
			roles:   map[string]role{"w": {onGPUs(2, 0), 1}},
			before:  map[string]domain.Role{"w": onGPUs(3, 0)},
			current: map[string]string{"m-w-0": "a: 5,0,1"},
			want:    map[string]string{"m-w-0": "a: 5,1"},
		},
		{
			name:    "a device that left the pool is replaced on the same host, and the others are kept",
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a2", "a3"), "b": gpus("b0", "b1")}),
			roles:   map[string]role{"w": {onGPUs(2, 0), 1}},
			current: map[string]string{"m-w-0": "a: a1,a2"},
			want:    map[string]string{"m-w-0": "a: a2,a0"},
		},
		{
			name:    "a host whose devices left the pool is left",
			pools:   exclusive(map[string][]domain.Device{"b": gpus("b0", "b1")}),
			roles:   map[string]role{"w": {onGPUs(1, 0), 1}},
			current: map[string]string{"m-w-0": "a: a1"},
			want:    map[string]string{"m-w-0": "b: b0"},
		},
		{
			name:    "a lost device is replaced by another of its host",
			pools:   exclusive(ab),
			states:  lost("a0"),
			roles:   map[string]role{"w": {onGPUs(1, 0), 1}},
			current: map[string]string{"m-w-0": "a: a0"},
			want:    map[string]string{"m-w-0": "a: a1"},
		},
		{
			name:    "a lost device is replaced by one of another host where its own has none",
			pools:   exclusive(ab),
			states:  lost("a0"),
			roles:   map[string]role{"w": {onGPUs(1, 0), 2}},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1"},
			want:    map[string]string{"m-w-0": "b: b0", "m-w-1": "a: a1"},
		},
		{
			name:    "a lost device is kept by a member that stays, and given to no other",
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a1", "a2"), "b": gpus("b0")}),
			states:  lost("a0", "a1"),
			roles:   map[string]role{"w": {onGPUs(1, 0), 3}},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1"},
			staying: []string{"m-w-0"},
			want:    map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a2", "m-w-2": "b: b0"},
		},
		{
			name:    "of a lost device that is shared, some stay and others leave",
			pools:   slots(4000, "", map[string][]domain.Device{"a": {sized("a0", 12_000), sized("a1", 4200)}}),
			states:  lost("a0"),
			roles:   map[string]role{"w": {onGPUs(1, 0), 2}},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a0"},
			staying: []string{"m-w-1"},
			want:    map[string]string{"m-w-0": "a: a1", "m-w-1": "a: a0"},
		},
		{
			name: "beside a member that stays on a lost device, others make room where that is the only way",
			pools: exclusive(map[string][]domain.Device{
				"a": gpus("a0", "a1"), "b": gpus("b0", "b1"), "c": gpus("c0"),
			}),
			hosts:   plainHosts("a", "b", "c"),
			states:  lost("c0"),
			roles:   map[string]role{"v": {onGPUs(1, 0), 3}, "w": {onGPUs(2, 0), 1}},
			current: map[string]string{"m-v-0": "a: a0", "m-v-1": "b: b0", "m-v-2": "c: c0"},
			staying: []string{"m-v-2"},
			want:    map[string]string{"m-v-0": "b: b1", "m-v-1": "b: b0", "m-v-2": "c: c0", "m-w-0": "a: a0,a1"},
		},
		{
			name:   "a member that leaves for a lost device leaves the port that it publishes, too",
			pools:  exclusive(ab),
			states: lost("a0", "a1"),
			roles: map[string]role{
				"w": {publishingOnGPU("8080/tcp"), 1},
				"x": {placedOn(publishing("8080/tcp"), domain.Placement{Hosts: []string{"a"}}), 1},
			},
			current: map[string]string{"m-w-0": "a: a0"},
			want:    map[string]string{"m-w-0": "b: b0", "m-x-0": "a"},
		},
		{
			name:    "a device that another group has by now is left to it",
			pools:   exclusive(ab),
			roles:   map[string]role{"w": {onGPUs(1, 0), 1}},
			current: map[string]string{"m-w-0": "a: a0"},
			others:  map[string]domain.GroupDocument{"x": otherOnGPUs("x", onGPUs(1, 0), "a: a0")},
			want:    map[string]string{"m-w-0": "a: a1"},
		},
		{
			name:    "members that need more slots leave a device that has no room for all of them",
			hosts:   plainHosts("a"),
			pools:   slots(4000, "", map[string][]domain.Device{"a": gpus("a0", "a1")}),
			roles:   map[string]role{"w": {onGPUs(1, 8000), 3}},
			before:  map[string]domain.Role{"w": onGPUs(1, 4000)},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a0", "m-w-2": "a: a0"},
			want:    map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a0", "m-w-2": "a: a1"},
		},
		{
			name:    "members leave devices whose slots became fewer",
			pools:   slots(8000, "", ab),
			roles:   map[string]role{"w": {onGPUs(1, 0), 3}},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a0", "m-w-2": "a: a0"},
			want:    map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a0", "m-w-2": "a: a1"},
		},
		{
			name:    "a new member gets a device that nobody had before one whose member goes",
			hosts:   plainHosts("a"),
			pools:   exclusive(map[string][]domain.Device{"a": gpus("a0", "a1", "a2")}),
			roles:   map[string]role{"v": {onGPUs(1, 0), 1}, "w": {onGPUs(1, 0), 1}},
			before:  map[string]domain.Role{"w": onGPUs(1, 0)},
			current: map[string]string{"m-w-0": "a: a1", "m-w-1": "a: a0"},
			want:    map[string]string{"m-v-0": "a: a2", "m-w-0": "a: a1"},
		},
		{
			name:  "where members make room, those that can stay keep their devices",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0", "a1", "a2"), "b": gpus("b0", "b1")}),
			roles: map[string]role{
				"v": {requesting(onGPUs(1, 0), requests(3, 0)), 2}, "w": {requesting(onGPUs(1, 0), requests(1, 0)), 2},
			},
			current: map[string]string{"m-w-0": "a: a0", "m-w-1": "a: a1"},
			want:    map[string]string{"m-v-0": "a: a2", "m-v-1": "b: b0", "m-w-0": "a: a0", "m-w-1": "b: b1"},
		},

		{
			name:   "avoid gives no busy device, by default",
			pools:  exclusive(ab),
			states: busy("a0", "b0", "b1"),
			roles:  map[string]role{"w": {onGPUs(1, 0), 1}},
			want:   map[string]string{"m-w-0": "a: a1"},
		},
		{
			name:   "warn gives busy devices last, and says so",
			pools:  foreign(domain.ForeignWarn, ab),
			states: busy("a0", "b0", "b1"),
			roles:  map[string]role{"w": {onGPUs(1, 0), 3}},
			want:   map[string]string{"m-w-0": "a: a1", "m-w-1": "b: b0", "m-w-2": "a: a0"},
			warnings: []string{
				"m-w-1 gets b0 of host b, used by python (process 4711); m-w-2 gets a0 of host a, used by python (process 4711)",
			},
		},
		{
			name:     "warn prefers devices that nobody else uses to linked ones",
			hosts:    plainHosts("a"),
			pools:    foreign(domain.ForeignWarn, map[string][]domain.Device{"a": square()}),
			states:   busy("0", "2", "4", "6", "5", "7"),
			roles:    map[string]role{"w": {onGPUs(3, 0), 1}},
			want:     map[string]string{"m-w-0": "a: 1,3,5"},
			warnings: []string{"m-w-0 gets 5 of host a"},
		},
		{
			name:    "warn does not report devices that members have",
			pools:   foreign(domain.ForeignWarn, ab),
			states:  busy("a0"),
			roles:   map[string]role{"w": {onGPUs(1, 0), 1}},
			current: map[string]string{"m-w-0": "a: a0"},
			want:    map[string]string{"m-w-0": "a: a0"},
		},
		{
			name:   "ignore gives busy devices as if nobody used them",
			pools:  foreign(domain.ForeignIgnore, ab),
			states: busy("a0", "b0"),
			roles:  map[string]role{"w": {onGPUs(1, 0), 2}},
			want:   map[string]string{"m-w-0": "a: a0", "m-w-1": "b: b0"},
		},

		{
			name:  "large requests come first",
			pools: exclusive(ab),
			roles: map[string]role{"v": {onGPUs(1, 0), 2}, "w": {onGPUs(2, 0), 1}},
			want:  map[string]string{"m-v-0": "b: b0", "m-v-1": "b: b1", "m-w-0": "a: a0,a1"},
		},
		{
			name:    "members make room for a larger one where that is the only way",
			pools:   exclusive(ab),
			roles:   map[string]role{"v": {onGPUs(1, 0), 2}, "w": {onGPUs(2, 0), 1}},
			current: map[string]string{"m-v-0": "a: a0", "m-v-1": "b: b0"},
			want:    map[string]string{"m-v-0": "b: b1", "m-v-1": "b: b0", "m-w-0": "a: a0,a1"},
		},
		{
			name:  "members of several sizes fill devices to the last slot",
			hosts: plainHosts("a"),
			pools: slots(1000, domain.Pack, map[string][]domain.Device{"a": {sized("0", 10_000), sized("1", 10_000)}}),
			roles: map[string]role{"four": {onGPUs(1, 4000), 2}, "three": {onGPUs(1, 3000), 4}},
			want: map[string]string{
				"m-four-0": "a: 0", "m-three-0": "a: 0", "m-three-1": "a: 0", "m-four-1": "a: 1", "m-three-2": "a: 1",
				"m-three-3": "a: 1",
			},
		},
		{
			name:  "roles that share some of their hosts leave each other the right ones",
			hosts: plainHosts("a", "b", "c"),
			pools: exclusive(map[string][]domain.Device{"a": gpus("a0"), "b": gpus("b0"), "c": gpus("c0")}),
			roles: map[string]role{
				"u": {placedOn(onGPUs(1, 0), domain.Placement{Hosts: []string{"a", "b"}}), 1},
				"v": {placedOn(onGPUs(1, 0), domain.Placement{Hosts: []string{"b", "c"}}), 1},
				"w": {placedOn(onGPUs(1, 0), domain.Placement{Hosts: []string{"a", "b"}}), 1},
			},
			want: map[string]string{"m-u-0": "a: a0", "m-v-0": "c: c0", "m-w-0": "b: b0"},
		},
		{
			name:  "and so do roles of several devices, beside one that stays and one that publishes a port",
			hosts: plainHosts("a", "b", "c", "d"),
			pools: foreign(domain.ForeignWarn, map[string][]domain.Device{
				"a": gpus("a0", "a1"), "b": gpus("b0", "b1"), "c": gpus("c0", "c1"), "d": gpus("d0"),
			}),
			roles: map[string]role{
				"u": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"a", "b"}}), 1},
				"v": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"b", "c"}}), 1},
				"w": {placedOn(onGPUs(2, 0), domain.Placement{Hosts: []string{"a", "b"}}), 1},
				"x": {placedOn(onGPUs(1, 0), domain.Placement{Hosts: []string{"c", "d"}}), 1},
				"y": {placedOn(publishing("8080/tcp"), domain.Placement{Hosts: []string{"a", "b"}}), 2},
			},
			states:  busy("a1", "b1"),
			current: map[string]string{"m-v-0": "b: b0,b1", "m-x-0": "d: d0"},
			want: map[string]string{
				"m-u-0": "a: a0,a1", "m-v-0": "c: c0,c1", "m-w-0": "b: b0,b1", "m-x-0": "d: d0", "m-y-0": "a",
				"m-y-1": "b",
			},
			warnings: []string{"m-u-0 gets a1 of host a, used by python", "m-w-0 gets b1 of host b"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hosts := tc.hosts
			if hosts == nil {
				hosts = plainHosts("a", "b")
			}
			in := input(hosts, tc.roles)
			in.Pools, in.Devices, in.Current = tc.pools, tc.states, assigned(tc.current)
			in.Staying = map[string]bool{}
			for _, member := range tc.staying {
				in.Staying[member] = true
			}
			in.Groups = map[string]domain.GroupDocument{}
			maps.Copy(in.Groups, tc.others)
			if tc.current != nil {
				spec := domain.Group{Name: "m", Roles: maps.Clone(in.Group.Roles)}
				maps.Copy(spec.Roles, tc.before)
				in.Groups["m"] = domain.GroupDocument{Spec: spec, Assignments: in.Current}
			}
			got, ps := Place(in)
			if err := ps.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
			if len(ps) != len(tc.warnings) {
				t.Fatalf("%d warnings, want %d: %v", len(ps), len(tc.warnings), ps)
			}
			for i, part := range tc.warnings {
				if !strings.Contains(ps[i].Detail, part) || !ps[i].Warning {
					t.Errorf("warning %d lacks %q:\n%v", i, part, ps[i])
				}
			}

			in.Current = got
			in.Groups["m"] = domain.GroupDocument{Spec: in.Group, Assignments: got}
			again, ps := Place(in)
			if len(ps) > 0 {
				t.Fatalf("placing again: %v", ps)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("not stable:\n%s", diff)
			}
		})
	}
}
