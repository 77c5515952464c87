package provider

import (
	"context"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// unmanagedWorkers returns the configuration of a group without replicas.
func (tf terraform) unmanagedWorkers() map[string]tftypes.Value {
	tf.t.Helper()
	port := int64(10000)
	return tf.groupOf("g",
		group.RoleModel{Port: &port, TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}}})
}

// refreshGroup refreshes a group, and planGroup plans it, with the provider's private state.
func (tf terraform) refreshGroup(state map[string]tftypes.Value) (found map[string]tftypes.Value, private []byte) {
	tf.t.Helper()
	resp, err := tf.server.ReadResource(tf.t.Context(),
		&tfprotov6.ReadResourceRequest{TypeName: "trainyard_group", CurrentState: tf.object("trainyard_group", state)})
	fatalOn(tf.t, err, resp.Diagnostics)
	return tf.attributes("trainyard_group", resp.NewState), resp.Private
}

func (tf terraform) planGroup(config, prior map[string]tftypes.Value, private []byte) map[string]tftypes.Value {
	tf.t.Helper()
	proposed := maps.Clone(config)
	for _, a := range tf.schemas["trainyard_group"].Block.Attributes {
		if a.Computed && config[a.Name].IsNull() {
			proposed[a.Name] = prior[a.Name]
		}
	}
	resp, err := tf.server.PlanResourceChange(tf.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "trainyard_group", PriorPrivate: private,
		Config: tf.object("trainyard_group", config), PriorState: tf.object("trainyard_group", prior),
		ProposedNewState: tf.object("trainyard_group", proposed),
	})
	fatalOn(tf.t, err, resp.Diagnostics)
	return tf.attributes("trainyard_group", resp.PlannedState)
}

// looks counts how often the group was read, and calls before ahead of each read.
type looks struct {
	*providertest.Stub
	before func(look int)
	n      int
}

func (e *looks) Intercept(ctx context.Context, call engine.Call, do func() error) error {
	if call.Name == "Observe" || call.Name == "Specified" {
		e.n++
		e.before(e.n)
	}
	return e.Stub.Intercept(ctx, call, do)
}

// TestPlanOfUnmanagedCounts: an omitted count may change at any time without being a change in a
// plan; other differences are.
func TestPlanOfUnmanagedCounts(t *testing.T) {
	changed := func(tf terraform, change func(r *group.RoleModel)) map[string]tftypes.Value {
		port := int64(10000)
		role := group.RoleModel{Port: &port, TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}}}
		change(&role)
		return tf.groupOf("g", role)
	}
	for name, test := range map[string]struct {
		// first runs before the refresh, looking before each read of the refresh, numbered from 1, and then
		// between refresh and plan.
		first   func(t *testing.T, stub *providertest.Stub)
		looking func(t *testing.T, stub *providertest.Stub, look int)
		then    func(t *testing.T, stub *providertest.Stub)
		change  func(r *group.RoleModel)
		// members is how many the refresh finds; open is set if the plan leaves them unknown.
		members int
		open    bool
	}{
		"nothing": {members: 2},
		"more of them since the refresh": {
			then: func(t *testing.T, stub *providertest.Stub) { stub.Have(t, 4) }, members: 2,
		},
		"fewer of them since the refresh": {
			then: func(t *testing.T, stub *providertest.Stub) { stub.Have(t, 1) }, members: 2,
		},
		"about to be more since the refresh": {
			then: func(t *testing.T, stub *providertest.Stub) { stub.ScalingTo(t, 4) }, members: 2,
		},
		"about to be more":  {first: func(t *testing.T, stub *providertest.Stub) { stub.ScalingTo(t, 4) }, members: 4},
		"about to be fewer": {first: func(t *testing.T, stub *providertest.Stub) { stub.ScalingTo(t, 1) }, members: 1},
		"more of them than the document of a moment ago has": {
			looking: func(t *testing.T, stub *providertest.Stub, look int) {
				if look < 3 {
					stub.Have(t, 2+look)
				}
			}, members: 4,
		},
		"a member that is missing": {
			first: func(_ *testing.T, stub *providertest.Stub) { stub.Observed = stub.Observed[:1] }, members: 1,
			open: true,
		},
		"a member that is missing, and came back": {
			first: func(_ *testing.T, stub *providertest.Stub) { stub.Observed = stub.Observed[:1] },
			then:  func(t *testing.T, stub *providertest.Stub) { stub.Have(t, 2) }, members: 1, open: true,
		},
		"an apply that died": {
			first: func(_ *testing.T, stub *providertest.Stub) {
				providertest.Change(stub, "g", func(document *domain.GroupDocument) { document.Applying = true })
			}, members: 2, open: true,
		},
		"another address of their host": {
			then: func(_ *testing.T, stub *providertest.Stub) {
				providertest.Change(stub, "", func(document *domain.ClusterDocument) {
					document.Spec.Hosts["local"] = providertest.Host("127.0.0.2", 4, 8000, nil)
				})
			}, members: 2, open: true,
		},
		"a host that is gone": {
			then: func(_ *testing.T, stub *providertest.Stub) {
				providertest.Set(stub, providertest.LabOf("other"))
			},
			members: 2, open: true,
		},
		"another environment": {
			change: func(r *group.RoleModel) { r.Env = map[string]string{"A": "1"} }, members: 2, open: true,
		},
		"a count that is declared": {
			change: func(r *group.RoleModel) { r.Replicas = new(int64(3)) }, members: 2, open: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
			stub.Have(t, 2)
			if test.first != nil {
				test.first(t, stub)
			}
			e := &looks{Stub: stub, before: func(look int) {
				if test.looking != nil {
					test.looking(t, stub, look)
				}
			}}
			tf := terraformOn(t, engine.Registry{"process": providertest.Driver(e)})
			state, private := tf.refreshGroup(tf.unmanagedWorkers())
			if got := providertest.TextsOf(t, state["members"]); len(got) != test.members {
				t.Errorf("the refresh finds %v", got)
			}
			if test.then != nil {
				test.then(t, stub)
			}
			tf = terraformOn(t, engine.Registry{"process": providertest.Driver(e)}) // changes are seen by another run
			config := tf.unmanagedWorkers()
			if test.change != nil {
				config = changed(tf, test.change)
			}
			// Again during the apply, when the count may have changed once more.
			for range 2 {
				planned := tf.planGroup(config, state, private)
				for _, attribute := range []string{"members", "placements", "cluster_spec"} {
					switch {
					case test.open && planned[attribute].IsKnown():
						t.Errorf("%s is planned to be %s", attribute, planned[attribute])
					case !test.open && !planned[attribute].Equal(state[attribute]):
						t.Errorf("%s differs: planned %s, is %s", attribute, planned[attribute], state[attribute])
					}
				}
				if !providertest.Documents[domain.GroupDocument](stub)["g"].Scaling &&
					stub.Hosts()["local"].Address == "127.0.0.1" {
					stub.Have(t, 3)
					tf = terraformOn(t, engine.Registry{"process": providertest.Driver(e)})
				}
			}
		})
	}
}

// TestPlanOfANewUnmanagedCount: a policy may exist before the group.
func TestPlanOfANewUnmanagedCount(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	planned, diagnostics := tf.plan("trainyard_group", tf.unmanagedWorkers(), nil)
	fatalOn(t, nil, diagnostics)
	if planned["members"].IsKnown() || planned["placements"].IsKnown() || planned["cluster_spec"].IsKnown() {
		t.Errorf("planned are members %s", planned["members"])
	}
}
