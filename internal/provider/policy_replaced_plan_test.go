package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/policy"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// A role has one policy: another one, in the same configuration or outside, is refused at plan.
func TestPlanOfTwoAutoscalingPolicies(t *testing.T) {
	const twice = `Two policies for one role: role: another resource of this configuration is already the autoscaling policy of role "worker" of group "g"`
	const exists = `role "worker" of group "g" in cluster "lab" already has an autoscaling policy with another specification, and a role can have only one; change that one, or import it: terraform import <address> lab/g/worker`

	tf := newTerraform(t, scaledStub(t, 2))
	tf.planPolicy(tf.policy(), nil)
	_, diagnostics := tf.plan(thePolicy, tf.policy(atLeast(2)), nil)
	refuses(t, "two new ones", diagnostics, twice)

	tf = newTerraform(t, scaledStub(t, 2))
	open := tf.policy()
	open["metrics"] = tftypes.NewValue(open["metrics"].Type(), tftypes.UnknownValue)
	tf.planPolicy(open, nil)
	_, diagnostics = tf.plan(thePolicy, tf.policy(), nil)
	refuses(t, "one that is not known yet", diagnostics, twice)

	stub := scaledStub(t, 2)
	state := newTerraform(t, stub).applyPolicy(tf.policy())
	tf = newTerraform(t, stub)
	tf.planPolicy(tf.policy(), state)
	_, diagnostics = tf.plan(thePolicy, tf.policy(), nil)
	refuses(t, "a new one beside one that stays", diagnostics, twice)

	tf = newTerraform(t, stub)
	_, diagnostics = tf.plan(thePolicy, tf.policy(atLeast(2)), nil)
	refuses(t, "one of another configuration", diagnostics, exists)
	tf = newTerraform(t, stub)
	tf.planPolicy(tf.policy(), nil) // it is adopted

	// Policies for other roles, groups and clusters don't count.
	stub = scaledStub(t, 2)
	other := providertest.Documents[domain.GroupDocument](stub)["g"]
	other.Spec.Name = "h"
	providertest.Set(stub, other)
	tf = newTerraform(t, stub)
	tf.planPolicy(tf.policy(), nil)
	tf.planPolicy(tf.policy(func(m *policy.Model) { m.Group = types.StringValue("h") }), nil)
}

// A policy that is replaced, or moved to another address, is not a second one.
func TestPlanOfReplacedAutoscalingPolicy(t *testing.T) {
	stub := scaledStub(t, 2)
	state := newTerraform(t, stub).applyPolicy(newTerraform(t, stub).policy())

	// Terraform plans a replacement twice: with the state, and then without, but with the first plan's private state.
	tf := newTerraform(t, stub)
	config := tf.policy(atLeast(2))
	proposed := maps.Clone(config)
	proposed["id"] = state["id"]
	first, err := tf.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: thePolicy, Config: tf.object(thePolicy, config), PriorState: tf.object(thePolicy, state),
		ProposedNewState: tf.object(thePolicy, proposed),
	})
	fatalOn(t, err, first.Diagnostics)
	second, err := tf.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: thePolicy, Config: tf.object(thePolicy, config), PriorState: tf.object(thePolicy, nil),
		ProposedNewState: tf.object(thePolicy, config), PriorPrivate: first.PlannedPrivate,
	})
	fatalOn(t, err, second.Diagnostics)

	// A tainted one is read, and planned as new.
	tf = newTerraform(t, stub)
	_, diagnostics := tf.read(thePolicy, state)
	fatalOn(t, nil, diagnostics)
	tf.planPolicy(config, nil)

	// One is destroyed, and another one takes its place.
	tf = newTerraform(t, stub)
	_, diagnostics = tf.plan(thePolicy, nil, state)
	fatalOn(t, nil, diagnostics)
	tf.planPolicy(config, nil)

	// It moves to another role, and another one takes its former role.
	tf = newTerraform(t, stub)
	other := providertest.Documents[domain.GroupDocument](stub)["g"]
	other.Spec.Name = "h"
	providertest.Set(stub, other)
	moved := tf.policy(func(m *policy.Model) { m.Group = types.StringValue("h") })
	tf.planPolicy(moved, state)
	tf.planPolicy(config, nil)
}
