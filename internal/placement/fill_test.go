package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// stays returns the group's own running members: one role with one member for each place, such as "a: x".
func stays(role domain.Role, places ...string) map[string]domain.GroupDocument {
	doc := domain.GroupDocument{
		Spec: domain.Group{Name: "m", Roles: map[string]domain.Role{}}, Assignments: map[string]domain.Assignment{},
	}
	for i, place := range places {
		name := fmt.Sprintf("s%d", i)
		doc.Spec.Roles[name] = role
		maps.Copy(doc.Assignments, assigned(map[string]string{domain.MemberName("m", name, 0): place}))
	}
	return map[string]domain.GroupDocument{"m": doc}
}

func TestFill(t *testing.T) {
	small := map[string]domain.Host{"a": host("a", capacity(2, 1000)), "b": host("b", capacity(1, 1000))}
	one := role{domain.Role{Resources: requests(1, 100)}, 1}
	four := map[string]role{"w1": one, "w2": one, "w3": one, "w4": one}
	card := map[string]domain.GPUPoolDocument{
		"p": pooled(slotted(4000), map[string][]domain.Device{"a": gpus("x", "y")}),
	}
	slot := role{onGPUs(1, 4000), 1}
	gone := onGPUs(1, 0)
	gone.GPUs.Pool = "gone"
	for name, test := range map[string]struct {
		hosts  map[string]domain.Host
		roles  map[string]role
		change func(in *Input)
		gentle bool
		want   map[string]string
		at     string // path of what is short; "" for nothing
		says   []string
	}{
		"all": {
			small, map[string]role{"w1": one, "w2": one}, nil, false, map[string]string{"m-w1-0": "a", "m-w2-0": "b"},
			"", nil,
		},
		"as many as there is room for": {
			small, four, nil, false, map[string]string{"m-w1-0": "a", "m-w2-0": "b", "m-w3-0": "a"},
			`roles["w4"].resources.cpus`, []string{"a run requests 1 CPU", "host a: 0 of 2 CPUs free"},
		},
		"as many of a role": {
			small, map[string]role{"w": {one.Role, 4}}, nil, false,
			map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "a"},
			`roles["w"].resources.cpus`, []string{"a run requests 1 CPU", "host b: 0 of 1 CPU free"},
		},
		"beside what runs": {
			small, four, func(in *Input) { in.Groups = stays(one.Role, "b", "a") }, false,
			map[string]string{"m-w1-0": "a"}, `roles["w2"].resources.cpus`, nil,
		},
		// Running members stay although one host is too small, another is gone, and a pool is gone.
		"beside what would not be placed": {
			small, four, func(in *Input) {
				in.Groups = stays(domain.Role{Resources: requests(8, 0), GPUs: gone.GPUs}, "b: x", "gone: y")
				in.Pools = map[string]domain.GPUPoolDocument{
					"p": pooled(slotted(4000), map[string][]domain.Device{"b": gpus("x")}),
				}
			}, false, map[string]string{"m-w1-0": "a", "m-w2-0": "a"}, `roles["w3"].resources.cpus`, nil,
		},
		"closed hosts": {
			small, four, func(in *Input) { in.Closed = down("a") }, false, map[string]string{"m-w1-0": "b"},
			`roles["w2"].resources.cpus`, []string{"host a is down"},
		},
		"all hosts closed": {
			small, four, func(in *Input) { in.Closed = down("a", "b") }, false, map[string]string{},
			`roles["w1"].placement`, []string{"host a is down", "host b is down"},
		},
		"as many as hosts are to have": {
			small, four, func(in *Input) { in.Most = map[string]int{"a": 1, "b": 0} }, false,
			map[string]string{"m-w1-0": "a"}, `roles["w2"].placement`,
			[]string{"host a has the maximum number of these runs", "host b has the maximum number"},
		},
		"as many as devices are to have": {
			small, map[string]role{"w1": slot, "w2": slot, "w3": slot, "w4": slot}, func(in *Input) {
				in.Pools, in.Most = card, map[string]int{"x": 2, "y": 1}
			}, false, map[string]string{"m-w1-0": "a: x", "m-w2-0": "a: y", "m-w3-0": "a: x"}, `roles["w4"].gpus`,
			[]string{"x takes no new members: it has the maximum number of these runs"},
		},
		"others": {
			small, four, func(in *Input) {
				in.Groups = map[string]domain.GroupDocument{
					"old-1": other(resources(1, 0), domain.Assignment{Host: "a"}, domain.Assignment{Host: "b"}),
				}
			}, false, map[string]string{"m-w1-0": "a"}, `roles["w2"].resources.cpus`, nil,
		},
		"addresses": {
			small, four, func(in *Input) {
				in.Room = 4
				in.Groups = map[string]domain.GroupDocument{
					"old-1": other(domain.Resources{}, domain.Assignment{Host: "a"}, domain.Assignment{Host: "b"}),
				}
			}, false, map[string]string{"m-w1-0": "a", "m-w2-0": "b"}, "roles", []string{"addresses for 4 members"},
		},
		"addresses for what runs": {
			small, four, func(in *Input) { in.Room, in.Groups = 1, stays(domain.Role{}, "b") }, false,
			map[string]string{}, "roles", []string{"1 member"},
		},
		"addresses within a role": {
			small, map[string]role{"w": {domain.Role{}, 4}}, func(in *Input) { in.Room = 3 }, false,
			map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "a"}, "roles", []string{"3 members"},
		},
		"measured memory": {
			small, four, func(in *Input) { in.FreeMiB = map[string]int64{"a": 199, "b": 99} }, false,
			map[string]string{"m-w1-0": "a"}, `roles["w2"].resources.memory_mib`, nil,
		},
		"more measured than there is": {
			small, map[string]role{"w1": {domain.Role{Resources: requests(0, 1001)}, 1}},
			func(in *Input) { in.FreeMiB = map[string]int64{"a": 5000} }, false,
			map[string]string{}, `roles["w1"].resources.memory_mib`, []string{"1001 MiB", "1000 MiB"},
		},

		"slots": {
			plainHosts("a"), map[string]role{"w1": slot, "w2": slot, "w3": slot}, func(in *Input) { in.Pools = card },
			false,
			map[string]string{"m-w1-0": "a: x", "m-w2-0": "a: y", "m-w3-0": "a: x"}, "", nil,
		},
		"gently": {
			plainHosts("a"), map[string]role{"w1": slot, "w2": slot, "w3": slot}, func(in *Input) { in.Pools = card },
			true,
			map[string]string{"m-w1-0": "a: x", "m-w2-0": "a: y"}, `roles["w3"].gpus`,
			[]string{"it has just been given to another run"},
		},
		"gently within a role": {
			plainHosts("a"), map[string]role{"w": {slot.Role, 3}}, func(in *Input) { in.Pools = card }, true,
			map[string]string{"m-w-0": "a: x", "m-w-1": "a: y"}, `roles["w"].gpus`,
			[]string{"it has just been given to another run"},
		},
		"gently beside what runs": {
			plainHosts("a"), map[string]role{"w1": slot, "w2": slot},
			func(in *Input) { in.Pools, in.Groups = card, stays(slot.Role, "a: x", "a: x") }, true,
			map[string]string{"m-w1-0": "a: y", "m-w2-0": "a: x"}, "", nil,
		},
		"slots that are taken": {
			plainHosts("a"), map[string]role{"w1": slot}, func(in *Input) {
				in.Pools, in.Groups = card,
					stays(slot.Role, "a: x", "a: x", "a: x", "a: x", "a: y", "a: y", "a: y", "a: y")
			}, false, map[string]string{}, `roles["w1"].gpus`, []string{"x: 0 of 4 slots free (4 held by group m)"},
		},
		"all of a device whose pool is gone": {
			plainHosts("a"), map[string]role{"w1": slot}, func(in *Input) {
				in.Pools = map[string]domain.GPUPoolDocument{
					"p": pooled(slotted(4000), map[string][]domain.Device{"a": gpus("x")}),
				}
				in.Groups = stays(gone, "a: x")
			}, false, map[string]string{}, `roles["w1"].gpus`, nil,
		},
		"unknown pool": {
			plainHosts("a"), map[string]role{"w1": one, "w2": slot}, nil, false, map[string]string{},
			`roles["w2"].gpus.pool`, []string{`no GPU pool "p"`},
		},
		"unknown host": {
			small, map[string]role{"w1": {domain.Role{Placement: domain.Placement{Hosts: []string{"c"}}}, 1}}, nil,
			false,
			map[string]string{}, `roles["w1"].placement.hosts[0]`, []string{`no host "c"`, "a, b"},
		},
		"no hosts": {nil, four, nil, false, map[string]string{}, "cluster", []string{"no hosts"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(test.hosts, test.roles)
			if test.change != nil {
				test.change(&in)
			}
			got, short := Fill(in, test.gentle)
			if diff := cmp.Diff(test.want, texts(got)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
			if (test.at == "") != (len(short) == 0) || len(short) > 1 {
				t.Fatalf("short: %v", short)
			}
			if test.at == "" {
				return
			}
			if at := short[0].Path.String(); at != test.at {
				t.Errorf("%s is short, want %s: %v", at, test.at, short)
			}
			for _, part := range test.says {
				if !strings.Contains(short[0].Detail, part) {
					t.Errorf("%q does not say %q", short[0].Detail, part)
				}
			}
		})
	}
}

// TestFillPorts checks that ports of running members are not assigned again if members share their hosts' ports.
func TestFillPorts(t *testing.T) {
	in := input(plainHosts("a"), map[string]role{"w1": {domain.Role{}, 1}, "w2": {domain.Role{}, 1}})
	in.SharedAddress, in.BusyPorts = true, map[string][]int{"a": {firstFreePort + 2}}
	in.Groups = stays(domain.Role{}, "a")
	got, short := Fill(in, false)
	want := map[string]domain.Assignment{
		"m-w1-0": {Host: "a", Port: firstFreePort + 1}, "m-w2-0": {Host: "a", Port: firstFreePort + 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(short) > 0 {
		t.Errorf("short: %v; assignments (-want +got):\n%s", short, diff)
	}
}

// TestFillProperties checks that what Fill places has what it needs, that results are reproducible, and that all have a
// place if no problem is returned. Once they run, nothing is left to do.
func TestFillProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if rapid.Bool().Draw(t, "with GPUs") {
			in = drawGPUs(t, 2)
		}
		for name, role := range in.Group.Roles {
			role.Port = nil // runs have none
			in.Group.Roles[name] = role
		}
		// Those that have a place run there; the others are to be placed.
		in.Groups["m"] = domain.GroupDocument{Spec: in.Group, Assignments: in.Current}
		in.Members = slices.DeleteFunc(in.Members,
			func(m domain.Member) bool { _, runs := in.Current[m.Name]; return runs })
		in.Current, in.Room = nil, rapid.IntRange(0, 12).Draw(t, "room")
		gentle := rapid.Bool().Draw(t, "gentle")
		got, short := Fill(in, gentle)

		shuffled := in
		shuffled.Members = rapid.Permutation(in.Members).Draw(t, "permutation")
		again, shortAgain := Fill(shuffled, gentle)
		if diff := cmp.Diff(got, again) + cmp.Diff(short, shortAgain); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		if (len(got) < len(in.Members)) != (len(short) > 0) || len(got) > len(in.Members) {
			t.Fatalf("%d of %d are placed, and it is said: %v", len(got), len(in.Members), short)
		}
		given := map[string]bool{}
		for member, at := range got {
			if why := in.Closed[at.Host]; why != "" {
				t.Fatalf("%s is on host %s: %s", member, at.Host, why)
			}
			for _, uuid := range at.GPUs.UUIDs() {
				if state := in.Devices[uuid]; state.Closed != "" || state.Lost != "" {
					t.Fatalf("%s has %s: %v", member, uuid, state)
				}
				if gentle && given[uuid] {
					t.Fatalf("%s was given twice", uuid)
				}
				given[uuid] = true
			}
		}
		checkFilled(t, in, got)
	})
}

// checkFilled compares the use of hosts and devices with their capacity, where members were placed.
func checkFilled(t *rapid.T, in Input, got map[string]domain.Assignment) {
	known := map[string]domain.Device{}
	for _, pool := range in.Pools {
		for _, devices := range pool.Devices {
			for _, device := range devices {
				known[device.UUID] = device
			}
		}
	}
	used, onDevice := map[string]domain.Resources{}, map[string]int64{}
	for group, doc := range in.Groups {
		for member, at := range doc.Assignments {
			r := doc.Spec.Roles[roleOf(group, member)]
			used[at.Host] = resources(used[at.Host].CPUs+r.Resources.CPUs,
				used[at.Host].MemoryMiB+r.Resources.MemoryMiB)
			for _, uuid := range at.GPUs.UUIDs() {
				onDevice[uuid] += mibOf(in.Pools, r.GPUs, known[uuid])
			}
		}
	}
	for _, m := range in.Members {
		at, placed := got[m.Name]
		if !placed {
			continue
		}
		r := in.Group.Roles[m.Role]
		used[at.Host] = resources(used[at.Host].CPUs+r.Resources.CPUs, used[at.Host].MemoryMiB+r.Resources.MemoryMiB)
		if n := len(at.GPUs.UUIDs()); r.GPUs != nil && n != r.GPUs.Devices() || r.GPUs == nil && n > 0 {
			t.Fatalf("%s has %d devices", m.Name, n)
		}
		for _, uuid := range at.GPUs.UUIDs() {
			onDevice[uuid] += mibOf(in.Pools, r.GPUs, known[uuid])
		}
	}
	for _, m := range in.Members {
		at, placed := got[m.Name]
		if !placed {
			continue
		}
		r, u, c := in.Group.Roles[m.Role].Resources, used[at.Host], in.Hosts[at.Host].Capacity
		if u.CPUs += in.Reserved[at.Host].CPUs; r.CPUs > 0 && u.CPUs > c.CPUs+1e-5 {
			t.Fatalf("%s is on host %s: %v CPUs used of %v", m.Name, at.Host, u.CPUs, c.CPUs)
		}
		if u.MemoryMiB += in.Reserved[at.Host].MemoryMiB; r.MemoryMiB > 0 && u.MemoryMiB > c.MemoryMiB {
			t.Fatalf("%s is on host %s: %d MiB used of %d", m.Name, at.Host, u.MemoryMiB, c.MemoryMiB)
		}
		for _, uuid := range at.GPUs.UUIDs() {
			if !holds(in.Pools[in.Group.Roles[m.Role].GPUs.Pool].Spec, known[uuid], onDevice[uuid]) {
				t.Fatalf("%s has %s: %d MiB used of %d", m.Name, uuid, onDevice[uuid], known[uuid].MemoryMiB)
			}
		}
	}
}
