package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func portOf(p int) domain.Role { return domain.Role{Port: &p} }

func local() map[string]domain.Host {
	return map[string]domain.Host{"local": host("127.0.0.1", capacity(64, 65536))}
}

func TestPlacePorts(t *testing.T) {
	at := func(port int) domain.Assignment { return domain.Assignment{Host: "local", Port: port} }
	for _, tc := range []struct {
		name    string
		hosts   map[string]domain.Host
		roles   map[string]role
		private bool
		current map[string]domain.Assignment
		busy    map[string][]int
		others  map[string]domain.GroupDocument
		want    map[string]int
	}{
		{
			name:  "members at one address count up from their role's port",
			roles: map[string]role{"ps": {portOf(8000), 2}, "w": {portOf(9000), 3}},
			want:  map[string]int{"m-ps-0": 8000, "m-ps-1": 8001, "m-w-0": 9000, "m-w-1": 9001, "m-w-2": 9002},
		},
		{
			name: "each address counts for itself, across the hosts that share it",
			hosts: map[string]domain.Host{
				"a": host("x", capacity(4, 1)), "b": host("x", capacity(4, 1)), "c": host("y", capacity(4, 1)),
			},
			roles: map[string]role{"w": {portOf(9000), 6}},
			want: map[string]int{
				"m-w-0": 9000, "m-w-1": 9001, "m-w-2": 9000, "m-w-3": 9002, "m-w-4": 9003, "m-w-5": 9001,
			},
		},
		{
			name:    "members with an address of their own all have the role's port",
			roles:   map[string]role{"ps": {portOf(8000), 2}, "w": {portOf(8000), 1}, "x": {n: 2}},
			private: true,
			busy:    map[string][]int{"127.0.0.1": {8000, 20000}},
			want:    map[string]int{"m-ps-0": 8000, "m-ps-1": 8000, "m-w-0": 8000, "m-x-0": 20000, "m-x-1": 20000},
		},
		{
			name:   "free ports are the lowest that are neither busy, nor another group's, nor those of another role",
			roles:  map[string]role{"ps": {n: 3}, "w": {portOf(20001), 2}},
			busy:   map[string][]int{"127.0.0.1": {20000}, "elsewhere": {20004}},
			others: map[string]domain.GroupDocument{"old-1": other(domain.Resources{}, at(20003))},
			want:   map[string]int{"m-ps-0": 20004, "m-ps-1": 20005, "m-ps-2": 20006, "m-w-0": 20001, "m-w-1": 20002},
		},
		{
			name:    "current ports are kept, though the member listens there and lower ones are free",
			roles:   map[string]role{"w": {n: 3}},
			current: map[string]domain.Assignment{"m-w-0": at(20007), "m-w-2": at(9001)},
			busy:    map[string][]int{"127.0.0.1": {20007, 9001}},
			want:    map[string]int{"m-w-0": 20007, "m-w-1": 20000, "m-w-2": 9001},
		},
		{
			name:    "a current port is given up where another role or group has it",
			roles:   map[string]role{"ps": {portOf(20005), 1}, "w": {n: 2}},
			current: map[string]domain.Assignment{"m-w-0": at(20005), "m-w-1": at(20006)},
			others:  map[string]domain.GroupDocument{"old-1": other(domain.Resources{}, at(20006))},
			want:    map[string]int{"m-ps-0": 20005, "m-w-0": 20000, "m-w-1": 20001},
		},
		{
			name:    "the port of a member that goes is not given to another at once",
			roles:   map[string]role{"w": {n: 1}},
			current: map[string]domain.Assignment{"m-gone-0": at(20000)},
			want:    map[string]int{"m-w-0": 20001},
		},
		{
			name: "a member that moves to another address leaves its free port behind",
			hosts: map[string]domain.Host{
				"old": host("10.0.0.1", capacity(1, 1)), "new": host("10.0.0.2", capacity(4, 1)),
			},
			roles:   map[string]role{"w": {domain.Role{Resources: requests(2, 0)}, 1}},
			current: map[string]domain.Assignment{"m-w-0": {Host: "old", Port: 20009}},
			want:    map[string]int{"m-w-0": 20000},
		},
		{
			name:    "ports on which the group's own members listen are no clash",
			roles:   map[string]role{"ps": {portOf(9000), 1}, "w": {portOf(8000), 2}},
			current: map[string]domain.Assignment{"m-ps-0": at(8000), "m-w-0": at(9000)},
			busy:    map[string][]int{"127.0.0.1": {8000, 9000}},
			want:    map[string]int{"m-ps-0": 9000, "m-w-0": 8000, "m-w-1": 8001},
		},
		{
			name:    "members of a role that counts from the same port keep theirs, and new ones get those in between",
			roles:   map[string]role{"w": {portOf(9000), 4}},
			current: map[string]domain.Assignment{"m-w-0": at(9000), "m-w-2": at(9003)},
			others:  map[string]domain.GroupDocument{"m": counting(9000)},
			want:    map[string]int{"m-w-0": 9000, "m-w-1": 9001, "m-w-2": 9003, "m-w-3": 9002},
		},
		{
			name:    "members of a role that counts from another port get others",
			roles:   map[string]role{"w": {portOf(9000), 2}},
			current: map[string]domain.Assignment{"m-w-0": at(9001), "m-w-1": at(9003)},
			others:  map[string]domain.GroupDocument{"m": counting(9001)},
			want:    map[string]int{"m-w-0": 9000, "m-w-1": 9001},
		},
		{
			name:  "the highest port",
			roles: map[string]role{"w": {portOf(65534), 2}},
			want:  map[string]int{"m-w-0": 65534, "m-w-1": 65535},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hosts := tc.hosts
			if hosts == nil {
				hosts = local()
			}
			in := input(hosts, tc.roles)
			in.SharedAddress, in.Current, in.BusyPorts, in.Groups = !tc.private, tc.current, tc.busy, tc.others
			assignments, ps := Place(in)
			if err := ps.Err(); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for member, a := range assignments {
				got[member] = a.Port
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

// counting returns the stored document of the group, whose role counts from this port.
func counting(port int) domain.GroupDocument {
	return domain.GroupDocument{Spec: domain.Group{Name: "m", Roles: map[string]domain.Role{"w": portOf(port)}}}
}

func TestPortsMoveOnlyWithTheEnd(t *testing.T) {
	hosts := map[string]domain.Host{
		"a": host("x", capacity(64, 1)), "b": host("y", capacity(64, 1)), "c": host("y", capacity(64, 1)),
	}
	var before map[string]domain.Assignment
	for _, n := range []int{3, 8, 5} {
		in := input(hosts, map[string]role{"w": {portOf(9000), n}, "x": {n: n}})
		in.SharedAddress, in.Current = true, before
		after, ps := Place(in)
		if err := ps.Err(); err != nil {
			t.Fatal(err)
		}
		if len(after) != 2*n {
			t.Fatalf("%d assignments, want %d", len(after), 2*n)
		}
		for member, a := range after {
			if was, had := before[member]; had && was != a {
				t.Errorf("with %d replicas %s moved from %v to %v", n, member, was, a)
			}
		}
		before = after
	}
}

func TestPlaceExplainsPorts(t *testing.T) {
	at := func(port int) domain.Assignment { return domain.Assignment{Host: "local", Port: port} }
	every := make([]int, 0, lastFreePort-firstFreePort+1)
	for port := firstFreePort; port <= lastFreePort; port++ {
		every = append(every, port)
	}
	for _, tc := range []struct {
		name    string
		roles   map[string]role
		private bool
		current map[string]domain.Assignment
		busy    []int
		others  map[string]domain.GroupDocument
		want    []wanted
	}{
		{
			name:  "two roles overlap",
			roles: map[string]role{"ps": {portOf(8000), 4}, "worker": {portOf(8002), 4}},
			want: []wanted{{`roles["worker"].port`, []string{
				`roles "ps" (from 8000) and "worker" (from 8002)`,
				"127.0.0.1:8002 for m-worker-0 and m-ps-2; 127.0.0.1:8003 for m-worker-1 and m-ps-3",
			}}},
		},
		{
			name:  "another group has the ports",
			roles: map[string]role{"w": {portOf(9000), 9}},
			others: map[string]domain.GroupDocument{
				"old-1": other(domain.Resources{}, at(9001), at(9002), at(9003), at(9004), at(9005), at(9006)),
			},
			busy: []int{9001},
			want: []wanted{{`roles["w"].port`, []string{
				`group "old-1"`, "127.0.0.1:9001 for m-w-1 and old-1-w-x-0",
				"9005 for m-w-5 and old-1-w-x-4; and 1 more",
			}}},
		},
		{
			name:    "something else listens",
			roles:   map[string]role{"w": {portOf(9000), 3}},
			current: map[string]domain.Assignment{"m-w-0": at(9000)},
			busy:    []int{9000, 9002},
			want: []wanted{
				{`roles["w"].port`, []string{`role "w" (from port 9000)`, "listens on: 127.0.0.1:9002 for m-w-2;"}},
			},
		},
		{
			name:  "beyond the highest port",
			roles: map[string]role{"w": {portOf(65530), 10}},
			want: []wanted{
				{`roles["w"].port`, []string{"the 10 members", "65530 to 65539", "start at 65526 or lower"}},
			},
		},
		{
			name:    "beyond the highest port, with addresses of their own",
			roles:   map[string]role{"w": {portOf(65536), 10}},
			private: true,
			want:    []wanted{{`roles["w"].port`, []string{"port 65536", "highest port is 65535"}}},
		},
		{
			name:  "no free port left",
			roles: map[string]role{"w": {n: 3}},
			busy:  every[1:],
			want:  []wanted{{`roles["w"].port`, []string{"20000 to 29999 at 127.0.0.1", "m-w-1"}}},
		},
		{
			name:  "all clashes of several roles",
			roles: map[string]role{"a": {portOf(7000), 2}, "b": {portOf(7001), 1}, "c": {portOf(65535), 2}},
			busy:  []int{7000},
			want: []wanted{
				{`roles["c"].port`, nil}, {`roles["a"].port`, []string{"7000"}}, {`roles["b"].port`, []string{"7001"}},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(local(), tc.roles)
			in.SharedAddress, in.Current, in.Groups = !tc.private, tc.current, tc.others
			in.BusyPorts = map[string][]int{"127.0.0.1": tc.busy}
			got, ps := Place(in)
			if got != nil {
				t.Errorf("assignments %v beside problems", got)
			}
			checkProblems(t, ps, tc.want)
		})
	}
}
