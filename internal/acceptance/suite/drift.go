//go:build linux

package suite

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Changes made behind Terraform's back show in the plan, and are repaired without touching anything else.
func groupDrift(l *Lab) {
	config := l.job(`
  command = [local.member, "wait"]
  roles = {
    ps     = { replicas = 1, port = local.port }
    worker = { replicas = 2, port = local.port + 10, env = { RATE = "0.1" } }
  }`)
	mend := func(drift func(), changes []string, checks ...plancheck.PlanCheck) resource.TestStep {
		return resource.TestStep{
			PreConfig: drift,
			Config:    config,
			ConfigPlanChecks: acceptance.Planned(append(checks,
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate))...),
			Check: resource.ComposeTestCheckFunc(l.changes(changes...), l.expectAlive(3)),
		}
	}
	l.test(
		resource.TestStep{Config: config, Check: l.changes("+job-ps-0", "+job-worker-0", "+job-worker-1")},
		mend(func() {
			l.shell("rm %s", l.Dir.Document(statedir.Specs, "job-worker-1"))
			acctest.Eventually(l, "the end of job-worker-1",
				func() bool { _, found := l.instances()["job-worker-1"]; return !found })
		}, []string{"~job-worker-1"},
			acceptance.Shows(acceptance.TheJob, acceptance.Attribute("roles", "worker", "replicas"), 1, 2)),
		mend(func() {
			l.edit("job", func(document *domain.GroupDocument) {
				role, three := document.Spec.Roles["worker"], 3
				role.Replicas, role.Env = &three, map[string]string{"RATE": "0.2"}
				document.Spec.Roles["worker"] = role
			})
		}, nil,
			acceptance.Shows(acceptance.TheJob, acceptance.Attribute("roles", "worker", "env", "RATE"), "0.2", "0.1")),
		mend(func() {
			// Also carried out, as if by somebody with another configuration.
			reconciler := reconcile.Reconciler{Engine: l.Open()}
			group, err := reconciler.Read(l.Context(), "job")
			l.must(err)
			role, three := group.Document.Spec.Roles["worker"], 3
			role.Replicas = &three
			group.Document.Spec.Roles["worker"] = role
			l.must(reconciler.Update(l.Context(), group.Document.Spec))
		}, []string{"~job-ps-0", "~job-worker-0", "~job-worker-1"},
			acceptance.Shows(acceptance.TheJob, acceptance.Attribute("roles", "worker", "replicas"), 3, 2)),
	)
}

// What is gone is recreated. What still exists of it is not created twice.
func disappears(l *Lab) {
	config := l.job(`
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 2, port = local.port } }`)
	l.test(
		resource.TestStep{Config: config, Check: l.changes("+job-worker-0", "+job-worker-1")},
		resource.TestStep{
			PreConfig: func() { l.shell("rm %s", l.Dir.Item(engine.Key{Kind: domain.GroupKind, Name: "job"})) },
			Config:    config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionNoop),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionCreate),
			),
			Check: resource.ComposeTestCheckFunc(l.changes(), l.expectAlive(2)),
		},
		resource.TestStep{
			PreConfig: func() { acctest.EndCluster(l, l.Open()) },
			Config:    config,
			ConfigPlanChecks: acceptance.Planned(
				plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionCreate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionCreate),
			),
			Check: resource.ComposeTestCheckFunc(l.changes("~job-worker-0", "~job-worker-1"), l.expectAlive(2)),
		},
	)
}

// A finished group is not drift. Triggers make it run again.
func groupCompletes(l *Lab) {
	config := func(run int) string {
		return l.job(fmt.Sprintf(`
  framework = "tensorflow"
  roles = {
    ps     = { replicas = 1, port = local.port, command = [local.member, "wait"] }
    worker = { replicas = 1, port = local.port + 10, command = [local.member, "exit:0"] }
  }
  wait_for = "completed"
  triggers = { run = "%d" }`, run))
	}
	completed := resource.ComposeTestCheckFunc(l.expectStates(map[string]domain.State{
		"job-ps-0": domain.StateStopped, "job-worker-0": domain.StateCompleted,
	}), l.expectAlive(0))
	l.test(
		resource.TestStep{
			Config: config(1), Check: resource.ComposeTestCheckFunc(l.changes("+job-ps-0", "+job-worker-0"), completed),
		},
		resource.TestStep{
			Config: config(1), ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()), Check: l.changes(),
		},
		resource.TestStep{
			Config:           config(2),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check:            resource.ComposeTestCheckFunc(l.changes("~job-ps-0", "~job-worker-0"), completed),
		},
	)
}

// A member that failed while the group runs is not Terraform's concern: the next plan is empty.
func groupMemberFails(l *Lab) {
	config := l.job(`
  command = [local.member, "wait"]
  roles   = { worker = { replicas = 2, port = local.port, restart = { condition = "never" } } }`)
	l.test(
		resource.TestStep{Config: config, Check: l.changes("+job-worker-0", "+job-worker-1")},
		resource.TestStep{
			PreConfig: func() {
				l.kill("job-worker-1")
				acctest.Eventually(l, "the failure of job-worker-1",
					func() bool { return l.state("job-worker-1").State == domain.StateFailed })
			},
			Config:           config,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			Check:            l.changes(),
		},
	)
}
