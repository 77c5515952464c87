package nodes

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestCheckSockets(t *testing.T) {
	f := &facts{nodes: []swarm.Node{{ID: "id-d", Spec: swarm.NodeSpec{Role: swarm.NodeRoleManager}}}}
	p := plan{cluster: domain.Cluster{Hosts: map[string]domain.Host{
		"a": {Role: domain.HostManager, Address: "ssh://a"},
		"b": {Role: domain.HostManager, Address: "ssh://b/run/user/1000/docker.sock"},
		"c": {Role: domain.HostWorker, Socket: "/run/other.sock"},
		"d": {ID: "id-d"},
	}}}
	p.checkSockets(f)
	if len(p.problems) != 1 || p.problems.Err() != nil || p.problems[0].Path.String() != `hosts["b"].socket` ||
		!strings.Contains(p.problems[0].Error(),
			`the Docker socket of host "b" is at /run/user/1000/docker.sock, that of most managers at /var/run/docker.sock`) {
		t.Errorf("the problems are %v", p.problems)
	}
}
