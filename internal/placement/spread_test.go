package placement

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// racked returns hosts of four CPUs in racks, by name. Rack "" means no label.
func racked(racks map[string]string) map[string]domain.Host {
	hosts := map[string]domain.Host{}
	for name, rack := range racks {
		hosts[name] = host(name, capacity(4, 4096))
		if rack != "" {
			hosts[name] = host(name, capacity(4, 4096), "rack="+rack)
		}
	}
	return hosts
}

// byRack returns n members of a role that is spread by rack, with some CPUs each.
func byRack(strategy domain.Strategy, cpus float64, n int) role {
	return role{
		domain.Role{Resources: requests(cpus, 0), Placement: domain.Placement{Strategy: strategy, SpreadBy: "rack"}}, n,
	}
}

func TestSpreadBy(t *testing.T) {
	// Three hosts in rack x, one in rack y.
	uneven := racked(map[string]string{"x1": "x", "x2": "x", "x3": "x", "y1": "y"})
	twos := racked(map[string]string{"x1": "x", "x2": "x", "y1": "y", "y2": "y"})
	for name, test := range map[string]struct {
		hosts  map[string]domain.Host
		roles  map[string]role
		change func(in *Input)
		want   map[string]string
	}{
		"over racks of different sizes": {
			uneven, map[string]role{"w": byRack("", 1, 4)}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "y1", "m-w-2": "x2", "m-w-3": "y1"},
		},
		"beyond what a rack has room for": {
			uneven, map[string]role{"w": byRack("", 2, 6)}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "y1", "m-w-2": "x2", "m-w-3": "y1", "m-w-4": "x3", "m-w-5": "x1"},
		},
		"packed within each": {
			twos, map[string]role{"w": byRack(domain.Pack, 2, 6)}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "y1", "m-w-2": "x1", "m-w-3": "y1", "m-w-4": "x2", "m-w-5": "y2"},
		},
		"spread within each": {
			twos, map[string]role{"w": byRack(domain.Spread, 1, 6)}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "y1", "m-w-2": "x2", "m-w-3": "y2", "m-w-4": "x1", "m-w-5": "y1"},
		},
		"one per host": {
			uneven, map[string]role{"w": byRack(domain.OnePerHost, 1, 4)}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "y1", "m-w-2": "x2", "m-w-3": "x3"},
		},
		"hosts without the label are one more value": {
			racked(map[string]string{"x1": "x", "x2": "x", "p1": "", "p2": ""}), map[string]role{"w": byRack("", 1, 4)},
			nil,
			map[string]string{"m-w-0": "p1", "m-w-1": "x1", "m-w-2": "p2", "m-w-3": "x2"},
		},
		"as those are whose label is empty": {
			map[string]domain.Host{
				"p1": host("p1", capacity(4, 0)), "p2": host("p2", capacity(4, 0), "rack="),
				"x1": host("x1", capacity(4, 0), "rack=x"),
			},
			map[string]role{"w": byRack("", 1, 4)}, nil,
			map[string]string{"m-w-0": "p1", "m-w-1": "x1", "m-w-2": "p2", "m-w-3": "x1"},
		},
		"a label of no host makes no difference": {
			racked(map[string]string{"a": "", "b": ""}), map[string]role{"w": byRack("", 1, 3)}, nil,
			map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "a"},
		},
		"only over the hosts that will do": {
			uneven, map[string]role{
				"w": {domain.Role{Placement: domain.Placement{SpreadBy: "rack", Hosts: []string{"x1", "x2"}}}, 2},
			}, nil,
			map[string]string{"m-w-0": "x1", "m-w-1": "x2"},
		},
		"each role for itself": {
			twos, map[string]role{"a": byRack("", 1, 1), "b": byRack("", 1, 1), "c": byRack("", 1, 2)}, nil,
			map[string]string{"m-a-0": "x1", "m-b-0": "x2", "m-c-0": "y1", "m-c-1": "x1"},
		},
		"a role that grows": {
			uneven, map[string]role{"w": byRack("", 1, 5)},
			func(in *Input) { in.Current = on(map[string]string{"m-w-0": "x1", "m-w-1": "x2"}) },
			map[string]string{"m-w-0": "x1", "m-w-1": "x2", "m-w-2": "y1", "m-w-3": "y1", "m-w-4": "x3"},
		},
		"none moves, however uneven": {
			twos, map[string]role{"w": byRack("", 1, 4)}, func(in *Input) {
				in.Current = on(map[string]string{"m-w-0": "x1", "m-w-1": "x1", "m-w-2": "x2", "m-w-3": "x2"})
			},
			map[string]string{"m-w-0": "x1", "m-w-1": "x1", "m-w-2": "x2", "m-w-3": "x2"},
		},
		"those that are left count where one has lost its host": {
			twos, map[string]role{"w": byRack("", 1, 4)}, func(in *Input) {
				in.Pinned, in.Closed = true, down("y1")
				in.Current = on(map[string]string{"m-w-0": "x1", "m-w-2": "x2", "m-w-3": "y2"})
			},
			map[string]string{"m-w-0": "x1", "m-w-1": "y2", "m-w-2": "x2", "m-w-3": "y2"},
		},
		"members that make room": {
			racked(map[string]string{"x1": "x", "y1": "y"}),
			map[string]role{"big": byRack("", 4, 1), "w": byRack("", 1, 3)}, func(in *Input) {
				in.Current = on(map[string]string{"m-w-0": "x1", "m-w-1": "y1"})
			},
			map[string]string{"m-big-0": "x1", "m-w-0": "y1", "m-w-1": "y1", "m-w-2": "y1"},
		},
		"GPUs of a pool": {
			twos, map[string]role{"w": {placedOn(onGPUs(1, 0), domain.Placement{SpreadBy: "rack"}), 4}},
			func(in *Input) {
				in.Pools = map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{}, map[string][]domain.Device{
					"x1": gpus("a", "b"), "x2": gpus("c", "d"), "y2": gpus("e"),
				})}
			},
			map[string]string{"m-w-0": "x1: a", "m-w-1": "y2: e", "m-w-2": "x2: c", "m-w-3": "x1: b"},
		},
		"before GPUs that are closer to one another": {
			twos, map[string]role{"w": {placedOn(onGPUs(2, 0), domain.Placement{SpreadBy: "rack"}), 3}},
			func(in *Input) {
				in.Pools = map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{}, map[string][]domain.Device{
					"x1": linked(gpus("a", "b")...), "x2": linked(gpus("c", "d")...), "y1": gpus("e", "f"),
					"y2": linked(gpus("g", "h")...),
				})}
			},
			map[string]string{"m-w-0": "x1: a,b", "m-w-1": "y2: g,h", "m-w-2": "x2: c,d"},
		},
		"one whose GPU is lost counts no more where it was": {
			twos, map[string]role{
				"w": {placedOn(onGPUs(1, 0), domain.Placement{SpreadBy: "rack", Strategy: domain.Pack}), 2},
			}, func(in *Input) {
				in.Pools = map[string]domain.GPUPoolDocument{"p": pooled(domain.GPUPool{},
					map[string][]domain.Device{"x1": gpus("a"), "x2": gpus("b"), "y1": gpus("c", "d")})}
				in.Devices = map[string]DeviceState{"a": {Lost: "fallen off the bus (XID 79)"}}
				in.Current = assigned(map[string]string{"m-w-0": "x1: a", "m-w-1": "y1: c"})
				in.Groups = map[string]domain.GroupDocument{"m": {Spec: in.Group}}
			},
			map[string]string{"m-w-0": "x2: b", "m-w-1": "y1: c"},
		},
		"where a search finds the only way": {
			racked(map[string]string{"x1": "x", "x2": "x"}),
			map[string]role{
				"one": {placedOn(onGPUs(1, 0), domain.Placement{SpreadBy: "rack"}), 2},
				"two": {placedOn(onGPUs(2, 0), domain.Placement{SpreadBy: "rack"}), 1},
			},
			func(in *Input) {
				in.Pools = map[string]domain.GPUPoolDocument{
					"p": pooled(domain.GPUPool{},
						map[string][]domain.Device{"x1": gpus("a", "b"), "x2": gpus("c", "d")}),
				}
				in.Current = assigned(map[string]string{"m-one-0": "x1: a", "m-one-1": "x2: c"})
				in.Groups = map[string]domain.GroupDocument{"m": {Spec: in.Group}}
			},
			map[string]string{"m-one-0": "x2: d", "m-one-1": "x2: c", "m-two-0": "x1: a,b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(test.hosts, test.roles)
			if test.change != nil {
				test.change(&in)
			}
			got, ps := Place(in)
			if err := ps.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, texts(got)); diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFillSpreadBy checks that runs, each with its own role, are spread together with those that run.
func TestFillSpreadBy(t *testing.T) {
	hosts := racked(map[string]string{"x1": "x", "x2": "x", "x3": "x", "y1": "y"})
	run := byRack("", 1, 1)
	runs := map[string]role{"w1": run, "w2": run, "w3": run, "w4": run}
	packed := byRack(domain.Pack, 1, 1)
	for name, test := range map[string]struct {
		roles  map[string]role
		change func(in *Input)
		want   map[string]string
	}{
		"over racks": {runs, nil, map[string]string{"m-w1-0": "x1", "m-w2-0": "y1", "m-w3-0": "x2", "m-w4-0": "y1"}},
		"beside those that run": {
			runs, func(in *Input) { in.Groups = stays(domain.Role{}, "x1", "x1", "gone") },
			map[string]string{"m-w1-0": "y1", "m-w2-0": "y1", "m-w3-0": "x2", "m-w4-0": "y1"},
		},
		"whatever others run": {
			runs, func(in *Input) {
				in.Groups = map[string]domain.GroupDocument{
					"old-1": other(domain.Resources{}, domain.Assignment{Host: "y1"}, domain.Assignment{Host: "y1"}),
				}
			}, map[string]string{"m-w1-0": "x1", "m-w2-0": "y1", "m-w3-0": "x2", "m-w4-0": "y1"},
		},
		"into what a rack has room for": {
			runs, func(in *Input) { in.Reserved = map[string]domain.Resources{"y1": {CPUs: 3}} },
			map[string]string{"m-w1-0": "x1", "m-w2-0": "y1", "m-w3-0": "x2", "m-w4-0": "x3"},
		},
		"packed within each": {
			map[string]role{"w1": packed, "w2": packed, "w3": packed, "w4": packed}, nil,
			map[string]string{"m-w1-0": "x1", "m-w2-0": "y1", "m-w3-0": "x1", "m-w4-0": "y1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(hosts, test.roles)
			if test.change != nil {
				test.change(&in)
			}
			got, short := Fill(in, false)
			if diff := cmp.Diff(test.want, texts(got)); diff != "" || len(short) > 0 {
				t.Errorf("short: %v; assignments (-want +got):\n%s", short, diff)
			}
		})
	}
}

func TestCheckSpread(t *testing.T) {
	by := func(label string) domain.Group {
		return input(nil, map[string]role{"w": {domain.Role{Placement: domain.Placement{SpreadBy: label}}, 1}}).Group
	}
	hosts := racked(map[string]string{"a": "x", "b": ""})
	hosts["b"].Labels["disk"] = "ssd"
	const unknown = `roles["w"].placement.spread_by: No host with this label: no host of cluster "lab" has a label "zone" to spread members by; the labels of its hosts are: `
	for name, test := range map[string]struct {
		group, before domain.Group
		hosts         map[string]domain.Host
		want          string
		warning       bool
	}{
		"no label":    {group: by(""), hosts: hosts},
		"a label":     {group: by("rack"), hosts: hosts},
		"of no host":  {group: by("zone"), before: by("rack"), hosts: hosts, want: unknown + "disk, rack"},
		"without any": {group: by("zone"), hosts: racked(map[string]string{"a": ""}), want: unknown + "none"},
		"that hosts lost": {
			group: by("zone"), before: by("zone"), hosts: hosts, want: unknown + "disk, rack", warning: true,
		},
		"without any hosts": {group: by("zone")},
	} {
		ps := CheckSpread(test.group, test.before, test.hosts)
		switch {
		case test.want == "" && len(ps) > 0,
			test.want != "" && (len(ps) != 1 || ps[0].Error() != test.want || ps[0].Warning != test.warning):
			t.Errorf("%s: %v, want %s", name, ps, test.want)
		}
	}
}

// checkSpread checks that no new member was placed at a label value with more members of its role than another value
// with room.
func checkSpread(t *rapid.T, in Input, got map[string]domain.Assignment) {
	used, published := map[string]domain.Resources{}, map[string][]string{}
	add := func(spec domain.Role, host string) {
		used[host] = resources(used[host].CPUs+spec.Resources.CPUs, used[host].MemoryMiB+spec.Resources.MemoryMiB)
		if !in.SharedAddress {
			published[host] = slices.AppendSeq(published[host], maps.Keys(containerPorts(spec)))
		}
	}
	for _, a := range in.Groups["old-1"].Assignments {
		add(in.Groups["old-1"].Spec.Roles["w-x"], a.Host)
	}
	onHost := map[[2]string]int{}
	for _, m := range in.Members {
		add(in.Group.Roles[m.Role], got[m.Name].Host)
		onHost[[2]string{m.Role, got[m.Name].Host}]++
	}
	hasRoom := func(role, name string) bool {
		spec, u, reserved := in.Group.Roles[role], used[name], in.Reserved[name]
		cpus, memory := u.CPUs+reserved.CPUs+spec.Resources.CPUs,
			u.MemoryMiB+reserved.MemoryMiB+spec.Resources.MemoryMiB
		fits := (spec.Resources.CPUs == 0 || cpus <= in.Hosts[name].Capacity.CPUs) &&
			(spec.Resources.MemoryMiB == 0 || memory <= in.Hosts[name].Capacity.MemoryMiB)
		blocked := slices.ContainsFunc(published[name],
			func(port string) bool { _, is := containerPorts(spec)[port]; return is })
		spent := spec.Placement.Strategy == domain.OnePerHost && onHost[[2]string{role, name}] > 0
		return Allows(spec.Placement, name, in.Hosts[name]) && in.Closed[name] == "" && fits && !blocked && !spent
	}
	for role, spec := range in.Group.Roles {
		label := spec.Placement.SpreadBy
		if label == "" {
			continue
		}
		counts, came := map[string]int{}, map[string]bool{}
		for _, m := range in.Members {
			if at := got[m.Name].Host; m.Role == role {
				counts[in.Hosts[at].Labels[label]]++
				came[in.Hosts[at].Labels[label]] = came[in.Hosts[at].Labels[label]] || in.Current[m.Name].Host != at
			}
		}
		for name, h := range in.Hosts {
			for value := range came {
				if has := h.Labels[label]; came[value] && hasRoom(role, name) && counts[value] > counts[has]+1 {
					t.Fatalf("%d members of role %s are where %s is %q, and %d where it is %q, though host %s has room",
						counts[value], role, label, value, counts[has], has, name)
				}
			}
		}
	}
}
