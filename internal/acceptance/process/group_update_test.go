//go:build linux

package process_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// Another name or another cluster replaces the group.
func TestAccGroupReplace(t *testing.T) {
	l := newLab(t)
	config := func(cluster, name string) string {
		return l.config(theCluster, fmt.Sprintf(`
resource "trainyard_cluster" "other" {
  name = "other"
}
resource "trainyard_group" "job" {
  cluster = trainyard_cluster.%s
  name    = %q
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 1, port = local.port } }
}`, cluster, name))
	}
	replace := acceptance.Action(plancheck.ResourceActionDestroyBeforeCreate)
	l.test(
		resource.TestStep{Config: config("lab", "job"), Check: l.changes("+job-worker-0")},
		resource.TestStep{
			Config: config("lab", "renamed"), ConfigPlanChecks: replace,
			Check: l.changes("-job-worker-0", "+renamed-worker-0"),
		},
		resource.TestStep{Config: config("other", "renamed"), ConfigPlanChecks: replace,
			Check: resource.ComposeTestCheckFunc(
				l.changes("-renamed-worker-0"),
				resource.TestCheckResourceAttr(acceptance.TheJob, "id", "other/renamed"),
				l.expectAlive(1),
			)},
	)
}

// A count that is left out is unmanaged: it starts at 1 and is kept.
func TestAccGroupUnmanagedReplicas(t *testing.T) {
	l := newLab(t)
	config := func(replicas string) string {
		return l.job(fmt.Sprintf(`
  command = [local.member, "wait"]
  roles   = { worker = { port = local.port%s } }`, replicas))
	}
	unmanaged := resource.TestCheckNoResourceAttr(acceptance.TheJob, "roles.worker.replicas")
	l.test(
		resource.TestStep{
			Config: config(""), Check: resource.ComposeTestCheckFunc(unmanaged, l.changes("+job-worker-0")),
		},
		resource.TestStep{Config: config(", replicas = 2"), Check: l.changes("~job-worker-0", "+job-worker-1")},
		resource.TestStep{Config: config(""), Check: resource.ComposeTestCheckFunc(unmanaged, l.changes())},
	)
}

// Moving the resource in the configuration does not affect the group.
func TestAccGroupMoved(t *testing.T) {
	l := newLab(t)
	const attributes = `
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 1, port = local.port } }`
	moved := l.config(theCluster, `
moved {
  from = trainyard_group.job
  to   = trainyard_group.training
}
resource "trainyard_group" "training" {
  cluster = trainyard_cluster.lab
  name    = "job"`+attributes+`
}`)
	l.test(
		resource.TestStep{Config: l.job(attributes), Check: l.changes("+job-worker-0")},
		resource.TestStep{
			Config: moved,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction("trainyard_group.training",
				plancheck.ResourceActionNoop)),
			Check: l.changes(),
		},
	)
}

// A role's empty list overrides its group's. Without one of the group, it means the same as none.
func TestAccGroupEmptyLists(t *testing.T) {
	l := newLab(t)
	config := func(group, role string) string {
		return l.job(fmt.Sprintf(`
  command = [local.member, "wait"]
  %s
  roles   = { worker = { replicas = 1, port = local.port, %s } }`, group, role))
	}
	const args, mounts = `args = ["wait"]`, `mounts = [{ source = "/tmp", target = "/tmp" }]`
	l.test(
		resource.TestStep{Config: config(args, ""), Check: l.changes("+job-worker-0")},
		resource.TestStep{Config: config(args, "args = []"), Check: l.changes("~job-worker-0")},
		resource.TestStep{Config: config("args = []", "args = []"), Check: l.changes()},
		resource.TestStep{Config: config("", "args = [], mounts = []"), Check: l.changes()},
		resource.TestStep{Config: config(mounts, "args = [], mounts = []"), Check: l.changes()},
		resource.TestStep{Config: config(mounts, ""), Check: l.changes("~job-worker-0")},
	)
}
