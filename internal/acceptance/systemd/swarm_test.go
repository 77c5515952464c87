//go:build linux

package systemd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// A Swarm is formed of hosts reached through their own OpenSSH server, as users' hosts are: their Docker Engines listen
// nowhere else. After a destroy, they are in no Swarm.
func TestAccSwarmOverOpenSSH(t *testing.T) {
	acceptance.Test(t)
	l := openLab(t, dockerBed(t), acctest.Build(t, acctest.Provider), 0, 1)
	var hosts strings.Builder
	for i, host := range l.hosts {
		role := []string{"manager", "worker"}[i]
		fmt.Fprintf(&hosts, "    %s = { address = \"ssh://root@%s\", advertise_address = %q, role = %q }\n", host.Name,
			host.SSH, host.Address, role)
	}
	w := acctest.NewWorkspace(t, l.provider)
	took := func(what string, do func()) {
		began := time.Now()
		do()
		t.Logf("%s: %s", what, time.Since(began).Round(10*time.Millisecond))
	}
	cluster := strings.Replace(l.clusterOf(hosts.String()), `"systemd"`, `"swarm"`, 1)
	w.Write("main.tf", required+l.config(cluster))
	took("formed", func() { w.Must("apply", "-auto-approve") })
	took("planned", func() { w.ExpectNoChange("after the apply") })
	w.Write("main.tf", required+l.config(cluster, job(fmt.Sprintf(`image = %q
  args  = ["wait"]
  roles = { worker = { replicas = 2, placement = { strategy = "one_per_host" } } }
  container = { pull_policy = "never" }`, trainer))))
	took("members started", func() { w.Must("apply", "-auto-approve") })
	for i, host := range l.hosts {
		if output := l.on(
			host, "docker ps --quiet --filter label=trainyard.cluster=%s --filter label=trainyard.role=worker", l.name,
		); strings.Count(output, "\n") != 0 || output == "" {
			t.Errorf("%s runs %q instead of one member", host.Name, output)
		}
		info, err := host.Client().Info(t.Context())
		l.must(err)
		if info.Swarm.LocalNodeState != swarm.LocalNodeStateActive || info.Swarm.ControlAvailable != (i == 0) ||
			info.Swarm.NodeAddr != host.Address.String() {
			t.Errorf("%s is in the Swarm so: %+v", host.Name, info.Swarm)
		}
	}
	w.ExpectNoChange("with members")
	took("destroyed", func() { w.Must("destroy", "-auto-approve") })
	for _, host := range l.hosts {
		info, err := host.Client().Info(t.Context())
		l.must(err)
		if info.Swarm.LocalNodeState != swarm.LocalNodeStateInactive {
			t.Errorf("after the destroy, %s is in a Swarm: %+v", host.Name, info.Swarm)
		}
	}
}
