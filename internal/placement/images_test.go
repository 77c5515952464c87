package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// imaged returns a role with an image, whose members publish ports.
func imaged(ports ...string) domain.Role {
	r := publishing(ports...)
	r.Image = "x"
	return r
}

// TestImages checks that, among members that share addresses, those with an image publish ports that nobody else uses
// there.
func TestImages(t *testing.T) {
	const first = firstFreePort
	published := "20000/tcp"
	for name, test := range map[string]struct {
		roles   map[string]role
		others  map[string]domain.GroupDocument
		current map[string]domain.Assignment
		// hosts and ports are those of members; says is part of the expected problem instead.
		hosts map[string]string
		ports map[string]int
		says  string
	}{
		"two of an image are apart": {
			roles: map[string]role{"w": {imaged(published), 2}},
			hosts: map[string]string{"m-w-0": "a", "m-w-1": "b"}, ports: map[string]int{"m-w-0": first, "m-w-1": first},
		},
		"plain programs publish nothing": {
			roles: map[string]role{"w": {publishing(published), 3}},
			hosts: map[string]string{"m-w-0": "a", "m-w-1": "b", "m-w-2": "a"},
			ports: map[string]int{"m-w-0": first, "m-w-1": first, "m-w-2": first + 1},
		},
		"a free port is one that nobody publishes": {
			roles: map[string]role{"a": {imaged(published), 1}, "w": {n: 2}},
			hosts: map[string]string{"m-a-0": "a", "m-w-0": "b", "m-w-1": "a"},
			ports: map[string]int{"m-a-0": first, "m-w-0": first, "m-w-1": first + 1},
		},
		"a port that another group publishes": {
			roles:  map[string]role{"w": {n: 1}},
			others: map[string]domain.GroupDocument{"old-1": otherImaged(published, "a", "b")},
			hosts:  map[string]string{"m-w-0": "a"}, ports: map[string]int{"m-w-0": first + 1},
		},
		"a port is given up where somebody publishes it by now": {
			roles:   map[string]role{"a": {imaged("20007/tcp"), 1}, "w": {n: 1}},
			current: map[string]domain.Assignment{"m-w-0": {Host: "a", Port: 20007}, "m-a-0": {Host: "a", Port: 20001}},
			hosts:   map[string]string{"m-a-0": "a", "m-w-0": "a"},
			ports:   map[string]int{"m-a-0": 20001, "m-w-0": first},
		},
		"a member publishes its own port": {
			roles: map[string]role{"w": {withPort(imaged("8080/tcp"), 8080), 2}},
			hosts: map[string]string{"m-w-0": "a", "m-w-1": "b"}, ports: map[string]int{"m-w-0": 8080, "m-w-1": 8080},
		},
		"udp is in nobody's way": {
			roles: map[string]role{"a": {imaged("8080/udp"), 2}, "w": {portOf(8080), 1}},
			hosts: map[string]string{"m-a-0": "a", "m-a-1": "b", "m-w-0": "a"},
			ports: map[string]int{"m-a-0": first, "m-a-1": first, "m-w-0": 8080},
		},
		"a role's port that another role publishes": {
			roles: map[string]role{"a": {imaged("8080/tcp"), 2}, "w": {portOf(8080), 1}},
			says:  `role "w" (from port 8080) needs ports that other members publish: a:8080 for m-w-0 and m-a-0`,
		},
		"more members than hosts": {
			roles: map[string]role{"w": {imaged("8080/tcp"), 3}},
			says:  "3 members, each of which publishes 8080/tcp on its host",
		},
	} {
		in := input(map[string]domain.Host{"a": host("a", capacity(4, 4096)), "b": host("b", capacity(4, 4096))},
			test.roles)
		in.SharedAddress, in.Images, in.Groups, in.Current = true, true, test.others, test.current
		assignments, problems := Place(in)
		if test.says != "" {
			if len(problems) != 1 || !strings.Contains(problems[0].Detail, test.says) {
				t.Errorf("%s: got %v, want what says %q", name, problems, test.says)
			}
			continue
		}
		hosts, ports := map[string]string{}, map[string]int{}
		for member, a := range assignments {
			hosts[member], ports[member] = a.Host, a.Port
		}
		if diff := cmp.Diff(test.hosts, hosts) + cmp.Diff(test.ports, ports); diff != "" || problems.Err() != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, problems, diff)
		}
	}
}

// withPort returns the role with a port of its own.
func withPort(r domain.Role, port int) domain.Role {
	r.Port = &port
	return r
}

// otherImaged returns another group with an image, and a member on each host that publishes a port.
func otherImaged(port string, hosts ...string) domain.GroupDocument {
	doc := otherPublishing(port, hosts...)
	doc.Spec.Image = "x"
	return doc
}
