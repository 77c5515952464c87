//go:build linux

package process_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel/qmodeltest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const theScaling = "trainyard_autoscaling_policy.it"

// scaling returns the configuration of a policy with these attributes for the workers of the group "job".
func scaling(attributes string) string {
	return "resource \"trainyard_autoscaling_policy\" \"it\" {\n  cluster = trainyard_cluster.lab\n  group   = trainyard_group.job.name\n  role    = \"worker\"\n" + attributes + "\n}\n"
}

// idle is a metric of waiting workers, for which one of them is enough.
const idle = `
  metrics = { cpu = { source = { agent = { measure = "cpus" } }, algorithm = { target = { value = 1 } } } }
`

// scaledJob returns the cluster, the group "job" with an unmanaged number of workers, and more.
func (l *lab) scaledJob(more ...string) string {
	l.Helper()
	return l.job(waiting("")) + strings.Join(more, "\n")
}

// policy returns the stored policy for the workers of the group "job".
func (l *lab) policy() domain.AutoscalingPolicyDocument {
	l.Helper()
	policies, err := engine.List[domain.AutoscalingPolicyDocument](l.Context(), l.engine())
	l.must(err)
	return policies["job/worker"]
}

// expectPolicy returns a check of the stored policy; "" for none.
func (l *lab) expectPolicy(want string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		var got string
		if p := l.policy(); p.Revision > 0 {
			got = fmt.Sprintf("%d to %d, after %d", p.Spec.Min, p.Spec.Max, p.Before)
		}
		return acceptance.Differences(want, got)
	}
}

// recount changes the number of workers of the group "job" as a policy does.
func (l *lab) recount(from, to int) {
	l.Helper()
	_, _, err := reconcile.Reconciler{Engine: l.engine()}.Scale(l.Context(),
		reconcile.Scaling{Group: "job", Role: "worker", From: from, To: to, At: time.Now(), Why: "test"})
	l.must(err)
}

// expectCount returns a check that the group "job" has this many workers, all of them running.
func (l *lab) expectCount(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		document, err := engine.Get[domain.GroupDocument](l.Context(), l.engine(), "job")
		l.must(err)
		if err := acceptance.Differences(want, document.Counts["worker"]); err != nil {
			return err
		}
		acctest.Eventually(l, fmt.Sprintf("%d workers", want), func() bool { return l.expectAlive(want)(nil) == nil })
		return nil
	}
}

// richJob is a group for which a policy can set every attribute.
const richJob = `command = [local.member, "wait"]
  roles = {
    ps     = { replicas = 1 }
    worker = { resources = { cpus = 0.1 } }
  }`

// richScaling sets every attribute of a policy on this engine. It is paused, since its sources don't exist.
func richScaling(t *testing.T) string {
	t.Helper()
	return acceptance.Step(t, "TestAccAutoscalingPolicyImport", "import")
}

// An import restores everything in the configuration: the next plan is empty.
func TestAccAutoscalingPolicyImport(t *testing.T) {
	l := newLab(t)
	config := l.job(richJob) + richScaling(t)
	by := func(kind resource.ImportStateKind, id string) resource.TestStep {
		return resource.TestStep{
			Config: config, ResourceName: theScaling, ImportState: true, ImportStateKind: kind, ImportStateId: id,
			ImportStateVerify: kind == resource.ImportCommandWithID,
		}
	}
	failing := func(id string, phrases ...string) resource.TestStep {
		step := by(resource.ImportCommandWithID, id)
		step.ExpectError = acceptance.Says(phrases...)
		return step
	}
	l.test(
		resource.TestStep{Config: config},
		by(resource.ImportCommandWithID, "lab/job/worker"),
		by(resource.ImportBlockWithID, "lab/job/worker"), // also checks that the plan is empty
		failing("lab/job", `"lab/job" is not the ID of an autoscaling policy, which is <cluster>/<group>/<role>`),
		failing("lab//worker", `"lab//worker" is not the ID of an autoscaling policy`),
		failing("nowhere/job/worker", `cluster "nowhere"`, `state_dir`),
		failing("lab/job/ps", `Cannot import non-existent remote object`),
	)
}

// Terraform supports import by identity since 1.12.
func TestAccAutoscalingPolicyImportByIdentity(t *testing.T) {
	l := newLab(t)
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: l.providers(),
		Steps: []resource.TestStep{
			{Config: l.job(richJob) + richScaling(t)},
			{ResourceName: theScaling, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity},
		},
	})
}

// on_destroy determines the count after the policy is destroyed.
func TestAccAutoscalingPolicyOnDestroy(t *testing.T) {
	for rule, test := range map[string]struct {
		// at is the number of members when the policy is destroyed, left the number afterwards.
		at, left int
	}{"keep": {1, 1}, "restore": {3, 1}, "min": {1, 2}} {
		t.Run(rule, func(t *testing.T) {
			l := newLab(t)
			l.test(
				resource.TestStep{
					// While paused, it leaves the count to the test, even out of bounds.
					Config: l.scaledJob(
						scaling("  min = 2\n  max = 4\n  paused = \"all\"\n  on_destroy = \"" + rule + "\"" + idle),
					),
					Check: l.expectPolicy("2 to 4, after 1"),
				},
				resource.TestStep{
					PreConfig: func() {
						if test.at != 1 {
							l.recount(1, test.at)
						}
					},
					Config: l.scaledJob(),
					Check:  resource.ComposeTestCheckFunc(l.expectPolicy(""), l.expectCount(test.left)),
				},
				resource.TestStep{
					Config: l.scaledJob(), ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
				},
			)
		})
	}
}

// A change of group or role replaces the policy. After a replacement of the policy or its group, the policy exists.
func TestAccAutoscalingPolicyReplaced(t *testing.T) {
	acceptance.Test(t)
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	l := &lab{T: t}
	l.files.Root, l.files.Cluster = w.StateDir, "lab"
	configure := func(role string) {
		w.Write("main.tf", fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
locals {
  member = %q
}
%s`, acctest.Build(t, acctest.Member), theCluster+group("job", `command = [local.member, "wait"]
  roles = { worker = {}, other = {} }`)+strings.Replace(scaling("  min = 1\n  max = 4"+idle), `"worker"`,
			fmt.Sprintf("%q", role), 1)))
	}
	expect := func(when, want string) {
		t.Helper()
		policies, err := engine.List[domain.AutoscalingPolicyDocument](t.Context(), l.engine())
		l.must(err)
		if got := strings.Join(sorted(policies), " "); got != want {
			t.Errorf("%s the policies are %q, want %q", when, got, want)
		}
		w.ExpectNoChange(when)
	}
	configure("worker")
	w.Must("apply", "-auto-approve")
	expect("created,", "job/worker")
	w.Must("apply", "-auto-approve", "-replace="+theScaling)
	expect("replaced,", "job/worker")
	w.Must("taint", theScaling)
	w.Must("apply", "-auto-approve")
	expect("tainted,", "job/worker")
	w.Must("apply", "-auto-approve", "-replace="+acceptance.TheJob)
	expect("with its group replaced,", "job/worker")
	configure("other")
	w.Must("apply", "-auto-approve")
	expect("for another role,", "job/other")
}

// A role has one policy, and its count follows either that or replicas: everything else is refused at plan time.
func TestAccAutoscalingPolicyTwice(t *testing.T) {
	l := newLab(t)
	one := scaling("  min = 1\n  max = 4" + idle)
	counted := l.job(waiting("replicas = 2"))
	second := strings.Replace(scaling("  min = 1\n  max = 5"+idle), `"it"`, `"second"`, 1)
	both := []string{
		`role "worker" of group "job" has roles["worker"].replicas = 2, and an autoscaling policy with min = 1 and max = 4`,
		`remove replicas or the policy`,
	}
	l.test(
		resource.TestStep{PlanOnly: true, Config: counted + one, ExpectError: acceptance.Says(both...)},
		resource.TestStep{PlanOnly: true, Config: l.scaledJob(one, second), ExpectError: acceptance.Says(
			`another resource of this configuration is already the autoscaling policy of role "worker" of group "job"`,
		)},
		resource.TestStep{
			PlanOnly: true, Config: l.scaledJob(strings.Replace(one, "  min", "  count = 2\n  min", 1)),
			ExpectError: acceptance.Says(`is already the autoscaling policy of role "worker" of group "job"`),
		},
		resource.TestStep{Config: l.scaledJob(one), Check: l.expectPolicy("1 to 4, after 1")},
		resource.TestStep{
			PlanOnly: true, Config: l.scaledJob(one, second),
			ExpectError: acceptance.Says(`is already the autoscaling policy of role "worker" of group "job"`),
		},
		resource.TestStep{PlanOnly: true, Config: counted + one, ExpectError: acceptance.Says(both...)},
		resource.TestStep{PlanOnly: true,
			Config: l.job(waiting("replicas = 2")+"\n  depends_on = [trainyard_autoscaling_policy.it]") +
				strings.Replace(one, "trainyard_group.job.name", `"job"`, 1), ExpectError: acceptance.Says(both...)},
		// From the policy to replicas, and back.
		resource.TestStep{Config: counted, Check: resource.ComposeTestCheckFunc(l.expectPolicy(""), l.expectCount(2))},
		resource.TestStep{
			Config: l.scaledJob(strings.Replace(one, "  min = 1", "  min = 2", 1)),
			Check:  resource.ComposeTestCheckFunc(l.expectPolicy("2 to 4, after 2"), l.expectCount(2)),
		},
	)
}

// A policy created from another state is adopted if it is equal, refused otherwise, and destroyed with its group.
func TestAccAutoscalingPolicyOfAnotherState(t *testing.T) {
	acceptance.Test(t)
	first := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	l := &lab{T: t}
	l.files.Root, l.files.Cluster = first.StateDir, "lab"
	const header = "terraform {\n  required_providers {\n    trainyard = { source = \"trainyard/trainyard\" }\n  }\n}\n"
	first.Write("main.tf", header+fmt.Sprintf("locals {\n  member = %q\n}\n",
		acctest.Build(t, acctest.Member))+theCluster+group("job", waiting("")))
	first.Must("apply", "-auto-approve")
	elsewhere := func(most int) string {
		return header + strings.NewReplacer("trainyard_cluster.lab", `{ name = "lab" }`, "trainyard_group.job.name",
			`"job"`).Replace(scaling(fmt.Sprintf("  min = 1\n  max = %d", most)+idle))
	}
	others := []*acctest.Workspace{first.Another(), first.Another()}

	// Of two that create one at the same time, one succeeds and the other's error names the existing policy.
	outputs, errs := make([]string, len(others)), make([]error, len(others))
	var both sync.WaitGroup
	for i, w := range others {
		w.Write("main.tf", elsewhere(4+i))
		both.Go(func() { outputs[i], errs[i] = w.Run("apply", "-auto-approve") })
	}
	both.Wait()
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	if refused := acceptance.Says(
		`already has an autoscaling policy with another specification`, `terraform import <address> lab/job/worker`,
	); errs[winner] != nil || errs[1-winner] == nil || !refused.MatchString(outputs[1-winner]) {
		t.Fatalf("applied at once:\n%s\n%s", outputs[0], outputs[1])
	}
	if output, err := others[1-winner].Run("plan"); err == nil ||
		!acceptance.Says(`already has an autoscaling policy`).MatchString(output) {
		t.Errorf("planned after it: %v\n%s", err, output)
	}
	others[1-winner].Write("main.tf", elsewhere(4+winner))
	if output := others[1-winner].Must("apply",
		"-auto-approve"); !strings.Contains(output, "Autoscaling policy adopted") {
		t.Errorf("the same once more:\n%s", output)
	}

	first.Write("main.tf", header+theCluster)
	first.Must("apply", "-auto-approve")
	if document := l.policy(); document.Revision > 0 {
		t.Errorf("without its group there is the policy %+v", document)
	}
	// A warning says so, and what is left can be destroyed.
	if output := others[winner].Must("plan"); !acceptance.Says(`1 to add`, `Warning: Unknown group`,
		`cluster "lab" has no group "job"; it has none`).MatchString(output) {
		t.Errorf("planned without the group:\n%s", output)
	}
	for _, w := range others {
		w.Must("destroy", "-auto-approve")
	}
}

// Invalid values are reported at plan time: the attribute, the value, and what is allowed.
func TestAccAutoscalingPolicyInvalid(t *testing.T) {
	l := newLab(t)
	policy := func(attributes string, says ...string) invalid {
		return invalid{group("job", richJob) + scaling(attributes), says}
	}
	with := func(attributes string, says ...string) invalid {
		return policy("  min = 1\n  max = 4"+idle+attributes, says...)
	}
	metric := func(metric string, says ...string) invalid {
		return policy("  min = 1\n  max = 4\n  metrics = { m = { "+metric+" } }", says...)
	}
	algorithm := func(algorithm string, says ...string) invalid {
		return metric(`source = { agent = { measure = "cpus" } }, algorithm = { `+algorithm+` }`, says...)
	}
	good := qmodeltest.Text(qmodeltest.Band(0.2, 0.8))
	learned := func(model, attributes string, says ...string) invalid {
		return algorithm(fmt.Sprintf("learned = {\n model = %q\n %s\n }", model, attributes), says...)
	}
	source := func(source string, says ...string) invalid {
		return metric(`algorithm = { target = { value = 1 } }, source = { `+source+` }`, says...)
	}
	for_ := func(from, to string, says ...string) invalid {
		return invalid{group("job", richJob) + strings.Replace(scaling("  min = 1\n  max = 4"+idle), from, to, 1), says}
	}
	mpi := func(attributes string, says ...string) invalid {
		return invalid{group(
			"job",
			"framework = \"mpi\"\n  command = [local.member, \"wait\"]\n  roles = { launcher = {}, worker = {} }",
		) + scaling(attributes+idle), says}
	}
	l.test(l.refused(theCluster, []invalid{
		// The target.
		for_(`trainyard_group.job.name`, `"nothing"`, `group: cluster "lab" has no group "nothing"`,
			`refer to it (group = trainyard_group.<name>.name)`),
		for_(`"worker"`, `"chief"`, `role: group "job" has no role "chief"; it has "ps", "worker"`),
		for_(`"worker"`, `"Worker"`, `role: "Worker" is not a DNS label`),
		for_(`"worker"`, `"ps"`,
			`role: role "ps" of group "job" has roles["ps"].replicas = 1, and an autoscaling policy with min = 1 and max = 4`),

		// Counts and times.
		policy("  min = 5\n  max = 4"+idle, `max: must be between 5 (min) and 10000, got 4`),
		policy("  min = -1\n  max = 4"+idle, `min: must be between 0 and 10000, got -1`),
		policy("  min = 0\n  max = 4"+idle,
			`min: min is 0, and once there are no members, ["cpu"] would never ask for any`),
		policy("  min = 1\n  max = 4", `metrics: the policy has no metrics, schedules or vertical`),
		with("  initial = 5", `initial: must be between 1 (min) and 4 (max), got 5`),
		with(`  interval = "1ms"`, `interval: must be between 1s and 1h0m0s, got 1ms`),
		with(`  interval = "soon"`, `interval: "soon" is not a valid duration`),
		with(`  schedules = { day = { start = "8:00", end = "0 18 * * *", count = 2 } }`, `schedules["day"].start:`,
			`8:00`),
		with(`  scale_in = { select = "all" }`, `scale_in.select: unknown rule "all"`),
		with(`  paused = "both"`, `paused: unknown value "both"; use one of ["none" "all" "out" "in"]`),
		with(`  on_destroy = "max"`, `on_destroy: unknown value "max"; use one of ["keep" "restore" "min"]`),
		mpi("  min = 0\n  max = 4\n  schedules = { day = { start = \"0 8 * * *\", end = \"0 18 * * *\", count = 2 } }",
			`min: min is 0, but framework "mpi" needs at least 1 member of role "worker"`),
		{
			strings.Replace(mpi("  min = 1\n  max = 4").config, `role    = "worker"`, `role    = "launcher"`, 1),
			[]string{`max: max is 4, but framework "mpi" takes at most 1 member of role "launcher"`},
		},

		// Algorithms.
		algorithm(``, `metrics["m"].algorithm: a metric needs one of the algorithms [`),
		algorithm(`target = { value = 1 }, queue = { per_member = 1 }`,
			`metrics["m"].algorithm: a metric has only one algorithm, got ["target" "queue"]`),
		metric(`algorithm = { ratio = { role = "chief", per = 2 } }`,
			`metrics["m"].algorithm.ratio.role: group "job" has no role "chief"; it has "ps", "worker"`),
		metric(`algorithm = { ratio = { role = "worker", per = 2 } }`,
			`metrics["m"].algorithm.ratio.role: "worker" is the role that the policy scales`),

		learned(good, `observes = { cpu = "m" }`,
			`metrics["m"].algorithm.learned.observes["cpu"]: "m" is the metric with this algorithm`),
		learned(good, `observes = { cpu = "other" }`,
			`metrics["m"].algorithm.learned.observes["cpu"]: the policy has no metric "other"; it has ["m"]`),
		learned(good, `observes = { moon = "m" }`,
			`metrics["m"].algorithm.learned.observes["moon"]: "moon" is not a feature computed from another metric; use one of ["cpu" "lag_growth" "p99" "reassigning" "skew"]`),
		learned(good, `per = "total"`, `metrics["m"].algorithm.learned.capacity: per = "total" requires capacity`),
		learned(good, `capacity = -1`, `metrics["m"].algorithm.learned.capacity: must be above 0, got -1`),
		learned(strings.Replace(good, `"load"`, "\"load\",\n\"cpu\"", 1), ``,
			`metrics["m"].algorithm.learned.model: mean has 1 values, but there are 2 features`),
		learned(strings.Replace(good, `"version": 1`, `"version": 2`, 1), ``,
			`metrics["m"].algorithm.learned.model: version is 2; this version of Trainyard supports version 1`),
		learned(strings.Replace(good, `"weights": "AACA`, `"weights": "AADA/w==`, 1), ``,
			`metrics["m"].algorithm.learned.model: weights are not Base64`),
		learned(strings.Replace(good, `"weights": "AACAPwAA`, `"weights": "AADAfwAA`, 1), ``,
			`metrics["m"].algorithm.learned.model: weights must be finite, got NaN at index 0 of layer 1`),
		learned(good[:len(good)/2], ``,
			`metrics["m"].algorithm.learned.model: the model is not valid JSON as written by autoscale train: the file is truncated`),
		learned(``, ``, `metrics["m"].algorithm.learned.model: the algorithm needs a model`),

		algorithm(`external = { url = "http://agent.lab" }`, `metrics["m"].source: algorithm external needs no source`,
			`leave it out`),
		metric(`source = { agent = { measure = "cpus" } }`, `metrics: ["m"] have no algorithm: they are only observed`,
			`add a metric whose algorithm is external`),
		metric(`algorithm = { external = {} }`, `metrics["m"].algorithm.external: either url or command is required`),

		// Sources.
		metric(`algorithm = { target = { value = 1 } }`,
			`metrics["m"].source: a metric needs a source, one of ["agent" "prometheus" "queue" "progress"]`),
		source(`agent = { measure = "load" }`,
			`metrics["m"].source.agent.measure: unknown measure "load"; use one of ["cpus" "cpu_percent"`),
		source(`agent = { measure = "cpus", window = "5s" }`,
			`metrics["m"].source.agent.window: window belongs to the metric, not to its source: write window = "5s" beside source`),
		source(`progress = { pattern = "step", window = "5s" }`,
			`metrics["m"].source.progress.window: window belongs to the metric`),
		metric(`algorithm = { target = { value = 1 } }, ready_after = "5s", source = { agent = { measure = "memory_mib" } }`,
			`metrics["m"].ready_after: ready_after is 5s, but it only applies to the measures "cpus" and "cpu_percent" of single members`),
		source(`prometheus = { url = "prometheus", query = "up" }`,
			`metrics["m"].source.prometheus.url: "prometheus" is not a valid URL`),
		source(`prometheus = { url = "http://ops:secret@prometheus:9090", query = "up" }`,
			`metrics["m"].source.prometheus.url: the URL must not contain a user or password`),
		source(`queue = {}`,
			`metrics["m"].source.queue: exactly one of ["http" "redis" "command"] is required, got []`),
		source(`queue = { redis = { address = "redis", key = "jobs" } }`,
			`metrics["m"].source.queue.redis.address: "redis" is not <host>:<port>`),
		source(`progress = { pattern = "(" }`, `metrics["m"].source.progress.pattern: "(" is not a valid pattern`),
		source(`agent = { measure = "memory_percent" }`,
			`metrics["m"].source.agent.measure: memory_percent is relative to what members request, and roles["worker"].resources.memory_mib of group "job" is not set`),
		source(`agent = { measure = "gpu_percent" }`,
			`metrics["m"].source.agent.measure: gpu_percent is relative to what members request, and roles["worker"].gpus of group "job" is not set`),
		source(`progress = { pattern = "step", role = "chief" }`,
			`metrics["m"].source.progress.role: group "job" has no role "chief"`),

		// Guards.
		with(`  guards = { remove = "oldest" }`, `guards.remove: unknown order "oldest"`),
		with(`  guards = { remove = "least_busy" }`,
			`guards.remove: members of role "worker" are identified by their index, and "least_busy" would leave gaps; use "highest_index"`),
		with(`  guards = { busy = {} }`,
			`guards.busy: the guard needs at least one of prometheus, http, cpu_percent and gpu_percent`),
		with(`  guards = { busy = { gpu_percent = 5 } }`,
			`guards.busy.gpu_percent: gpu_percent is relative to what members request, and roles["worker"].gpus of group "job" is not set`),
		with(`  guards = { busy = { cpu_percent = 0 } }`, `guards.busy.cpu_percent: must be above 0, got 0`),
		with(`  hooks = { before_removal = { url = "http://a", command = ["b"] } }`,
			`hooks.before_removal: url and command are mutually exclusive`),
		with(`  hooks = { after_addition = { url = "http://a", timeout = "200h" } }`,
			`hooks.after_addition.timeout: must be between 100ms and 168h0m0s, got 200h0m0s`),
		with(`  guards = { member_hours_per_day = -1 }`, `guards.member_hours_per_day: must be 0 or more, got -1`),
	})...)
}

// Values unknown before the apply are checked during it.
func TestAccAutoscalingPolicyOfUnknown(t *testing.T) {
	l := newLab(t)
	late := func(most int) string {
		return l.scaledJob(fmt.Sprintf("resource \"terraform_data\" \"max\" {\n  input = %d\n}\n", most),
			scaling("  min = 1\n  max = terraform_data.max.output"+idle))
	}
	l.test(
		resource.TestStep{
			Config: late(0), ExpectError: acceptance.Says(`max: must be between 1 (min) and 10000, got 0`),
		},
		resource.TestStep{Config: late(3), Check: l.expectPolicy("1 to 3, after 1")},
	)
}

// A provider killed after any change leaves neither an untracked policy nor a half-destroyed one.
func TestAutoscalingPolicyProviderKilled(t *testing.T) {
	without := func(k killed) {
		k.configure(1, "wait")
		main, err := os.ReadFile(k.Dir + "/main.tf")
		if err != nil {
			t.Fatal(err)
		}
		k.Write("main.tf", strings.Replace(string(main), "replicas = 1, ", "", 1))
		k.Write("policy.tf", "")
	}
	with := func(k killed) { k.Write("policy.tf", scaling("  min = 1\n  max = 4"+idle)) }
	t.Run("create", func(t *testing.T) {
		k := newKilled(t)
		k.dieAfter(acctest.Kills(2), 1, func() {
			without(k)
			k.Must("apply", "-auto-approve")
			with(k)
		}, "apply", "-auto-approve")
	})
	t.Run("destroy", func(t *testing.T) {
		k := newKilled(t)
		k.dieAfter(acctest.Kills(1), 1, func() {
			without(k)
			with(k)
			k.Must("apply", "-auto-approve")
			without(k)
		}, "apply", "-auto-approve")
	})
}
