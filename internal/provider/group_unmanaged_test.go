package provider

import (
	"context"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// have has the engine hold the group "g" of so many workers, whose number is left out, and all of them be as desired.
func (e *stubEngine) have(t *testing.T, n int) {
	t.Helper()
	spec := observedGroup(t, false).Document.Spec
	spec.Template = domain.Template{}
	spec.Roles = map[string]domain.Role{"worker": {Port: new(10000), Template: domain.Template{Command: []string{"/bin/true"}}}}
	stored := documents[domain.GroupDocument](e)["g"]
	stored.Spec, stored.Counts, stored.Applying = spec, map[string]int{"worker": n}, false
	decision, problems := reconcile.Decide(reconcile.View{Inventory: engine.Inventory{Hosts: e.hosts()}, Groups: map[string]domain.GroupDocument{"g": stored}}, spec)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	decision.Document.Revision++
	set(e, decision.Document)
	e.observed = nil
	for i, m := range decision.Members {
		e.observed = append(e.observed, domain.Observed{Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address, Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning})
	}
}

// scalingTo has the document say that there are to be so many workers, which nobody has started or removed yet.
func (e *stubEngine) scalingTo(t *testing.T, n int) {
	t.Helper()
	observed := e.observed
	e.have(t, n)
	change(e, "g", func(document *domain.GroupDocument) { document.Scaling = true })
	e.observed = observed
}

// unmanagedWorkers is the configuration of such a group.
func (tf terraform) unmanagedWorkers() map[string]tftypes.Value {
	tf.t.Helper()
	port := int64(10000)
	return tf.groupOf("g", roleModel{Port: &port, templateModel: templateModel{Command: []string{"/bin/true"}}})
}

// refreshGroup refreshes a group, and planGroup plans it, with what the provider keeps of it beside the state.
func (tf terraform) refreshGroup(state map[string]tftypes.Value) (found map[string]tftypes.Value, private []byte) {
	tf.t.Helper()
	resp, err := tf.server.ReadResource(tf.t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "trainyard_group", CurrentState: tf.object("trainyard_group", state)})
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
		Config: tf.object("trainyard_group", config), PriorState: tf.object("trainyard_group", prior), ProposedNewState: tf.object("trainyard_group", proposed),
	})
	fatalOn(tf.t, err, resp.Diagnostics)
	return tf.attributes("trainyard_group", resp.PlannedState)
}

// looks counts how often the group was looked at, and has something happen before a look.
type looks struct {
	*stubEngine
	before func(look int)
	n      int
}

func (e *looks) intercept(ctx context.Context, call engine.Call, do func() error) error {
	if call.Name == "Observe" || call.Name == "Specified" {
		e.n++
		e.before(e.n)
	}
	return e.stubEngine.intercept(ctx, call, do)
}

// TestPlanOfUnmanagedCounts: a count that is left out changes at any moment, and makes a difference at none; what else has to be done for the group
// does.
func TestPlanOfUnmanagedCounts(t *testing.T) {
	changed := func(tf terraform, change func(r *roleModel)) map[string]tftypes.Value {
		port := int64(10000)
		role := roleModel{Port: &port, templateModel: templateModel{Command: []string{"/bin/true"}}}
		change(&role)
		return tf.groupOf("g", role)
	}
	for name, test := range map[string]struct {
		// first happens before the refresh, looking at a look of it, of which the first is 1, and then between the refresh and the plan.
		first   func(t *testing.T, stub *stubEngine)
		looking func(t *testing.T, stub *stubEngine, look int)
		then    func(t *testing.T, stub *stubEngine)
		change  func(r *roleModel)
		// members is how many the refresh finds, and open tells that the plan leaves them open.
		members int
		open    bool
	}{
		"nothing":                            {members: 2},
		"more of them since the refresh":     {then: func(t *testing.T, stub *stubEngine) { stub.have(t, 4) }, members: 2},
		"fewer of them since the refresh":    {then: func(t *testing.T, stub *stubEngine) { stub.have(t, 1) }, members: 2},
		"about to be more since the refresh": {then: func(t *testing.T, stub *stubEngine) { stub.scalingTo(t, 4) }, members: 2},
		"about to be more":                   {first: func(t *testing.T, stub *stubEngine) { stub.scalingTo(t, 4) }, members: 4},
		"about to be fewer":                  {first: func(t *testing.T, stub *stubEngine) { stub.scalingTo(t, 1) }, members: 1},
		"more of them than the document of a moment ago has": {
			looking: func(t *testing.T, stub *stubEngine, look int) {
				if look < 3 {
					stub.have(t, 2+look)
				}
			}, members: 4,
		},
		"a member that is missing": {
			first: func(_ *testing.T, stub *stubEngine) { stub.observed = stub.observed[:1] }, members: 1, open: true,
		},
		"a member that is missing, and came back": {
			first: func(_ *testing.T, stub *stubEngine) { stub.observed = stub.observed[:1] },
			then:  func(t *testing.T, stub *stubEngine) { stub.have(t, 2) }, members: 1, open: true,
		},
		"an apply that died": {
			first: func(_ *testing.T, stub *stubEngine) {
				change(stub, "g", func(document *domain.GroupDocument) { document.Applying = true })
			}, members: 2, open: true,
		},
		"another address of their host": {
			then: func(_ *testing.T, stub *stubEngine) {
				change(stub, "", func(document *domain.ClusterDocument) { document.Spec.Hosts["local"] = host("127.0.0.2", 4, 8000, nil) })
			}, members: 2, open: true,
		},
		"a host that is gone": {
			then: func(_ *testing.T, stub *stubEngine) { set(stub, labOf("other")) }, members: 2, open: true,
		},
		"another environment":      {change: func(r *roleModel) { r.Env = map[string]string{"A": "1"} }, members: 2, open: true},
		"a count that is declared": {change: func(r *roleModel) { r.Replicas = new(int64(3)) }, members: 2, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			stub := set(&stubEngine{}, labOf("local"))
			stub.have(t, 2)
			if test.first != nil {
				test.first(t, stub)
			}
			e := &looks{stubEngine: stub, before: func(look int) {
				if test.looking != nil {
					test.looking(t, stub, look)
				}
			}}
			tf := terraformOn(t, engine.Registry{"process": driver(e)})
			state, private := tf.refreshGroup(tf.unmanagedWorkers())
			if got := textsOf(t, state["members"]); len(got) != test.members {
				t.Errorf("the refresh finds %v", got)
			}
			if test.then != nil {
				test.then(t, stub)
			}
			tf = terraformOn(t, engine.Registry{"process": driver(e)}) // what changes is seen by another run
			config := tf.unmanagedWorkers()
			if test.change != nil {
				config = changed(tf, test.change)
			}
			// Once more for the apply, by when the count may be another one again.
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
				if !documents[domain.GroupDocument](stub)["g"].Scaling && stub.hosts()["local"].Address == "127.0.0.1" {
					stub.have(t, 3)
					tf = terraformOn(t, engine.Registry{"process": driver(e)})
				}
			}
		})
	}
}

// TestPlanOfANewUnmanagedCount: a policy may be there before the group is.
func TestPlanOfANewUnmanagedCount(t *testing.T) {
	tf := newTerraform(t, set(&stubEngine{}, labOf("local")))
	planned, diagnostics := tf.plan("trainyard_group", tf.unmanagedWorkers(), nil)
	fatalOn(t, nil, diagnostics)
	if planned["members"].IsKnown() || planned["placements"].IsKnown() || planned["cluster_spec"].IsKnown() {
		t.Errorf("planned are members %s", planned["members"])
	}
}
