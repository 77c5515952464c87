package provider

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestPlanOfNewGroup(t *testing.T) {
	for name, test := range map[string]struct {
		hosts                              []string
		role                               role
		members, placements, spec, refused bool
	}{
		"one host and a port: all is known": {
			hosts: []string{"local"}, role: role{replicas: 2, port: 9000}, members: true, placements: true, spec: true,
		},
		"free ports are chosen during the apply": {
			hosts: []string{"local"}, role: role{replicas: 2}, placements: true,
		},
		"hosts are chosen during the apply":  {hosts: []string{"a", "b"}, role: role{replicas: 2, port: 9000}},
		"without a cluster nothing is known": {role: role{replicas: 2, port: 9000}},
		"more than a host has is refused": {
			hosts: []string{"local"}, role: role{replicas: 1, port: 9000, cpus: 5}, refused: true,
		},
		"more than all hosts have is refused": {
			hosts: []string{"a", "b"}, role: role{replicas: 9, port: 9000, cpus: 1}, refused: true,
		},
		"a port of somebody else's is refused": {
			hosts: []string{"local"}, role: role{replicas: 2, port: 7999}, refused: true,
		},
		"capacity of another group counts as in use": {
			hosts: []string{"local"}, role: role{replicas: 1, port: 9000, cpus: 3.5}, refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := providertest.ObservedGroup(t, false).Document
			worker := other.Spec.Roles["worker"]
			worker.Resources.CPUs = 0.5
			other.Spec.Roles["worker"] = worker
			other.Assignments = map[string]domain.Assignment{
				"g-worker-0": {Host: "local", Port: 7000}, "g-worker-1": {Host: "local", Port: 7001},
			}
			stub := providertest.Set(&providertest.Stub{Busy: map[string][]int{"127.0.0.1": {7000, 7001, 8000}}}, other)
			if test.hosts != nil {
				providertest.Set(stub, providertest.LabOf(test.hosts...))
			}
			tf := newTerraform(t, stub)
			planned, diagnostics := tf.plan("trainyard_group", tf.group("new", test.role), nil)
			if test.refused {
				if len(diagnostics) == 0 {
					t.Error("it was not refused")
				}
				return
			}
			fatalOn(t, nil, diagnostics)
			for attribute, known := range map[string]bool{
				"members": test.members, "placements": test.placements, "cluster_spec": test.spec,
			} {
				if planned[attribute].IsKnown() != known {
					t.Errorf("%s: got %s, want it to be known: %t", attribute, planned[attribute], known)
				}
			}
			if test.members {
				if got := providertest.TextsOf(t, planned["members"]); got["new-worker-1"] != "127.0.0.1:9001" ||
					len(got) != 2 {
					t.Errorf("members: got %v", got)
				}
			}
		})
	}
}

// A cluster and its groups are planned in one run before any of them exists.
func TestPlanLooksAtWhatIsPlanned(t *testing.T) {
	stub := &providertest.Stub{}
	tf := newTerraform(t, stub)
	planned, diagnostics := tf.plan("trainyard_cluster",
		tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")}), nil)
	fatalOn(t, nil, diagnostics)
	if !planned["hosts"].IsFullyKnown() || planned["id"].IsKnown() {
		t.Errorf("got hosts %s and id %s, want the hosts known, and the id only after the apply", planned["hosts"],
			planned["id"])
	}
	first, diagnostics := tf.plan("trainyard_group", tf.group("first", role{replicas: 2, port: 9000, cpus: 1.5}), nil)
	fatalOn(t, nil, diagnostics)
	if !first["members"].IsFullyKnown() {
		t.Errorf("members of the first group are not known: %s", first["members"])
	}
	for name, test := range map[string]struct {
		role role
		want string
	}{
		"its ports are taken":    {role{replicas: 1, port: 9001}, `group "first"`},
		"its capacity is in use": {role{replicas: 1, port: 9100, cpus: 2}, "1 of 4 CPUs free"},
	} {
		_, diagnostics := tf.plan("trainyard_group", tf.group("second", test.role), nil)
		if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, test.want) {
			t.Errorf("%s: got %v, want an error that says %q", name, diagnostics, test.want)
		}
	}
	_, diagnostics = tf.plan("trainyard_group", tf.group("second", role{replicas: 1, port: 9002, cpus: 1}), nil)
	fatalOn(t, nil, diagnostics)
}

// readGroup refreshes a group's state.
func (tf terraform) readGroup(state map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	found, diagnostics := tf.read("trainyard_group", state)
	fatalOn(tf.t, nil, diagnostics)
	return found
}

// storedWorkers returns an engine with a group "g" of n workers, all as desired.
func storedWorkers(t *testing.T, n int) *providertest.Stub {
	t.Helper()
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	port := 10000
	spec := providertest.ObservedGroup(t, false).Document.Spec
	spec.Template = domain.Template{}
	spec.Roles = map[string]domain.Role{
		"worker": {Replicas: &n, Port: &port, Template: domain.Template{Command: []string{"/bin/true"}}},
	}
	decision, problems := reconcile.Decide(reconcile.View{Inventory: engine.Inventory{Hosts: stub.Hosts()}}, spec)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	decision.Document.Revision = 1
	for i, m := range decision.Members {
		stub.Observed = append(stub.Observed, domain.Observed{
			Name: m.Name, Group: "g", Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: decision.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		})
	}
	return providertest.Set(stub, decision.Document)
}

// A plan without changes is empty, and takes the same number of engine calls for any number of members. A
// missing member is a change.
func TestPlanWithoutChange(t *testing.T) {
	var calls [][]string
	for _, n := range []int{1, 200} {
		stub := storedWorkers(t, n)
		tf := newTerraform(t, stub)
		config := tf.group("g", role{replicas: int64(n), port: 10000})
		state := tf.readGroup(config)
		planned, diagnostics := tf.plan("trainyard_group", config, state)
		fatalOn(t, nil, diagnostics)
		for name, attribute := range planned {
			if !attribute.Equal(state[name]) {
				t.Errorf("%d members: %s differs: planned %s, is %s", n, name, attribute, state[name])
			}
		}
		calls = append(calls, stub.Calls)
		for _, call := range stub.Calls {
			if read := strings.HasPrefix(call, "Get ") ||
				strings.HasPrefix(call, "List "); read && occurrences(stub.Calls, call) > 1 {
				t.Errorf("%d members: a document is read more than once, by the calls %v", n, stub.Calls)
			}
		}

		stub.Observed = stub.Observed[1:]
		state = tf.readGroup(state)
		planned, diagnostics = tf.plan("trainyard_group", config, state)
		fatalOn(t, nil, diagnostics)
		if planned["members"].Equal(state["members"]) || planned["roles"].Equal(state["roles"]) {
			t.Errorf("%d members: one is gone, and the plan is empty", n)
		}
	}
	if !slices.Equal(calls[0], calls[1]) {
		t.Errorf("1 member: calls %v; 200 members: %v", calls[0], calls[1])
	}
}

// occurrences returns how often a call was made.
func occurrences(calls []string, call string) (n int) {
	for _, made := range calls {
		if made == call {
			n++
		}
	}
	return n
}

// An interrupted apply may leave unfinished members, so the next plan is not empty.
func TestPlanAfterApplyThatDied(t *testing.T) {
	stub := storedWorkers(t, 2)
	providertest.Change(stub, "g", func(document *domain.GroupDocument) { document.Applying = true })
	tf := newTerraform(t, stub)
	config := tf.group("g", role{replicas: 2, port: 10000})
	state := tf.readGroup(config)
	planned, diagnostics := tf.plan("trainyard_group", config, state)
	fatalOn(t, nil, diagnostics)
	if planned["cluster_spec"].Equal(state["cluster_spec"]) {
		t.Error("the plan is empty")
	}
}

func TestReadDistinguishesNotFoundFromFailure(t *testing.T) {
	stub := storedWorkers(t, 1)
	tf := newTerraform(t, stub)
	s := tf.schemas["trainyard_group"]
	state := encode(t, s, tftypes.NewValue(s.ValueType(), tf.group("g", role{replicas: 1, port: 10000})))
	read := func() (*tfprotov6.ReadResourceResponse, bool) {
		resp, err := tf.server.ReadResource(t.Context(),
			&tfprotov6.ReadResourceRequest{TypeName: "trainyard_group", CurrentState: state})
		if err != nil {
			t.Fatal(err)
		}
		v, err := resp.NewState.Unmarshal(s.ValueType())
		if err != nil {
			t.Fatal(err)
		}
		return resp, v.IsNull()
	}
	stub.Fails = providertest.Failures{"Get cluster": errors.New("the disk does not answer")}
	if resp, gone := read(); gone || len(resp.Diagnostics) != 1 ||
		!strings.Contains(resp.Diagnostics[0].Detail, "does not answer") {
		t.Errorf("a failed read: gone %t, %v", gone, resp.Diagnostics)
	}
	providertest.Drop[domain.GroupDocument](stub)
	tf = newTerraform(t, stub) // another run
	if resp, gone := read(); !gone || len(resp.Diagnostics) != 0 {
		t.Errorf("a group that is not there: gone %t, %v", gone, resp.Diagnostics)
	}
}

func TestPreflightProblemsFailThePlan(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	stub.Problems.Add(domain.Path{"roles", domain.Key("worker"), "command"}, "Command not found", "no %q", "/bin/true")
	stub.Problems.Warn(nil, "No limits", "memory is not limited here")
	tf := newTerraform(t, stub)
	_, diagnostics := tf.plan("trainyard_group", tf.group("g", role{replicas: 1, port: 10000}), nil)
	if len(diagnostics) != 2 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError ||
		diagnostics[0].Attribute == nil || diagnostics[1].Severity != tfprotov6.DiagnosticSeverityWarning {
		t.Errorf("got %v, want an error at an attribute and a warning", diagnostics)
	}
}

// TestPlanOfSpreadBy: members can be spread by a label of any planned host, and unknown values defer the check.
func TestPlanOfSpreadBy(t *testing.T) {
	lab := providertest.LabOf("a")
	lab.Spec.Hosts["b"] = providertest.Host("127.0.0.1", 4, 8000, map[string]string{"rack": "x", "disk": "ssd"})
	for name, test := range map[string]struct {
		label string
		// cluster changes the configuration of the cluster, which is then planned in the same run; nil if it is not.
		cluster func(config map[string]tftypes.Value)
		open    bool
		refused string
	}{
		"a label of some hosts": {label: "rack"},
		"a label of none": {
			label:   "zone",
			refused: `roles["worker"].placement.spread_by: no host of cluster "lab" has a label "zone" to spread members by; the labels of its hosts are: disk, rack`,
		},
		"a label that goes": {
			label: "rack", cluster: func(map[string]tftypes.Value) {}, refused: "the labels of its hosts are: none",
		},
		"hosts that are open": {label: "zone", cluster: func(config map[string]tftypes.Value) {
			config["hosts"] = tftypes.NewValue(config["hosts"].Type(), tftypes.UnknownValue)
		}},
		"a label that is open": {label: "zone", open: true},
	} {
		t.Run(name, func(t *testing.T) {
			tf := newTerraform(t, providertest.Set(&providertest.Stub{}, lab))
			if test.cluster != nil {
				config := tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")})
				test.cluster(config)
				_, diagnostics := tf.plan("trainyard_cluster", config, nil)
				fatalOn(t, nil, diagnostics)
			}
			config := tf.group("g", role{replicas: 2})
			config["roles"] = tf.spread(test.label)
			if test.open {
				config["roles"] = without(t, config["roles"],
					`ElementKeyString("worker").AttributeName("placement").AttributeName("spread_by")`)
			}
			_, diagnostics := tf.plan("trainyard_group", config, nil)
			if test.refused == "" {
				fatalOn(t, nil, diagnostics)
			} else if message := strings.Join(details(diagnostics), "\n"); !strings.Contains(message, test.refused) {
				t.Errorf("it says %q, want %q", message, test.refused)
			}
		})
	}
}

func TestValidateGroup(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	unknown := func(v tftypes.Value) tftypes.Value { return tftypes.NewValue(v.Type(), tftypes.UnknownValue) }
	for name, test := range map[string]struct {
		change func(map[string]tftypes.Value)
		want   []string
	}{
		"valid": {func(map[string]tftypes.Value) {}, nil},
		"a bad name": {
			func(c map[string]tftypes.Value) { c["name"] = providertest.Text("G_1") }, []string{"Invalid group name"},
		},
		"an unknown framework": {
			func(c map[string]tftypes.Value) { c["framework"] = providertest.Text("caffe") },
			[]string{"Unknown framework"},
		},
		"an unknown cluster": {func(c map[string]tftypes.Value) {
			c["cluster"] = unknown(c["cluster"])
			c["name"] = providertest.Text("G_1")
		}, []string{"Invalid group name"}},
		"not known yet": {func(c map[string]tftypes.Value) {
			c["name"] = unknown(c["name"])
			c["framework"] = providertest.Text("caffe")
		}, []string{"Unknown framework"}},
		"a label without a name": {
			func(c map[string]tftypes.Value) { c["roles"] = tf.spread("") }, []string{"Invalid Attribute Value Length"},
		},
		"a label that is none": {
			func(c map[string]tftypes.Value) { c["roles"] = tf.spread("rack=a") }, []string{"Invalid label"},
		},
		"a label": {
			func(c map[string]tftypes.Value) { c["roles"] = tf.spread("example.com/rack") }, nil,
		},
		"a duration that is none": {
			func(c map[string]tftypes.Value) { c["completion"] = completion(t, "soon") }, []string{"Invalid duration"},
		},
		"a duration that is right": {func(c map[string]tftypes.Value) { c["completion"] = completion(t, "1h") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			config := tf.group("g", role{replicas: 1, port: 9000})
			test.change(config)
			s := tf.schemas["trainyard_group"]
			resp, err := tf.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: "trainyard_group", Config: encode(t, s, tftypes.NewValue(s.ValueType(), config)),
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range resp.Diagnostics {
				got = append(got, d.Summary)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// spread returns the roles of a group whose members are spread by a label.
func (tf terraform) spread(label string) tftypes.Value {
	return tf.groupOf("g", group.RoleModel{
		Placement:     &group.PlacementModel{SpreadBy: &label},
		TemplateModel: group.TemplateModel{Command: []string{"/bin/true"}},
	})["roles"]
}

func completion(t *testing.T, deadline string) tftypes.Value {
	t.Helper()
	typ, ok := group.CompletionAttribute().GetType().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("completion is no object")
	}
	attributes := map[string]tftypes.Value{}
	for name, attribute := range typ.AttributeTypes {
		attributes[name] = tftypes.NewValue(attribute, nil)
	}
	attributes["deadline"] = providertest.Text(deadline)
	return tftypes.NewValue(typ, attributes)
}
