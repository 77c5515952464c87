package placement

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// wanted is the expected path of a problem, and parts of its summary and detail.
type wanted struct {
	path  string
	parts []string
}

func checkProblems(t *testing.T, got domain.Problems, want []wanted) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(got), len(want), got.Err())
	}
	for i, w := range want {
		if got[i].Path.String() != w.path || got[i].Warning {
			t.Errorf("problem %d is at %s (warning: %v), want an error at %s", i, got[i].Path, got[i].Warning, w.path)
		}
		for _, part := range w.parts {
			if !strings.Contains(got[i].Error(), part) {
				t.Errorf("problem %d lacks %q:\n%s", i, part, got[i].Error())
			}
		}
	}
}

func TestPlaceExplains(t *testing.T) {
	for _, tc := range []struct {
		name   string
		hosts  map[string]domain.Host
		roles  map[string]role
		others map[string]domain.GroupDocument
		// current are the hosts of members, closed those that take no new ones, and reserved what others have reserved.
		current  map[string]string
		closed   []string
		reserved map[string]domain.Resources
		room     int
		want     []wanted
	}{
		{
			name: "no hosts",
			want: []wanted{{`cluster`, []string{`"lab" has no hosts`}}},
		},
		{
			name: "no host with the labels",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=t4"), "b": host("b", capacity(4, 4096)),
			},
			roles: map[string]role{
				"w": {
					domain.Role{Placement: domain.Placement{Labels: map[string]string{"zone": "1", "gpu": "v100"}}}, 2,
				},
			},
			want: []wanted{{
				`roles["w"].placement.labels`,
				[]string{`{ gpu = "v100", zone = "1" }`, `host a: { gpu = "t4" }; host b: no labels`},
			}},
		},
		{
			name: "more members than hosts for one per host",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=t4"), "b": host("b", capacity(4, 4096), "gpu=t4"),
				"c": host("c", capacity(4, 4096)),
			},
			roles: map[string]role{"w": {domain.Role{
				Placement: domain.Placement{Strategy: domain.OnePerHost, Labels: map[string]string{"gpu": "t4"}},
			}, 3}},
			want: []wanted{{
				`roles["w"].placement.strategy`,
				[]string{"3 members", `2 hosts labelled { gpu = "t4" } (a; b)`, "set replicas to 2 or less"},
			}},
		},
		{
			name:  "more members than hosts for a published port",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{"w": {publishing("8080/tcp"), 3}},
			want: []wanted{{`roles["w"].container.ports`, []string{
				"Published port taken", "3 members, each of which publishes 8080/tcp on its host",
				`"lab" has 2 hosts; set replicas to 2 or less`,
			}}},
		},
		{
			name: "a published port that another group has",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096)), "c": host("c", capacity(4, 4096)),
			},
			roles:  map[string]role{"w": {publishing("8080/tcp", "9000/udp"), 2}},
			others: map[string]domain.GroupDocument{"old-1": otherPublishing("9000/udp", "a")},
			closed: []string{"c"},
			want: []wanted{{`roles["w"].container.ports`, []string{
				"2 members, each of which publishes 8080/tcp, 9000/udp on its host",
				"1 of which have it in use: host a: 9000/udp by old-1-w-x-0 of group old-1",
				"1 of which take no new members: host c is down", "set replicas to 1 or less",
			}}},
		},
		{
			name:  "requests beyond any host, of both resources",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(6.5, 2048))},
			roles: map[string]role{"w": {domain.Role{Resources: requests(8, 8192)}, 1}},
			want: []wanted{
				{
					`roles["w"].resources.cpus`,
					[]string{"requests 8 CPUs", "has 6.5 CPUs", "host a: 4 CPUs; host b: 6.5 CPUs"},
				},
				{
					`roles["w"].resources.memory_mib`,
					[]string{"requests 8192 MiB", "has 4096 MiB", "host a: 4096 MiB; host b: 2048 MiB"},
				},
			},
		},
		{
			name:  "not enough CPUs beside other groups and roles",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{
				"aux": {domain.Role{Resources: requests(1, 512)}, 1},
				"w":   {domain.Role{Resources: requests(2, 1024)}, 4},
			},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(2, 3584), domain.Assignment{Host: "a", Port: 1}),
			},
			want: []wanted{
				{`roles["w"].resources.cpus`, []string{
					"4 members of 2 CPUs and 1024 MiB each, and only 2 of them fit",
					"host a: 2 of 4 CPUs free, 512 of 4096 MiB free; host b: 4 of 4 CPUs free, 4096 of 4096 MiB free",
				}},
			},
		},
		{
			name:  "not enough memory",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{"w": {domain.Role{Resources: requests(0, 3000)}, 3}},
			want: []wanted{
				{`roles["w"].resources.memory_mib`, []string{"3 members of 3000 MiB each, and only 2 of them fit"}},
			},
		},
		{
			name:  "one per host, with the capacity at fault",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{
				"w": {
					domain.Role{Resources: requests(2, 0), Placement: domain.Placement{Strategy: domain.OnePerHost}}, 2,
				},
			},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(3, 0), domain.Assignment{Host: "b", Port: 1}),
			},
			want: []wanted{{`roles["w"].resources.cpus`, []string{
				"2 CPUs each, at most one per host, and only 1 of them fit", "host a: 4 of 4 CPUs free",
				"host b: 1 of 4 CPUs free",
			}}},
		},
		{
			name: "one per host, with the memory of the only other host at fault",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096)), "c": host("c", capacity(4, 4096)),
			},
			roles: map[string]role{"w": {
				domain.Role{Resources: requests(3, 1024), Placement: domain.Placement{Strategy: domain.OnePerHost}}, 3,
			}},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(0, 4000), domain.Assignment{Host: "b", Port: 1}),
			},
			want: []wanted{{
				`roles["w"].resources.memory_mib`,
				[]string{"only 2 of them fit", "host b: 4 of 4 CPUs free, 96 of 4096 MiB free"},
			}},
		},
		{
			name: "many hosts are counted, not listed",
			hosts: func() map[string]domain.Host {
				hosts := map[string]domain.Host{}
				for name := range strings.SplitSeq("abcdefgh", "") {
					hosts[name] = host(name, capacity(1, 1))
				}
				return hosts
			}(),
			roles: map[string]role{"w": {domain.Role{Resources: requests(1, 0)}, 9}},
			want: []wanted{{
				`roles["w"].resources.cpus`,
				[]string{"only 8 of them fit", "host e: 1 of 1 CPU free, 1 of 1 MiB free; and 3 more"},
			}},
		},
		{
			name:  "each role once, and roles that fit not at all",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096))},
			roles: map[string]role{
				"ps": {domain.Role{Resources: requests(0, 9999)}, 3}, "ok": {n: 1},
				"w": {domain.Role{Placement: domain.Placement{Strategy: domain.OnePerHost}}, 5},
			},
			want: []wanted{{`roles["w"].placement.strategy`, nil}, {`roles["ps"].resources.memory_mib`, nil}},
		},
		{
			name:  "hosts that are not there, each",
			hosts: map[string]domain.Host{"gpu1": host("a", capacity(4, 4096)), "gpu2": host("b", capacity(4, 4096))},
			roles: map[string]role{
				"none": {domain.Role{Placement: domain.Placement{Hosts: []string{"gpu9"}}}, 0},
				"w":    {domain.Role{Placement: domain.Placement{Hosts: []string{"gpu3", "gpu1", "gpu4"}}}, 2},
			},
			want: []wanted{
				{`roles["none"].placement.hosts[0]`, []string{`"lab" has no host "gpu9"`}},
				{`roles["w"].placement.hosts[0]`, []string{`"lab" has no host "gpu3"; its hosts are gpu1, gpu2`}},
				{`roles["w"].placement.hosts[2]`, []string{`no host "gpu4"`}},
			},
		},
		{
			name: "no host with the labels among those named",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096), "gpu=t4"), "b": host("b", capacity(4, 4096), "gpu=v100"),
			},
			roles: map[string]role{"w": {
				domain.Role{
					Placement: domain.Placement{Labels: map[string]string{"gpu": "v100"}, Hosts: []string{"a"}},
				},
				2,
			}},
			want: []wanted{{
				`roles["w"].placement.labels`,
				[]string{`{ gpu = "v100" }`, `has none among those in placement.hosts (a): host a: { gpu = "t4" };`},
			}},
		},
		{
			name: "more members than named hosts for one per host",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096)), "c": host("c", capacity(4, 4096)),
			},
			roles: map[string]role{
				"w": {
					domain.Role{Placement: domain.Placement{Strategy: domain.OnePerHost, Hosts: []string{"a", "b"}}}, 3,
				},
			},
			want: []wanted{{`roles["w"].placement.strategy`, []string{
				"3 members", "2 hosts among those in placement.hosts (a, b) (a; b);", "set replicas to 2 or less",
			}}},
		},
		{
			name:  "not enough CPUs on the named hosts",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{
				"w": {domain.Role{Resources: requests(3, 0), Placement: domain.Placement{Hosts: []string{"b"}}}, 2},
			},
			want: []wanted{{`roles["w"].resources.cpus`, []string{
				"only 1 of them fit",
				"1 host among those in placement.hosts (b) for this role: host b: 4 of 4 CPUs free",
			}}},
		},
		{
			name: "one per host, with a host that is closed",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096)), "c": host("c", capacity(4, 4096)),
			},
			roles:   map[string]role{"w": {domain.Role{Placement: domain.Placement{Strategy: domain.OnePerHost}}, 3}},
			current: map[string]string{"m-w-1": "c"},
			closed:  []string{"b", "c"},
			want: []wanted{{`roles["w"].placement.strategy`, []string{
				"3 members", "3 hosts (a; b; c), 2 of which take no new members: host b is down; host c is down;",
				"set replicas to 2 or less",
			}}},
		},
		{
			name:    "all hosts closed",
			hosts:   map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles:   map[string]role{"w": {n: 3}},
			current: map[string]string{"m-w-2": "b"},
			closed:  []string{"a", "b"},
			want: []wanted{{`roles["w"].placement`, []string{
				"No host takes new members", "3 members, of which 1 can stay",
				"2 of which take no new members: host a is down; host b is down",
			}}},
		},
		{
			name:   "not enough CPUs beside a closed host",
			hosts:  map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(8, 4096))},
			roles:  map[string]role{"w": {domain.Role{Resources: requests(3, 0)}, 2}},
			closed: []string{"b"},
			want: []wanted{{`roles["w"].resources.cpus`, []string{
				"2 members of 3 CPUs each, and only 1 of them fit", "host a: 4 of 4 CPUs free",
				"host b: 8 of 8 CPUs free", ", 1 of which take no new members: host b is down; lower the request",
			}}},
		},
		{
			name: "not enough memory, whatever a closed host lacks",
			hosts: map[string]domain.Host{
				"a": host("a", capacity(4, 1024)), "b": host("b", capacity(1, 4096)), "c": host("c", capacity(2, 4096)),
			},
			roles:  map[string]role{"w": {domain.Role{Resources: requests(2, 2048)}, 1}},
			closed: []string{"b", "c"},
			want:   []wanted{{`roles["w"].resources.memory_mib`, []string{"only 0 of them fit"}}},
		},
		{
			name:  "not enough beside what others have reserved",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			roles: map[string]role{"w": {domain.Role{Resources: requests(2, 1024)}, 2}},
			others: map[string]domain.GroupDocument{
				"old-1": other(resources(1, 0), domain.Assignment{Host: "a", Port: 1}),
			},
			reserved: map[string]domain.Resources{"a": resources(2, 0), "b": resources(0.5, 2048)},
			want: []wanted{{`roles["w"].resources.cpus`, []string{
				"only 1 of them fit", "host a: 1 of 4 CPUs free, 2 reserved by other services, 4096 of 4096 MiB free; ",
				"host b: 3.5 of 4 CPUs free, 0.5 reserved by other services, 2048 of 4096 MiB free, 2048 reserved by other services;",
			}}},
		},
		{
			name:  "more members than addresses",
			hosts: map[string]domain.Host{"a": host("a", capacity(4, 4096))},
			roles: map[string]role{"ps": {n: 1}, "w": {n: 4}},
			others: map[string]domain.GroupDocument{
				"old-1": other(domain.Resources{}, domain.Assignment{Host: "a"}, domain.Assignment{Host: "gone"}),
			},
			room: 6,
			want: []wanted{{`roles`, []string{
				"Not enough addresses", "addresses for 6 members",
				`group "m" would have 5 beside the 2 of other groups`, "a larger network.subnet",
			}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := input(tc.hosts, tc.roles)
			in.Groups, in.Current, in.Closed, in.Reserved, in.Room = tc.others, on(tc.current), down(tc.closed...),
				tc.reserved, tc.room
			got, ps := Place(in)
			if got != nil {
				t.Errorf("assignments %v beside problems", got)
			}
			checkProblems(t, ps, tc.want)
		})
	}
}

// TestPlaceCountsAddresses checks that as many members fit as there are addresses, and that existing ones are never an
// error.
func TestPlaceCountsAddresses(t *testing.T) {
	in := input(map[string]domain.Host{"a": host("a", capacity(4, 4096))}, map[string]role{"w": {n: 2}})
	in.Groups = map[string]domain.GroupDocument{
		"old-1": other(domain.Resources{}, domain.Assignment{Host: "a"}),
		"m":     {Assignments: on(map[string]string{"m-w-0": "a"})},
	}
	for _, tc := range []struct {
		room    int
		current map[string]string
		fits    bool
	}{
		{0, nil, true},
		{3, nil, true},
		{2, nil, false},
		{2, map[string]string{"m-w-0": "a"}, false},
		{2, map[string]string{"m-w-0": "a", "m-w-1": "a"}, true},
	} {
		in.Room, in.Current = tc.room, on(tc.current)
		if _, ps := Place(in); (ps.Err() == nil) != tc.fits {
			t.Errorf("3 members on %d addresses, with %v: %v", tc.room, tc.current, ps.Err())
		}
	}
}
