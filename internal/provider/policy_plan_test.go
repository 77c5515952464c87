package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy/policytest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

const thePolicy = "trainyard_autoscaling_policy"

// policy returns the configuration of a policy for the workers of the group "g".
func (tf terraform) policy(changes ...func(*policy.Model)) map[string]tftypes.Value {
	tf.t.Helper()
	m := policytest.Small()
	m.ID, m.Cluster.Engine, m.Group = types.StringNull(), types.StringNull(), types.StringValue("g")
	for _, change := range changes {
		change(&m)
	}
	s := policy.Schema(tf.t.Context(), nil)
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(tf.t.Context()), nil)}
	if diags := state.Set(tf.t.Context(), m); diags.HasError() {
		tf.t.Fatal(diags)
	}
	var attributes map[string]tftypes.Value
	if err := state.Raw.As(&attributes); err != nil {
		tf.t.Fatal(err)
	}
	return maps.Clone(attributes)
}

// atLeast sets the min of a policy.
func atLeast(n int64) func(*policy.Model) {
	return func(m *policy.Model) { m.Min = &n }
}

// uncountedWorkers returns the configuration of the group "g", whose number of workers is left to a policy.
func (tf terraform) uncountedWorkers() map[string]tftypes.Value {
	tf.t.Helper()
	return tf.groupOf("g",
		group.RoleModel{Port: new(int64(10000)), TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}}})
}

// scaledStub returns an engine with the group "g" of this many running workers without replicas.
func scaledStub(t *testing.T, workers int) *providertest.Stub {
	t.Helper()
	stub := storedWorkers(t, 1)
	providertest.Change(stub, "g", func(document *domain.GroupDocument) {
		worker := document.Spec.Roles["worker"]
		worker.Replicas = nil
		document.Spec.Roles["worker"] = worker
	})
	stub.Scale(t, workers)
	return stub
}

// planPolicy plans a policy, and fails on any diagnostic.
func (tf terraform) planPolicy(config, prior map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	planned, diagnostics := tf.plan(thePolicy, config, prior)
	fatalOn(tf.t, nil, diagnostics)
	return planned
}

// applyPolicy plans a new policy and applies it.
func (tf terraform) applyPolicy(config map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	state, diagnostics := tf.apply(thePolicy, config, nil, tf.planPolicy(config, nil))
	fatalOn(tf.t, nil, diagnostics)
	return state
}

// refuses fails unless the only diagnostic is an error that contains this text.
func refuses(t *testing.T, what string, diagnostics []*tfprotov6.Diagnostic, says string) {
	t.Helper()
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError ||
		!strings.Contains(details(diagnostics)[0], says) {
		t.Errorf("%s: got %q, want an error that says %q", what, details(diagnostics), says)
	}
}

// A policy is checked against its group, stored or planned in the same run.
func TestPlanOfAutoscalingPolicy(t *testing.T) {
	unknown := func(v tftypes.Value) tftypes.Value { return tftypes.NewValue(v.Type(), tftypes.UnknownValue) }
	three := role{replicas: 3, port: 10000}
	for name, test := range map[string]struct {
		// before plans something in the same run.
		before func(tf terraform)
		stub   func(e *providertest.Stub)
		policy func(*policy.Model)
		open   string // an unknown attribute
		says   string
		warns  string
	}{
		"a group that is stored": {},
		"a group that is planned": {
			stub:   func(e *providertest.Stub) { providertest.Drop[domain.GroupDocument](e) },
			before: func(tf terraform) { tf.plan("trainyard_group", tf.uncountedWorkers(), nil) },
		},
		"a cluster that is, too": {
			stub:   func(e *providertest.Stub) { providertest.Drop[domain.ClusterDocument](e) },
			before: func(tf terraform) { tf.plan("trainyard_group", tf.uncountedWorkers(), nil) },
		},
		"no group": {
			stub: func(e *providertest.Stub) { providertest.Drop[domain.GroupDocument](e) },
			says: `Unknown group: group: cluster "lab" has no group "g"; it has none. If the group is in the same configuration, refer to it`,
		},
		"another group": {
			policy: func(m *policy.Model) { m.Group = types.StringValue("h") },
			says:   `cluster "lab" has no group "h"; it has "g"`,
		},
		"no cluster": {
			stub: func(e *providertest.Stub) { providertest.Drop[domain.ClusterDocument](e) },
			says: `cluster "lab" has no group "g"`,
		},
		"a Swarm still to be made": {stub: func(e *providertest.Stub) {
			e.Fails = providertest.Failures{"List policy": fmt.Errorf("hosts: %w", engine.ErrNotFormed)}
		}},
		"what can't be read": {
			stub: func(e *providertest.Stub) {
				e.Fails = providertest.Failures{"List policy": errors.New("disk full")}
			},
			says: "disk full",
		},
		"another role": {
			policy: func(m *policy.Model) { m.Role = types.StringValue("ps") },
			says:   `role: group "g" has no role "ps"; it has "worker"`,
		},
		"a role that is counted": {
			stub: func(e *providertest.Stub) {
				providertest.Set(e, providertest.Documents[domain.GroupDocument](storedWorkers(t, 3))["g"])
			}, says: `role: role "worker" of group "g" has roles["worker"].replicas = 3, and an autoscaling policy with min = 1 and max = 9`,
		},
		"a role that this plan counts": {
			before: func(tf terraform) { tf.plan("trainyard_group", tf.group("g", three), tf.uncountedWorkers()) },
			says:   `roles["worker"].replicas = 3`,
		},
		"a role that this plan counts no more": {stub: func(e *providertest.Stub) {
			providertest.Set(e, providertest.Documents[domain.GroupDocument](storedWorkers(t, 3))["g"])
		}, before: func(tf terraform) { tf.plan("trainyard_group", tf.uncountedWorkers(), tf.group("g", three)) }},
		"a group that goes": {
			before: func(tf terraform) { tf.plan("trainyard_group", nil, tf.uncountedWorkers()) },
			says:   `Group is destroyed: group: this plan destroys group "g"`,
		},
		"a group that is made anew": {before: func(tf terraform) {
			tf.plan("trainyard_group", nil, tf.uncountedWorkers())
			tf.plan("trainyard_group", tf.uncountedWorkers(), nil)
		}},
		"programs on a Swarm": {
			stub: func(e *providertest.Stub) { e.Particular = engine.Traits{Name: "swarm", Contained: true} },
			policy: func(m *policy.Model) {
				m.Hooks = &policy.ScalingHooksModel{AfterAddition: &policy.HookModel{Command: []string{"drain"}}}
			}, says: `hooks.after_addition.command: on engine "swarm", the controller`,
		},
		"percent of nothing": {
			policy: func(m *policy.Model) { m.Metrics["used"].Source.Agent.Measure = "cpu_percent" },
			says:   `metrics["used"].source.agent.measure: cpu_percent is relative to what members request, and roles["worker"].resources.cpus of group "g" is not set`,
		},
		"more than there is place for": {
			stub: func(e *providertest.Stub) {
				providertest.Change(e, "g", func(document *domain.GroupDocument) {
					worker := document.Spec.Roles["worker"]
					worker.Resources.CPUs = 1
					document.Spec.Roles["worker"] = worker
				})
			},
			warns: `max: max is 9, but that many members do not fit even in an empty cluster: role "worker" has 9 members of 1 CPU each, and only 4 of them fit`,
		},
		"a role that is not known": {open: "role"},
		"metrics that are not known": {
			open: "metrics", stub: func(e *providertest.Stub) { providertest.Drop[domain.GroupDocument](e) },
		},
		"a group of which not all is known yet": {
			stub: func(e *providertest.Stub) { providertest.Drop[domain.GroupDocument](e) },
			before: func(tf terraform) {
				config := tf.uncountedWorkers()
				config["env"] = unknown(config["env"])
				tf.plan("trainyard_group", config, nil)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := scaledStub(t, 2)
			if test.stub != nil {
				test.stub(stub)
			}
			tf := newTerraform(t, stub)
			if test.before != nil {
				test.before(tf)
			}
			config := tf.policy()
			if test.policy != nil {
				config = tf.policy(test.policy)
			}
			if test.open != "" {
				config[test.open] = unknown(config[test.open])
			}
			planned, diagnostics := tf.plan(thePolicy, config, nil)
			if test.says != "" {
				refuses(t, name, diagnostics, test.says)
				return
			}
			if test.warns != "" && len(diagnostics) == 1 && diagnostics[0].Severity ==
				tfprotov6.DiagnosticSeverityWarning && strings.Contains(details(diagnostics)[0], test.warns) {
				diagnostics = nil
			} else if test.warns != "" {
				t.Errorf("got %q, want a warning that says %q", details(diagnostics), test.warns)
			}
			fatalOn(t, nil, diagnostics)
			if planned["id"].IsKnown() {
				t.Errorf("the id is planned as %s", planned["id"])
			}
		})
	}
}

// A plan without changes is empty whatever the count is by now, and takes the same number of calls
// for any number of members.
func TestPlanOfAutoscalingPolicyWithoutChange(t *testing.T) {
	var calls [][]string
	for _, workers := range []int{1, 200} {
		stub := scaledStub(t, 1)
		tf := newTerraform(t, stub)
		config := tf.policy()
		state := tf.applyPolicy(config)
		group := tf.readGroup(tf.uncountedWorkers())
		stub.Scale(t, workers)
		stub.Calls = nil
		tf = newTerraform(t, stub) // another run
		group = tf.readGroup(group)
		plannedGroup, diagnostics := tf.plan("trainyard_group", tf.uncountedWorkers(), group)
		fatalOn(t, nil, diagnostics)
		state, diagnostics = tf.read(thePolicy, state)
		fatalOn(t, nil, diagnostics)
		planned := tf.planPolicy(config, state)
		for what, attributes := range map[string][2]map[string]tftypes.Value{
			"the group": {group, plannedGroup}, "the policy": {state, planned},
		} {
			for name := range attributes[0] {
				if !attributes[1][name].Equal(attributes[0][name]) {
					t.Errorf("%d workers: %s of %s is planned as %s, is %s", workers, name, what, attributes[1][name],
						attributes[0][name])
				}
			}
		}
		calls = append(calls, stub.Calls)
	}
	if !slices.Equal(calls[0], calls[1]) {
		t.Errorf("1 worker: calls %v; 200 workers: %v", calls[0], calls[1])
	}
	if i := slices.Index(calls[0], "List policy"); i < 0 {
		t.Errorf("the calls are %v", calls[0])
	}
}

// An update stores what is missing or unfinished: a policy whose removal was interrupted, a deleted one, and one whose
// group is replaced and takes it along.
func TestPlanOfAutoscalingPolicyThatIsNotThere(t *testing.T) {
	for name, change := range map[string]func(tf terraform, e *providertest.Stub){
		"it ends": func(_ terraform, e *providertest.Stub) {
			providertest.Change(e, "g/worker",
				func(document *domain.AutoscalingPolicyDocument) { document.Ending = true })
		},
		"it is gone": func(_ terraform, e *providertest.Stub) {
			providertest.Drop[domain.AutoscalingPolicyDocument](e)
		},
		"its group is made anew": func(tf terraform, _ *providertest.Stub) {
			group := tf.uncountedWorkers()
			tf.plan("trainyard_group", group, group)
			tf.plan("trainyard_group", group, nil)
		},
	} {
		stub := scaledStub(t, 2)
		tf := newTerraform(t, stub)
		config := tf.policy()
		state := tf.applyPolicy(config)
		change(tf, stub)
		planned := tf.planPolicy(config, state)
		if planned["id"].IsKnown() {
			t.Errorf("where %s: the plan is empty", name)
		}
		after, diagnostics := tf.apply(thePolicy, config, state, planned)
		fatalOn(t, nil, diagnostics)
		if document := providertest.Documents[domain.AutoscalingPolicyDocument](
			stub,
		)["g/worker"]; !after["id"].Equal(state["id"]) || document.Ending || document.Spec.Max != 9 {
			t.Errorf("where %s: the state is %v, and stored is %+v", name, after, document)
		}
	}
}

// A group that declares replicas for a role with a policy is refused if the policy is in the plan, and gets a
// warning if it may not be.
func TestPlanOfCountedGroupWithAutoscalingPolicy(t *testing.T) {
	const both = `roles["worker"].replicas: role "worker" of group "g" has roles["worker"].replicas = 3, and an autoscaling policy with min = 1 and max = 9`
	counted := func(tf terraform, prior map[string]tftypes.Value) []*tfprotov6.Diagnostic {
		_, diagnostics := tf.plan("trainyard_group", tf.group("g", role{replicas: 3, port: 10000}), prior)
		return diagnostics
	}
	stub := scaledStub(t, 2)
	tf := newTerraform(t, stub)
	tf.planPolicy(tf.policy(), nil)
	refuses(t, "planned before", counted(tf, tf.uncountedWorkers()), both)

	state := newTerraform(t, stub).applyPolicy(tf.policy())
	tf = newTerraform(t, stub)
	diagnostics := counted(tf, tf.uncountedWorkers())
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		!strings.Contains(details(diagnostics)[0], both) || !strings.Contains(details(diagnostics)[0], "lab/g/worker") {
		t.Errorf("stored: got %q", details(diagnostics))
	}
	for name, prepare := range map[string]func(tf terraform){
		"it goes": func(tf terraform) { tf.plan(thePolicy, nil, state) },
		"it ends": func(terraform) {
			providertest.Change(stub, "g/worker",
				func(document *domain.AutoscalingPolicyDocument) { document.Ending = true })
		},
	} {
		tf := newTerraform(t, stub)
		prepare(tf)
		if diagnostics := counted(tf, tf.uncountedWorkers()); len(diagnostics) > 0 {
			t.Errorf("where %s: got %q", name, details(diagnostics))
		}
	}
	providertest.Change(stub, "g/worker", func(document *domain.AutoscalingPolicyDocument) { document.Ending = false })
	if diagnostics := counted(newTerraform(t, stub), nil); len(diagnostics) > 0 {
		t.Errorf("a group that is made anew: got %q", details(diagnostics))
	}
}
