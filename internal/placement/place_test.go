package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// role is a role of the group under test with its number of members.
type role struct {
	domain.Role
	n int
}

func resources(cpus float64, mib int64) domain.Resources {
	return domain.Resources{CPUs: cpus, MemoryMiB: mib}
}

// requests returns what a role's members request.
func requests(cpus float64, mib int64) domain.ResourceRequirements {
	return domain.ResourceRequirements{CPUs: cpus, MemoryMiB: mib}
}

func capacity(cpus float64, mib int64) domain.Capacity {
	return domain.Capacity{CPUs: cpus, MemoryMiB: mib}
}

func host(address string, c domain.Capacity, labels ...string) domain.Host {
	h := domain.Host{Address: address, Capacity: c, Labels: map[string]string{}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		h.Labels[key] = value
	}
	return h
}

// input returns the input for group "m" of cluster "lab", with each member on an address of its own.
func input(hosts map[string]domain.Host, roles map[string]role) Input {
	in := Input{
		Group: domain.Group{Cluster: "lab", Name: "m", Roles: map[string]domain.Role{}},
		Hosts: hosts,
	}
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		in.Group.Roles[name] = roles[name].Role
		for i := range roles[name].n {
			in.Members = append(in.Members, domain.Member{Name: domain.MemberName("m", name, i), Role: name, Index: i})
		}
	}
	return in
}

// on returns the current assignments of members by host.
func on(hosts map[string]string) map[string]domain.Assignment {
	current := map[string]domain.Assignment{}
	for member, host := range hosts {
		current[member] = domain.Assignment{Host: host, Port: firstFreePort}
	}
	return current
}

// other returns another group whose members have the assignments and request the resources.
func other(r domain.Resources, assignments ...domain.Assignment) domain.GroupDocument {
	document := domain.GroupDocument{
		Spec: domain.Group{
			Name: "old-1", Roles: map[string]domain.Role{"w-x": {Resources: requests(r.CPUs, r.MemoryMiB)}},
		},
		Assignments: map[string]domain.Assignment{},
	}
	for i, a := range assignments {
		document.Assignments[domain.MemberName("old-1", "w-x", i)] = a
	}
	return document
}

// publishing returns a role whose members publish ports of their hosts, such as "8080/tcp".
func publishing(ports ...string) domain.Role {
	container := &domain.Container{Ports: map[string]domain.PublishedPort{}}
	for _, port := range ports {
		var p domain.PublishedPort
		if _, err := fmt.Sscanf(port, "%d/%s", &p.Published, &p.Protocol); err != nil {
			panic(err)
		}
		container.Ports[port] = p
	}
	return domain.Role{Template: domain.Template{Container: container}}
}

// otherPublishing returns another group with a member on each host that publishes a port, declared in the group's
// container.
func otherPublishing(port string, hosts ...string) domain.GroupDocument {
	var assignments []domain.Assignment
	for _, host := range hosts {
		assignments = append(assignments, domain.Assignment{Host: host, Port: 1})
	}
	document := other(domain.Resources{}, assignments...)
	document.Spec.Template = publishing(port).Template
	return document
}

// down returns the hosts as closed because they are down.
func down(hosts ...string) map[string]string {
	closed := map[string]string{}
	for _, host := range hosts {
		closed[host] = "host " + host + " is down"
	}
	return closed
}

func hostsOfResult(assignments map[string]domain.Assignment) map[string]string {
	hosts := map[string]string{}
	for member, a := range assignments {
		hosts[member] = a.Host
	}
	return hosts
}

func TestPlaceHosts(t *testing.T) {
	small := func(names ...string) map[string]domain.Host {
		hosts := map[string]domain.Host{}
		for _, name := range names {
			hosts[name] = host(name, capacity(4, 4096))
		}
		return hosts
	}
	asking := func(cpus float64, n int) role { return role{domain.Role{Resources: requests(cpus, 0)}, n} }
	placed := func(p domain.Placement, n int) role { return role{domain.Role{Placement: p}, n} }

	for _, tc := range []struct {
		name    string
		hosts   map[string]domain.Host
		roles   map[string]role
		current map[string]string
		others  map[string]domain.GroupDocument
		// closed are hosts that take no new members, and reserved what others have reserved.
		closed   []string
		reserved map[string]domain.Resources
		want     map[string]string
	}{
		{
			name:  "spread takes the hosts in turn",
			hosts: small("a", "b"),
			roles: map[string]role{"w": placed(domain.Placement{}, 3)},
			want:  map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "a"},
		},
		{
			name:  "spread prefers hosts with fewer members of other roles",
			hosts: small("a", "b"),
			roles: map[string]role{
				"ps": placed(domain.Placement{}, 1), "w": placed(domain.Placement{Strategy: domain.Spread}, 1),
			},
			want: map[string]string{"m-ps-0": "a", "m-w-0": "b"},
		},
		{
			name:  "spread prefers free CPUs between hosts with as many members",
			hosts: map[string]domain.Host{"a": host("a", capacity(2, 4096)), "b": host("b", capacity(8, 4096))},
			roles: map[string]role{"w": placed(domain.Placement{}, 1)},
			want:  map[string]string{"m-w-0": "b"},
		},
		{
			name:  "pack fills the host with the most members, of other groups too, and then the next",
			hosts: small("a", "b", "c"),
			roles: map[string]role{
				"w": {domain.Role{Resources: requests(1, 0), Placement: domain.Placement{Strategy: domain.Pack}}, 4},
			},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(1, 0), domain.Assignment{Host: "b", Port: 1}),
			},
			want: map[string]string{"m-w-0": "b", "m-w-1": "b", "m-w-2": "b", "m-w-3": "a"},
		},
		{
			name:  "one per host",
			hosts: small("a", "b"),
			roles: map[string]role{"w": placed(domain.Placement{Strategy: domain.OnePerHost}, 2)},
			want:  map[string]string{"m-w-0": "a", "m-w-1": "b"},
		},
		{
			name: "labels",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=t4"), "b": host("b", capacity(4, 4096), "gpu=v100", "zone=1"),
				"c": host("c", capacity(4, 4096)),
			},
			roles: map[string]role{"w": placed(domain.Placement{Labels: map[string]string{"gpu": "v100"}}, 2)},
			want:  map[string]string{"m-w-0": "b", "m-w-1": "b"},
		},
		{
			name: "a label with an empty value is not a missing one",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096), "spot="),
			},
			roles: map[string]role{"w": placed(domain.Placement{Labels: map[string]string{"spot": ""}}, 1)},
			want:  map[string]string{"m-w-0": "b"},
		},
		{
			name:  "other groups' requests count, an entry for the group itself does not",
			hosts: small("a", "b"),
			roles: map[string]role{"w": asking(2, 2)},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(3, 0), domain.Assignment{Host: "a", Port: 1}), "m": {
					Spec:        domain.Group{Roles: map[string]domain.Role{"w": {Resources: requests(4, 0)}}},
					Assignments: on(map[string]string{"m-w-0": "b"}),
				},
			},
			want: map[string]string{"m-w-0": "b", "m-w-1": "b"},
		},
		{
			name:  "fractions of CPUs fill a host to the last",
			hosts: map[string]domain.Host{"a": host("a", capacity(0.3, 4096))},
			roles: map[string]role{"w": asking(0.1, 3)},
			want:  map[string]string{"m-w-0": "a", "m-w-1": "a", "m-w-2": "a"},
		},
		{
			name:  "large members come first",
			hosts: small("a", "b"),
			roles: map[string]role{"aux": asking(1, 4), "w": asking(4, 1)},
			want:  map[string]string{"m-aux-0": "b", "m-aux-1": "b", "m-aux-2": "b", "m-aux-3": "b", "m-w-0": "a"},
		},
		{
			name: "roles with fewer hosts to choose from come before larger ones",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=v100"), "b": host("b", capacity(4, 4096)),
			},
			roles: map[string]role{"chief": {domain.Role{
				Resources: requests(1, 0), Placement: domain.Placement{Labels: map[string]string{"gpu": "v100"}},
			}, 1}, "w": asking(4, 1)},
			want: map[string]string{"m-chief-0": "a", "m-w-0": "b"},
		},
		{
			name:  "hosts on which other groups leave too little room are no choice",
			hosts: small("a", "b"),
			roles: map[string]role{"ps": {domain.Role{Resources: requests(1, 3000)}, 1}, "w": asking(4, 1)},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(0, 2000), domain.Assignment{Host: "b", Port: 1}),
			},
			want: map[string]string{"m-ps-0": "a", "m-w-0": "b"},
		},
		{
			name:  "roles that need every host come before larger ones",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(5, 4096))},
			roles: map[string]role{"agent": {
				domain.Role{Resources: requests(1, 0), Placement: domain.Placement{Strategy: domain.OnePerHost}}, 2,
			}, "w": asking(2, 3)},
			want: map[string]string{"m-agent-0": "b", "m-agent-1": "a", "m-w-0": "b", "m-w-1": "a", "m-w-2": "b"},
		},
		{
			name:    "members stay where they are, though spread would choose otherwise",
			hosts:   small("a", "b"),
			roles:   map[string]role{"w": asking(1, 3)},
			current: map[string]string{"m-w-0": "b", "m-w-1": "b"},
			want:    map[string]string{"m-w-0": "b", "m-w-1": "b", "m-w-2": "a"},
		},
		{
			name: "members leave a host that is gone, lost its label, or holds another member of a role that is one per host",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "ok=1"), "b": host("b", capacity(4, 4096), "ok=2"),
				"c": host("c", capacity(4, 4096), "ok=1"), "d": host("d", capacity(4, 4096), "ok=1"),
			},
			roles: map[string]role{
				"w": placed(domain.Placement{Strategy: domain.OnePerHost, Labels: map[string]string{"ok": "1"}}, 3),
			},
			current: map[string]string{"m-w-0": "gone", "m-w-1": "c", "m-w-2": "c"},
			want:    map[string]string{"m-w-0": "a", "m-w-1": "c", "m-w-2": "d"},
		},
		{
			name:    "a member that grew beyond its host moves, not its neighbours",
			hosts:   small("a", "b"),
			roles:   map[string]role{"ps": asking(1, 2), "w": asking(3, 1)},
			current: map[string]string{"m-ps-0": "a", "m-ps-1": "a", "m-w-0": "a"},
			want:    map[string]string{"m-ps-0": "a", "m-ps-1": "a", "m-w-0": "b"},
		},
		{
			name:    "neighbours make room where that is the only way",
			hosts:   small("a", "b"),
			roles:   map[string]role{"ps": asking(1, 2), "w": asking(4, 1)},
			current: map[string]string{"m-ps-0": "a", "m-ps-1": "b", "m-w-0": "a"},
			want:    map[string]string{"m-ps-0": "b", "m-ps-1": "b", "m-w-0": "a"},
		},
		{
			name:  "members without requests stay on a host whose capacity was lowered",
			hosts: map[string]domain.Host{"a": host("a", capacity(1, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{"w": asking(0, 1)},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(3, 0), domain.Assignment{Host: "a", Port: 1}),
			},
			current: map[string]string{"m-w-0": "a"},
			want:    map[string]string{"m-w-0": "a"},
		},
		{
			name:  "hosts by name",
			hosts: small("a", "b", "c"),
			roles: map[string]role{"w": placed(domain.Placement{Hosts: []string{"c", "b"}}, 3)},
			want:  map[string]string{"m-w-0": "b", "m-w-1": "c", "m-w-2": "b"},
		},
		{
			name: "hosts by name, with labels and one per host",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "ok=1"), "b": host("b", capacity(4, 4096), "ok=1"),
				"c": host("c", capacity(4, 4096)), "d": host("d", capacity(4, 4096), "ok=1"),
			},
			roles: map[string]role{"w": placed(domain.Placement{
				Strategy: domain.OnePerHost, Labels: map[string]string{"ok": "1"}, Hosts: []string{"b", "c", "d"},
			}, 2)},
			want: map[string]string{"m-w-0": "b", "m-w-1": "d"},
		},
		{
			name:    "members leave a host that is no longer named, and those on the others stay",
			hosts:   small("a", "b", "c"),
			roles:   map[string]role{"w": placed(domain.Placement{Hosts: []string{"b", "c"}}, 3)},
			current: map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "b"},
			want:    map[string]string{"m-w-0": "c", "m-w-1": "b", "m-w-2": "b"},
		},
		{
			name:    "members stay on a closed host, and new ones do not go there",
			hosts:   small("a", "b"),
			roles:   map[string]role{"w": asking(1, 4)},
			current: map[string]string{"m-w-0": "a", "m-w-1": "a"},
			closed:  []string{"a"},
			want:    map[string]string{"m-w-0": "a", "m-w-1": "a", "m-w-2": "b", "m-w-3": "b"},
		},
		{
			name:    "members stay on a closed host where others have to make room",
			hosts:   small("a", "b", "c"),
			roles:   map[string]role{"ps": asking(1, 3), "w": asking(4, 1)},
			current: map[string]string{"m-ps-0": "a", "m-ps-1": "b", "m-ps-2": "c"},
			closed:  []string{"a"},
			want:    map[string]string{"m-ps-0": "a", "m-ps-1": "c", "m-ps-2": "c", "m-w-0": "b"},
		},
		{
			name: "a closed host is no choice: the role that has only one left comes first",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=1"), "b": host("b", capacity(2, 4096), "gpu=1"),
				"c": host("c", capacity(4, 4096)),
			},
			roles: map[string]role{"chief": {domain.Role{
				Resources: requests(1, 0), Placement: domain.Placement{Labels: map[string]string{"gpu": "1"}},
			}, 1}, "w": asking(4, 1)},
			closed: []string{"b"},
			want:   map[string]string{"m-chief-0": "a", "m-w-0": "c"},
		},
		{
			name:  "a published port is on a host once, over all groups and roles",
			hosts: small("a", "b", "c", "d"),
			roles: map[string]role{
				"board": {publishing("6006/tcp"), 1}, "w": {publishing("8080/tcp", "6006/tcp"), 2},
				"x": {publishing("8080/udp"), 1},
			},
			others: map[string]domain.GroupDocument{"old-1": otherPublishing("8080/tcp", "a")},
			want:   map[string]string{"m-board-0": "d", "m-w-0": "b", "m-w-1": "c", "m-x-0": "a"},
		},
		{
			name:    "of members that publish a port by now, one stays",
			hosts:   small("a", "b"),
			roles:   map[string]role{"w": {publishing("8080/tcp"), 2}},
			current: map[string]string{"m-w-0": "b", "m-w-1": "b"},
			want:    map[string]string{"m-w-0": "b", "m-w-1": "a"},
		},
		{
			name:     "what others have reserved is used",
			hosts:    small("a", "b"),
			roles:    map[string]role{"w": asking(2, 3)},
			reserved: map[string]domain.Resources{"a": resources(2, 0)},
			want:     map[string]string{"m-w-0": "b", "m-w-1": "a", "m-w-2": "b"},
		},
		{
			name:    "what others have reserved moves nobody, but takes no new members on top",
			hosts:   small("a", "b"),
			roles:   map[string]role{"ps": asking(1, 2), "w": asking(2, 1)},
			current: map[string]string{"m-ps-0": "a", "m-ps-1": "a"},
			others: map[string]domain.GroupDocument{
				"m": {Spec: domain.Group{Roles: map[string]domain.Role{"ps": {Resources: requests(1, 0)}}}},
			},
			reserved: map[string]domain.Resources{"a": resources(4, 4096)},
			want:     map[string]string{"m-ps-0": "a", "m-ps-1": "a", "m-w-0": "b"},
		},
		{
			name:  "where all make room, members give way to new ones beside what others have reserved",
			hosts: small("a", "b"),
			roles: map[string]role{
				"ps": asking(1, 3),
				"w":  {domain.Role{Resources: requests(3, 0), Placement: domain.Placement{Strategy: domain.Pack}}, 1},
			},
			current: map[string]string{"m-ps-0": "a", "m-ps-1": "b", "m-ps-2": "b"},
			others: map[string]domain.GroupDocument{
				"m": {Spec: domain.Group{Roles: map[string]domain.Role{"ps": {Resources: requests(1, 0)}}}},
			},
			reserved: map[string]domain.Resources{"a": resources(1, 0)},
			want:     map[string]string{"m-ps-0": "b", "m-ps-1": "b", "m-ps-2": "b", "m-w-0": "a"},
		},
		{
			name:    "a member that grew needs room beside what others have reserved",
			hosts:   small("a", "b"),
			roles:   map[string]role{"w": asking(2, 1)},
			current: map[string]string{"m-w-0": "a"},
			others: map[string]domain.GroupDocument{
				"m": {Spec: domain.Group{Roles: map[string]domain.Role{"w": {Resources: requests(1, 0)}}}},
			},
			reserved: map[string]domain.Resources{"a": resources(3, 0)},
			want:     map[string]string{"m-w-0": "b"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(tc.hosts, tc.roles)
			in.Current, in.Groups, in.Closed, in.Reserved = on(tc.current), tc.others, down(tc.closed...), tc.reserved
			got, ps := Place(in)
			if err := ps.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, hostsOfResult(got)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
		})
	}
}

// thousandOnHundred returns a large, mixed group with realistic strategies and labels.
func thousandOnHundred() Input {
	hosts := map[string]domain.Host{}
	for i := range 100 {
		name := fmt.Sprintf("host-%02d", i)
		hosts[name] = host(name, capacity(16, 65536), fmt.Sprintf("gpu=%t", i%2 == 0), fmt.Sprintf("zone=%d", i%7))
	}
	port := 9000
	in := input(hosts, map[string]role{
		"ps":     {domain.Role{Resources: requests(1, 4096), Placement: domain.Placement{Strategy: domain.Pack}}, 200},
		"worker": {domain.Role{Port: &port, Resources: requests(1, 2048)}, 700},
		"agent": {
			domain.Role{Resources: requests(0.1, 64), Placement: domain.Placement{Strategy: domain.OnePerHost}}, 100,
		},
	})
	in.SharedAddress = true
	return in
}

func BenchmarkPlace(b *testing.B) {
	fresh := thousandOnHundred()
	first, ps := Place(fresh)
	if err := ps.Err(); err != nil {
		b.Fatal(err)
	}
	kept := fresh
	kept.Current = first
	divided := thousandOnHundred()
	for name, role := range divided.Group.Roles {
		role.Placement.SpreadBy = "zone"
		divided.Group.Roles[name] = role
	}
	full := thousandOnHundred()
	worker := full.Group.Roles["worker"]
	worker.Resources.CPUs = 3
	full.Group.Roles["worker"] = worker

	gpus := manyGPUs()
	if first, ps = Place(gpus); ps.Err() != nil {
		b.Fatal(ps.Err())
	}
	keptGPUs := gpus
	keptGPUs.Current = first
	keptGPUs.Groups = map[string]domain.GroupDocument{"m": {Spec: gpus.Group, Assignments: first}}
	fullGPUs := manyGPUs()
	fullGPUs.Devices = map[string]DeviceState{
		fullGPUs.Pools["p"].Devices["host-42"][0].UUID: {Lost: "fallen off the bus (XID 79)"},
	}

	for _, bc := range []struct {
		name string
		in   Input
	}{{"fresh", fresh}, {"by a label", divided}, {"kept", kept}, {"does not fit", full}, {"GPUs", gpus},
		{"GPUs kept", keptGPUs}, {"GPUs do not fit", fullGPUs}, {"GPUs are searched for", splitGPUs()}} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Place(bc.in)
			}
		})
	}
}
