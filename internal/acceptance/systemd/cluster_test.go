//go:build linux

package systemd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// reads are the data sources about a cluster and its group "job".
const reads = `
data "trainyard_cluster" "lab" {
  name       = trainyard_cluster.lab.name
  engine     = "systemd"
  endpoint   = trainyard_cluster.lab.endpoint
  depends_on = [trainyard_group.job]
}
data "trainyard_utilisation" "now" {
  cluster    = trainyard_cluster.lab
  depends_on = [trainyard_group.job]
}
`

// readLog is the data source of the log of a member of the group "job".
const readLog = `
data "trainyard_logs" "job" {
  cluster    = trainyard_cluster.lab
  member     = "job-worker-1"
  depends_on = [trainyard_group.job]
}
`

// Hosts are added to a cluster and removed from it, with their members; nothing of the cluster is left on a removed
// host.
func TestAccHosts(t *testing.T) {
	l := newLab(t, 0, 1, 2)
	one, two, three := l.hosts[0], l.hosts[1], l.hosts[2]
	update := acceptance.Planned(plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionUpdate))
	const clusterData, usage = "data.trainyard_cluster.lab", "data.trainyard_utilisation.now"
	var unit string // of a member; each start has a new one
	l.test(
		resource.TestStep{
			Config: l.config(l.cluster(one, two), waiting(2), reads),
			Check: resource.ComposeTestCheckFunc(
				l.expectMembers(1, 1, 0),
				resource.TestCheckResourceAttr(acceptance.TheLab, "endpoint", address(one)),
				resource.TestCheckResourceAttr(acceptance.TheJob, "members.job-worker-0",
					fmt.Sprintf("%s:%d", one.Address, l.port)),
				resource.TestCheckResourceAttr(acceptance.TheJob, "members.job-worker-1",
					fmt.Sprintf("%s:%d", two.Address, l.port)),
				resource.TestCheckResourceAttr(clusterData, "controller.state", "running"),
				resource.TestCheckResourceAttr(clusterData, "controller.host", one.Name),
				resource.TestCheckResourceAttr(clusterData, "agents.%", "2"),
				resource.TestCheckResourceAttr(clusterData, "agents."+two.Name+".state", "running"),
				resource.TestCheckResourceAttr(usage, "hosts.%", "2"),
				resource.TestCheckResourceAttr(usage, "members.%", "2"),
				resource.TestCheckNoResourceAttr(clusterData, "controller.metrics_address"),
				resource.TestCheckNoResourceAttr(clusterData, "agents."+two.Name+".metrics_address"),
				l.expectTop(one, two),
			),
		},
		resource.TestStep{
			PreConfig:        func() { l.awaitLines("job-worker-1", 1) },
			Config:           l.config(l.answering(l.cluster(one, two, three)), waiting(3), reads, readLog),
			ConfigPlanChecks: update,
			Check: resource.ComposeTestCheckFunc(
				l.expectMembers(1, 1, 1),
				resource.TestCheckResourceAttr("data.trainyard_logs.job", "lines.0", "hello from job-worker-1"),
				resource.TestCheckResourceAttr(clusterData, "controller.metrics_address",
					metricsAt(one, l.metricsPort()+1)),
				resource.TestCheckResourceAttr(clusterData, "agents."+three.Name+".metrics_address",
					metricsAt(three, l.metricsPort())),
				l.expectMetrics(one, two, three),
				func(*terraform.State) error { unit = l.unitOf(three, "job-worker-2"); return nil },
			),
		},
		resource.TestStep{
			Config: l.config(l.cluster(one, two, three), waiting(3)), ConfigPlanChecks: update,
			Check: resource.ComposeTestCheckFunc(
				l.expectSilence(one, two, three),
				func(*terraform.State) error { return acceptance.Differences(unit, l.unitOf(three, "job-worker-2")) },
			),
		},
		resource.TestStep{
			Config: l.config(l.cluster(one, three), waiting(3)), ConfigPlanChecks: update,
			Check: func(*terraform.State) error {
				l.expectNothingOn(two)
				return acceptance.Differences(3, l.running(3, one, three))
			},
		},
	)
}

// A member that somebody stops is restarted, and is no drift; a supervisor that somebody removes is restored by the
// next apply, and its members keep running meanwhile.
func TestAccHandsOnHosts(t *testing.T) {
	l := newLab(t, 1, 2)
	one, two := l.hosts[0], l.hosts[1]
	unit := layout.SupervisorUnit(l.name)
	config := func(workers int) string { return l.config(l.cluster(one, two), waiting(workers)) }
	l.test(
		resource.TestStep{Config: config(2), Check: l.expectMembers(0, 1, 1)},
		resource.TestStep{
			PreConfig: func() {
				stopped := l.unitOf(two, "job-worker-1")
				l.on(two, "systemctl stop -- %s", stopped)
				acctest.Eventually(l, "the member to be started again", func() bool {
					return l.unitOf(two, "job-worker-1") != stopped && l.members(two) == 1
				})
			},
			Config: config(2), PlanOnly: true,
		},
		resource.TestStep{
			PreConfig: func() {
				l.on(two,
					"systemctl disable --now --quiet %[1]s && rm /etc/systemd/system/%[1]s && systemctl daemon-reload",
					unit)
				l.must(acceptance.Differences(1, l.members(two)))
			},
			Config: config(1),
			Check: func(*terraform.State) error {
				state := strings.TrimSpace(l.on(two, "systemctl is-active %[1]s; systemctl is-enabled %[1]s", unit))
				return acceptance.Differences("active\nenabled", state)
			},
		},
	)
}

// A host that has lost everything of the cluster, as by a reinstallation, is set up again by the next apply, which also
// starts its members there. Nothing leaves the state.
func TestAccHostReinstalled(t *testing.T) {
	l := newLab(t, 0, 1)
	one, two := l.hosts[0], l.hosts[1]
	config := l.config(l.cluster(one, two), waiting(2))
	l.test(
		resource.TestStep{Config: config, Check: l.expectMembers(1, 1)},
		resource.TestStep{
			PreConfig: func() {
				// The folder goes first, and last: otherwise the controller would have the supervisor started again.
				l.on(two, `rm -rf %[2]s; systemctl stop trainyard@%[1]s.service; systemctl stop 'trainyard-%[1]s-*'
					rm -rf %[2]s %[3]s/trainyard@%[1]s.service %[3]s/*/trainyard@%[1]s.service; systemctl daemon-reload
					flock %[4]s sed -i '/ trainyard cluster %[1]s$/d' /root/.ssh/auth*_keys /home/*/.ssh/auth*_keys; true`,
					l.name, l.dir().Path(), layout.Units, layout.Clusters)
			},
			Config: config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate),
			),
			Check: l.expectMembers(1, 1),
		},
	)
}

// A plan works while one of the hosts is unreachable: it is empty, and a new group uses the other hosts.
func TestAccHostAway(t *testing.T) {
	acceptance.Test(t)
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: 2, Mounts: []string{shared}})
	l := openLab(t, bed, acctest.Build(t, acctest.Provider), 0, 1)
	away := l.hosts[1]
	config := l.config(l.cluster(l.hosts...), waiting(2))
	other := strings.ReplaceAll(job(`command = [local.member, "wait"]
  roles = { worker = { replicas = 1 } }`), `"job"`, `"other"`)
	l.test(
		resource.TestStep{Config: config, Check: l.expectMembers(1, 1)},
		// Existing logins, such as the controller's, stay.
		resource.TestStep{
			PreConfig: func() { l.on(away, "systemctl stop ssh.socket ssh.service") }, Config: config, PlanOnly: true,
		},
		resource.TestStep{Config: config + other, Check: l.expectMembers(2, 1)},
		resource.TestStep{
			PreConfig: func() { l.on(away, "systemctl start ssh.service") }, Config: config,
			Check: l.expectMembers(1, 1),
		},
	)
}
