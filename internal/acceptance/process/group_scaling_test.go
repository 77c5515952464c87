//go:build linux

package process_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// scale changes the number of workers of the group "job" as a policy does.
func (l *lab) scale(from, to int, remove ...string) {
	l.Helper()
	done, short, err := reconcile.Reconciler{
		Engine: l.engine(), Controller: true,
	}.Scale(acctest.Bounded(l), reconcile.Scaling{
		Group: "job", Role: "worker", From: from, To: to, Remove: remove, At: time.Now(), Why: "of the test",
	})
	l.must(err)
	if done.To != to || short != "" {
		l.Fatalf("of %d workers there are to be %d: %q", to, done.To, short)
	}
}

// expectWorkers returns a check that exactly this many workers of the group run.
func (l *lab) expectWorkers(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		document, err := engine.Get[domain.GroupDocument](l.Context(), l.engine(), "job")
		l.must(err)
		if document.Counts["worker"] != want || document.Scaling || document.Applying {
			return fmt.Errorf("the group is stored as %+v, and was to have %d workers", document, want)
		}
		acctest.Eventually(l, "the workers to run", func() bool {
			group, err := reconcile.Reconciler{Engine: l.engine()}.Read(l.Context(), "job")
			l.must(err)
			return group.Progress.Phase == domain.PhaseRunning && len(group.Observed) == len(group.Members)
		})
		return nil
	}
}

// meanwhile is something that happens between plan and apply.
type meanwhile func()

func (m meanwhile) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) {
	m()
}

// A count that a policy changed makes no diff. An apply for another reason, of a plan made before the change, keeps the
// new count.
func TestAccGroupScaledBetweenPlans(t *testing.T) {
	for name, roles := range map[string]string{
		"known to all":    `{ ps = { replicas = 1, port = local.port + 10 }, worker = { port = local.port } }`,
		"interchangeable": `{ master = { replicas = 1, port = local.port + 10 }, worker = { port = local.port } }`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			framework, other := "none", "ps"
			if name == "interchangeable" {
				framework, other = "spark", "master"
			}
			config := func(rate, another string) string {
				return l.config(theCluster, group("job", fmt.Sprintf(`
  framework = %q
  command   = [local.member, "wait"]
  env       = { RATE = %q }
  roles     = %s`, framework, rate, roles)), group("other", fmt.Sprintf(`
  command = [local.member, "wait"]
  env     = { RATE = %q }
  roles   = { worker = { replicas = 1, port = local.port + 19 } }`, another)))
			}
			nothing := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
			open := []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionUpdate),
				plancheck.ExpectUnknownValue(acceptance.TheJob, tfjsonpath.New("members")),
				plancheck.ExpectUnknownValue(acceptance.TheJob, tfjsonpath.New("placements")),
				plancheck.ExpectUnknownValue(acceptance.TheJob, tfjsonpath.New("cluster_spec")),
			}
			l.test(
				resource.TestStep{
					Config: config("1", "1"), Check: l.changes("+job-"+other+"-0", "+job-worker-0", "+other-worker-0"),
				},
				resource.TestStep{
					PreConfig: func() { l.scale(1, 4) }, Config: config("1", "1"), ConfigPlanChecks: nothing,
					Check: l.expectWorkers(4),
				},
				resource.TestStep{
					PreConfig: func() { l.scale(4, 2, "job-worker-1") }, Config: config("1", "1"),
					ConfigPlanChecks: nothing, Check: l.expectWorkers(2),
				},
				// The group changes, and its count changes between plan and apply.
				resource.TestStep{
					Config: config("2", "1"),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: append(open, meanwhile(func() { l.scale(2, 3) })),
					},
					Check: resource.ComposeTestCheckFunc(l.expectWorkers(3),
						resource.TestCheckResourceAttr(acceptance.TheJob, "members.%", "4")),
				},
				resource.TestStep{
					Config: config("3", "1"),
					ConfigPlanChecks: resource.ConfigPlanChecks{
						PreApply: append(open, meanwhile(func() { l.scale(3, 1) })),
					},
					Check: resource.ComposeTestCheckFunc(l.expectWorkers(1),
						resource.TestCheckResourceAttr(acceptance.TheJob, "members.%", "2")),
				},
				// The group doesn't change, but its count does while another one is applied: Terraform then plans all
				// of them once more.
				resource.TestStep{
					Config: config("3", "2"),
					ConfigPlanChecks: acceptance.Planned(
						plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionNoop),
						meanwhile(func() { l.scale(1, 2) }),
					),
					Check: l.expectWorkers(2),
				},
				resource.TestStep{Config: config("3", "2"), ConfigPlanChecks: nothing},
			)
		})
	}
}

// A role that starts to declare its replicas gets those, and one that stops doing so keeps its count.
func TestAccGroupDeclaresScaledCount(t *testing.T) {
	l := newLab(t)
	config := func(worker string) string {
		return l.job(fmt.Sprintf(`
  framework = "spark"
  command   = [local.member, "wait"]
  roles     = { master = { replicas = 1, port = local.port }, worker = { port = local.port + 1%s } }`, worker))
	}
	l.test(
		resource.TestStep{Config: config(""), Check: l.changes("+job-master-0", "+job-worker-0")},
		resource.TestStep{
			PreConfig: func() { l.scale(1, 4); l.scale(4, 3, "job-worker-1") },
			Config:    config(", replicas = 2"), ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check: resource.ComposeTestCheckFunc(l.changes("+job-worker-1"), l.expectWorkers(2)),
		},
		resource.TestStep{
			Config: config(""), ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check: l.expectWorkers(2),
		},
	)
}

// If scaling restarts nobody, existing members keep running, and new ones get all addresses.
func TestAccGroupScaledInPeace(t *testing.T) {
	l := newLab(t)
	config := l.job(`
  command = [local.member, "wait"]
  roles   = { worker = { port = local.port, on_scale = "none" } }`)
	known := func(member string) string {
		spec, err := statedir.Read[domain.MemberSpec](l.files.Document(statedir.Specs, member))
		l.must(err)
		return spec.Env["TRAINYARD_CLUSTER_SPEC"]
	}
	l.test(
		resource.TestStep{Config: config, Check: resource.ComposeTestCheckFunc(
			l.changes("+job-worker-0"),
			resource.TestCheckResourceAttr(acceptance.TheJob, "roles.worker.on_scale", "none"),
		)},
		resource.TestStep{
			PreConfig: func() { l.scale(1, 2) }, Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check: resource.ComposeTestCheckFunc(l.expectWorkers(2), l.changes("+job-worker-1"),
				func(*terraform.State) error {
					return acceptance.Differences(
						[]string{
							fmt.Sprintf(`{"worker":[%q]}`, l.address(0)),
							fmt.Sprintf(`{"worker":[%q,%q]}`, l.address(0), l.address(1)),
						},
						[]string{known("job-worker-0"), known("job-worker-1")},
					)
				}),
		},
		resource.TestStep{
			PreConfig: func() { l.scale(2, 1) }, Config: config,
			Check: resource.ComposeTestCheckFunc(l.expectWorkers(1), l.changes("-job-worker-1")),
		},
	)
}
