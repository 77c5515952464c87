//go:build linux

package suite

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const thePolicy = "trainyard_autoscaling_policy.it"

// scaling returns the configuration of a policy with these attributes for the workers of the group "job".
func scaling(attributes string) string {
	return "resource \"trainyard_autoscaling_policy\" \"it\" {\n  cluster = trainyard_cluster.lab\n  group   = " +
		"trainyard_group.job.name\n  role    = \"worker\"\n" + attributes + "\n}\n"
}

// idle is a metric of waiting workers, for which one of them is enough.
const idle = `
  metrics = { cpu = { source = { agent = { measure = "cpus" } }, algorithm = { target = { value = 1 } } } }
`

// policy returns the stored policy for the workers of the group "job".
func (l *Lab) policy() domain.AutoscalingPolicyDocument {
	l.Helper()
	policies, err := engine.List[domain.AutoscalingPolicyDocument](l.Context(), l.Open())
	l.must(err)
	return policies["job/worker"]
}

// expectPolicy returns a check of the stored policy; "" for none.
func (l *Lab) expectPolicy(want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var got string
		if p := l.policy(); p.Revision > 0 {
			got = fmt.Sprintf("%d to %d, after %d", p.Spec.Min, p.Spec.Max, p.Before)
		}
		return acceptance.Differences(want, got)
	}
}

// A policy is created with its group, changed in place, recreated when it is gone, and shown as drift after somebody
// else has changed it. The group's members are not affected.
func aPolicy(l *Lab) {
	config := func(most int) string {
		return l.job(waiting("")) + scaling(fmt.Sprintf(
			"  min = 1\n  max = %d\n  interval = \"10s\"\n  scale_in = { stabilisation_window = \"60s\" }%s", most,
			idle,
		))
	}
	known := func(name string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(thePolicy, tfjsonpath.New(name), check)
	}
	acted := func(want plancheck.ResourceActionType) plancheck.PlanCheck {
		return plancheck.ExpectResourceAction(thePolicy, want)
	}
	l.test(
		resource.TestStep{
			Config: config(4),
			ConfigPlanChecks: acceptance.Planned(acted(plancheck.ResourceActionCreate),
				plancheck.ExpectUnknownValue(thePolicy, tfjsonpath.New("id"))),
			ConfigStateChecks: []statecheck.StateCheck{
				known("id", knownvalue.StringExact(l.id("job", "worker"))),
				known("group", knownvalue.StringExact("job")), known("max", knownvalue.Int64Exact(4)),
				known("interval", knownvalue.StringExact("10s")), known("initial", knownvalue.Null()),
				known("paused", knownvalue.Null()), known("on_destroy", knownvalue.Null()),
			},
			Check: resource.ComposeTestCheckFunc(l.expectPolicy("1 to 4, after 1"), l.changes("+job-worker-0")),
		},
		resource.TestStep{
			Config: config(6),
			ConfigPlanChecks: acceptance.Planned(acted(plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionNoop)),
			Check: resource.ComposeTestCheckFunc(l.expectPolicy("1 to 6, after 1"), l.changes()),
		},
		// Other notations of the same values are no change.
		resource.TestStep{
			Config:           strings.NewReplacer(`"60s"`, `"1m"`, `"10s"`, `"10000ms"`).Replace(config(6)),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
		},
		resource.TestStep{
			PreConfig: func() {
				document := l.policy()
				document.Spec.Max, document.Spec.Paused = 3, domain.PauseAll
				_, err := engine.Put(l.Context(), l.Open(), document)
				l.must(err)
			},
			Config: config(6),
			ConfigPlanChecks: acceptance.Planned(
				acted(plancheck.ResourceActionUpdate), acceptance.Shows(thePolicy, tfjsonpath.New("max"), 3, 6),
				acceptance.Shows(thePolicy, tfjsonpath.New("paused"), "all", nil),
			),
			Check: l.expectPolicy("1 to 6, after 1"),
		},
		resource.TestStep{
			PreConfig: func() {
				l.must(engine.Delete[domain.AutoscalingPolicyDocument](l.Context(), l.Open(), "job/worker"))
			},
			Config:           config(6),
			ConfigPlanChecks: acceptance.Planned(acted(plancheck.ResourceActionCreate)),
			Check:            resource.ComposeTestCheckFunc(l.expectPolicy("1 to 6, after 1"), l.changes()),
		},
		// Removing it leaves the group as it is.
		resource.TestStep{
			Config: l.job(waiting("")),
			ConfigPlanChecks: acceptance.Planned(acted(plancheck.ResourceActionDestroy),
				plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionNoop)),
			Check: resource.ComposeTestCheckFunc(l.expectPolicy(""), l.changes()),
		},
	)
}

// The role follows the memory that its members hold, up and down again, and all plans are empty. The decisions can be
// read later.
func policyFollowsLoad(l *Lab) {
	load := acceptance.NewLoad(l.T)
	config := l.config(group(
		"job",
		fmt.Sprintf("command = [local.member, %q]\n  roles = { worker = { on_scale = \"none\" } }", "hold:"+load.File),
	), acceptance.Follows("job", `min = 1
  max      = 3
  metrics  = { memory = { source = { agent = { measure = "memory_mib" } }, window = "2s", algorithm = { target = { value = 40 } } } }
  scale_in = { stabilisation_window = "2s" }`))
	workers := func(mib, want int) func() {
		return func() {
			set := load.Set(mib)
			acctest.Eventually(l, fmt.Sprintf("%d workers", want), func() bool { return l.Alive() == want })
			l.Logf("%d workers run %s after the load was set", want, time.Since(set).Round(time.Millisecond))
		}
	}
	l.test(
		resource.TestStep{Config: config, Check: l.expectAlive(1)},
		resource.TestStep{PreConfig: workers(100, 3), Config: config, PlanOnly: true},
		resource.TestStep{PreConfig: workers(0, 1), Config: config, PlanOnly: true},
		resource.TestStep{
			PreConfig: func() {
				acctest.Eventually(l, "the last change to be in the history", func() bool {
					return strings.Contains(l.CommandOutput("autoscale", "explain", "-n", "0", "job/worker"), " → 1\n")
				})
			},
			Config: config + `
data "trainyard_scaling_history" "it" {
  cluster      = trainyard_cluster.lab
  group        = trainyard_group.job.name
  only_changes = true
}
`,
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(
				"data.trainyard_scaling_history.it", tfjsonpath.New("json_lines"),
				knownvalue.StringRegexp(regexp.MustCompile(`"to":1,.*"outcome":"done"`)),
			)},
		},
	)
}

// expectModels returns a check of the number of stored models.
func (l *Lab) expectModels(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		stored, err := engine.List[domain.LearnedModelDocument](l.Context(), l.Open())
		if err == nil && len(stored) != want {
			err = fmt.Errorf("%d models are stored, want %d", len(stored), want)
		}
		return err
	}
}

// With a model, the role gets another member under load, and gives it up again. The model is stored separately,
// replaced by another one in place, and removed with the policy.
func policyFollowsModel(l *Lab) {
	load := acceptance.NewLoad(l.T)
	job := l.config(group("job",
		fmt.Sprintf("command = [local.member, %q]\n  roles = { worker = { on_scale = \"none\" } }", "hold:"+load.File)))
	follows := func(lower, upper float32) string {
		return job + acceptance.Follows("job", fmt.Sprintf(`min = 1
  max      = 3
  scale_in = { stabilisation_window = "0s" }
  metrics = {
    memory = {
      source    = { agent = { measure = "memory_mib" } }
      window    = "2s"
      algorithm = { learned = { model = file(%q), capacity = 40 } }
    }
  }`, acceptance.BandModel(l, lower, upper)))
	}
	config := follows(0.5, 1.5)
	workers := func(mib, want int) func() {
		return func() {
			load.Set(mib)
			acctest.Eventually(l, fmt.Sprintf("%d workers", want), func() bool { return l.Alive() == want })
		}
	}
	l.test(
		resource.TestStep{Config: config, Check: resource.ComposeTestCheckFunc(l.expectAlive(1), l.expectModels(1))},
		resource.TestStep{PreConfig: workers(100, 3), Config: config, PlanOnly: true},
		resource.TestStep{PreConfig: workers(0, 1), Config: config, PlanOnly: true},
		resource.TestStep{
			Config: follows(0.5, 2),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction("trainyard_autoscaling_policy.job",
				plancheck.ResourceActionUpdate)),
			Check: l.expectModels(1),
		},
		// An import also reads the model.
		resource.TestStep{
			ResourceName: "trainyard_autoscaling_policy.job", ImportState: true,
			ImportStateId: l.importID("job", "worker"), ImportStateVerify: true,
		},
		resource.TestStep{Config: job, Check: l.expectModels(0)},
	)
}
