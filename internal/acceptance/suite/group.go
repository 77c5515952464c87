//go:build linux

package suite

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// A group is created as specified; the plan after it is empty, as after each step of these tests.
func groupCreate(l *Lab) {
	known := func(name string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New(name), check)
	}
	members := acceptance.Texts(map[string]string{
		"job-ps-0": l.address(0), "job-worker-0": l.address(10), "job-worker-1": l.address(11),
	})
	placements := acceptance.Texts(map[string]string{
		"job-ps-0": l.Host, "job-worker-0": l.Host, "job-worker-1": l.Host,
	})
	spec := acceptance.Texts(map[string]string{"ps": l.address(0), "worker": l.address(10) + "," + l.address(11)})
	l.test(resource.TestStep{
		Config: l.job(`
  framework = "tensorflow"
  command   = [local.member]
  args      = ["wait"]
  env       = { RATE = "0.1" }
  roles = {
    ps     = { replicas = 1, port = local.port }
    worker = { replicas = 2, port = local.port + 10, grace_period = "60s" }
  }
  triggers = { run = "1" }`),
		ConfigPlanChecks: acceptance.Planned(
			plancheck.ExpectResourceAction(acceptance.TheLab, plancheck.ResourceActionCreate),
			plancheck.ExpectResourceAction(acceptance.TheJob, plancheck.ResourceActionCreate),
			// With one host and fixed ports, everything is known at plan time.
			plancheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("members"), members),
			plancheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("placements"), placements),
			plancheck.ExpectKnownValue(acceptance.TheJob, tfjsonpath.New("cluster_spec"), spec),
		),
		ConfigStateChecks: []statecheck.StateCheck{
			known("id", knownvalue.StringExact(l.id("job"))),
			known("name", knownvalue.StringExact("job")),
			known("cluster", knownvalue.ObjectExact(map[string]knownvalue.Check{
				"name": knownvalue.StringExact(l.Ref.Name), "engine": knownvalue.StringExact(l.Ref.Engine),
				"endpoint": l.endpoint(),
			})),
			known("framework", knownvalue.StringExact("tensorflow")),
			known("command", knownvalue.ListSizeExact(1)),
			known("args", knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("wait")})),
			known("env", acceptance.Texts(map[string]string{"RATE": "0.1"})),
			known("image", knownvalue.Null()),
			known("mounts", knownvalue.Null()),
			known("working_dir", knownvalue.Null()),
			known("roles", knownvalue.MapExact(map[string]knownvalue.Check{
				"ps": knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"replicas": knownvalue.Int64Exact(1), "port": knownvalue.Int64Exact(int64(l.Port)),
					"command": knownvalue.Null(), "resources": knownvalue.Null(), "restart": knownvalue.Null(),
					"grace_period": knownvalue.Null(),
				}),
				"worker": knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"replicas": knownvalue.Int64Exact(2), "port": knownvalue.Int64Exact(int64(l.Port + 10)),
					"grace_period": knownvalue.StringExact("60s"), "placement": knownvalue.Null(),
					"exit_codes": knownvalue.Null(),
				}),
			})),
			known("completion", knownvalue.Null()),
			known("restart_scope", knownvalue.StringExact("member")),
			known("wait_for", knownvalue.StringExact("running")),
			known("triggers", acceptance.Texts(map[string]string{"run": "1"})),
			known("timeouts", knownvalue.Null()),
			known("members", members),
			known("placements", placements),
			known("cluster_spec", spec),
		},
		Check: resource.ComposeTestCheckFunc(
			l.changes("+job-ps-0", "+job-worker-0", "+job-worker-1"),
			l.expectAlive(3),
		),
	})
}

// What can be changed in place is, and only members whose specification changed are restarted.
func groupUpdate(l *Lab) {
	// The attributes of the group, each unchanged until a step changes it.
	attributes := struct{ framework, worker, ps, rest string }{
		framework: "none",
		worker:    `replicas = 2, port = local.port + 10`,
		ps:        `replicas = 1, port = local.port`,
	}
	create := func() string {
		return l.job(fmt.Sprintf(`
  framework = %q
  command   = [local.member, "wait"]
  roles     = { ps = { %s }, worker = { %s } }
  %s`, attributes.framework, attributes.ps, attributes.worker, attributes.rest))
	}
	steps := []resource.TestStep{{
		Config: create(),
		Check:  l.changes("+job-ps-0", "+job-worker-0", "+job-worker-1"),
	}}
	for _, update := range []struct {
		attribute *string
		value     string
		changes   []string
	}{
		{
			&attributes.worker, `replicas = 3, port = local.port + 10`,
			[]string{"~job-ps-0", "~job-worker-0", "~job-worker-1", "+job-worker-2"},
		},
		{
			&attributes.worker, `replicas = 1, port = local.port + 10`,
			[]string{"~job-ps-0", "~job-worker-0", "-job-worker-1", "-job-worker-2"},
		},
		{&attributes.worker, `replicas = 1, port = local.port + 12`, []string{"~job-ps-0", "~job-worker-0"}},
		{&attributes.worker, `replicas = 1, port = local.port + 12, env = { RATE = "0.1" }`, []string{"~job-worker-0"}},
		{
			&attributes.worker, `replicas = 1, port = local.port + 12, command = [local.member, "print:hello", "wait"]`,
			[]string{"~job-worker-0"},
		},
		{
			&attributes.ps, `replicas = 1, port = local.port, resources = { cpus = 0.1, memory_mib = 64 }`,
			[]string{"~job-ps-0"},
		},
		{
			&attributes.ps,
			`replicas = 1, port = local.port, resources = { cpus = 0.1, memory_mib = 64 }, restart = { max_attempts = 1 }`,
			[]string{"~job-ps-0"},
		},
		{&attributes.framework, "tensorflow_v1", []string{"~job-ps-0", "~job-worker-0"}},
		{&attributes.rest, `completion = { when = "never" }`, nil},
		{
			&attributes.rest,
			"completion = { deadline = \"10h\" }\n wait_for = \"running\"\n timeouts = { update = \"5m\" }", nil,
		},
	} {
		*update.attribute = update.value
		steps = append(steps, resource.TestStep{
			Config:           create(),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check:            l.changes(update.changes...),
		})
	}
	l.test(steps...)
}

// Spark workers are interchangeable: nothing depends on their number.
func groupGrowsWithoutRestart(l *Lab) {
	step := func(workers int, want plancheck.ResourceActionType, changes ...string) resource.TestStep {
		return resource.TestStep{
			Config: l.job(fmt.Sprintf(`
  framework = "spark"
  command   = [local.member, "wait"]
  roles     = { master = { replicas = 1, port = local.port }, worker = { replicas = %d } }`, workers)),
			ConfigPlanChecks: acceptance.Action(want),
			Check:            l.changes(changes...),
		}
	}
	l.test(
		step(1, plancheck.ResourceActionCreate, "+job-master-0", "+job-worker-0"),
		step(3, plancheck.ResourceActionUpdate, "+job-worker-1", "+job-worker-2"),
		step(0, plancheck.ResourceActionUpdate, "-job-worker-0", "-job-worker-1", "-job-worker-2"),
	)
}

// endpoint checks the cluster's endpoint in a state.
func (l *Lab) endpoint() knownvalue.Check {
	if l.Ref.Endpoint == "" {
		return knownvalue.Null()
	}
	return knownvalue.StringExact(l.Ref.Endpoint)
}
