package provider

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/cluster"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// swarm returns the configuration of a cluster of two hosts.
func (tf terraform) swarm(change func(m *cluster.Model)) map[string]tftypes.Value {
	tf.t.Helper()
	m := cluster.Model{
		Name: types.StringValue("lab"), Engine: types.StringValue("swarm"),
		Timeouts: providertest.NoTimeouts(cluster.Schema(tf.t.Context(), nil)),
		Hosts: map[string]cluster.HostModel{
			"gpu1": {Role: new("manager"), Address: new("ssh://gpu1")},
			"gpu2": {Address: new("ssh://gpu2"), Labels: map[string]string{"gpu": "v100"}},
		},
	}
	if change != nil {
		change(&m)
	}
	s := cluster.Schema(tf.t.Context(), []string{"process", "swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(tf.t.Context()), nil)}
	if diags := state.Set(tf.t.Context(), m); diags.HasError() {
		tf.t.Fatal(diags)
	}
	var attributes map[string]tftypes.Value
	if err := state.Raw.As(&attributes); err != nil {
		tf.t.Fatal(err)
	}
	return attributes
}

// clusterOfUnknownHosts returns the configuration of a cluster whose hosts are known only after the apply.
func (tf terraform) clusterOfUnknownHosts(engineName string) map[string]tftypes.Value {
	tf.t.Helper()
	config := tf.swarm(func(m *cluster.Model) { m.Engine = types.StringValue(engineName) })
	config["hosts"] = tftypes.NewValue(config["hosts"].Type(), tftypes.UnknownValue)
	return config
}

// modelOf returns the model for a cluster's attributes.
func modelOf(t *testing.T, attributes map[string]tftypes.Value) (m cluster.Model) {
	t.Helper()
	s := cluster.Schema(t.Context(), []string{"process", "swarm"})
	state := tfsdk.State{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), attributes)}
	if diags := state.Get(t.Context(), &m); diags.HasError() {
		t.Fatal(diags)
	}
	return m
}

// created returns the state of a cluster that was applied.
func (tf terraform) created(config map[string]tftypes.Value) map[string]tftypes.Value {
	tf.t.Helper()
	planned, diagnostics := tf.plan("trainyard_cluster", config, nil)
	fatalOn(tf.t, nil, diagnostics)
	state, diagnostics := tf.applyCluster(config, nil, planned)
	fatalOn(tf.t, nil, diagnostics)
	return state
}

func TestPlanOfSwarm(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(m *cluster.Model)
		endpoint types.String
		subnet   types.String
	}{
		"the first manager's address is the endpoint": {nil, types.StringValue("ssh://gpu1"), types.StringUnknown()},
		"an endpoint of its own": {
			func(m *cluster.Model) { m.Endpoint = types.StringValue("tcp://lb") }, types.StringValue("tcp://lb"),
			types.StringUnknown(),
		},
		"no manager with an address": {
			func(m *cluster.Model) { m.Hosts["gpu1"] = cluster.HostModel{Role: new("manager")} }, types.StringNull(),
			types.StringUnknown(),
		},
		"no hosts": {func(m *cluster.Model) { m.Hosts = nil }, types.StringNull(), types.StringUnknown()},
		"a subnet": {
			func(m *cluster.Model) { m.Network = &cluster.NetworkModel{Subnet: types.StringValue("10.1.0.0/20")} },

			types.StringValue("ssh://gpu1"), types.StringValue("10.1.0.0/20"),
		},
		"a network without a subnet": {
			func(m *cluster.Model) { m.Network = &cluster.NetworkModel{Encrypted: new(true)} },
			types.StringValue("ssh://gpu1"), types.StringUnknown(),
		},
	} {
		tf := newTerraform(t, &providertest.Stub{Network: &domain.Network{}})
		config := tf.swarm(test.change)
		planned, diagnostics := tf.plan("trainyard_cluster", config, nil)
		fatalOn(t, nil, diagnostics)
		got := modelOf(t, planned)
		if !got.Endpoint.Equal(test.endpoint) || got.Network == nil || !got.Network.Subnet.Equal(test.subnet) {
			t.Errorf("%s: planned %s and %+v, want %s and %s", name, got.Endpoint, got.Network, test.endpoint,
				test.subnet)
		}
		if resourcekit.Value(
			got.Network.Encrypted,
		) != resourcekit.Value(resourcekit.Value(modelOf(t, config).Network).Encrypted) {
			t.Errorf("%s: planned to be encrypted: %t", name, resourcekit.Value(got.Network.Encrypted))
		}
		state, diagnostics := tf.applyCluster(config, nil, planned)
		fatalOn(t, nil, diagnostics)
		expectNoChange(t, tf, name, config, state)
	}
}

// expectNoChange fails unless refresh and plan find no change.
func expectNoChange(t *testing.T, tf terraform, when string, config, state map[string]tftypes.Value) {
	t.Helper()
	found, diagnostics := tf.read("trainyard_cluster", state)
	fatalOn(t, nil, diagnostics)
	planned, diagnostics := tf.plan("trainyard_cluster", config, found)
	fatalOn(t, nil, diagnostics)
	for attribute := range planned {
		if !found[attribute].Equal(state[attribute]) || !planned[attribute].Equal(state[attribute]) {
			t.Errorf("%s: %s was %s, is read as %s, and planned as %s", when, attribute, state[attribute],
				found[attribute], planned[attribute])
		}
	}
}

// TestPlanOfNoResidents: a cluster whose controller can't be started from here is neither created nor changed. If
// nothing changes, the controller may well be running.
func TestPlanOfNoResidents(t *testing.T) {
	stub := &providertest.Stub{Network: &domain.Network{}}
	tf := newTerraform(t, stub)
	config := tf.swarm(nil)
	state := tf.created(config)
	stub.Particular.NoResidents = "there is no image of the controller"
	expectNoChange(t, tf, "without residents", config, state)

	relabelled := tf.swarm(func(m *cluster.Model) { m.Hosts["gpu2"] = cluster.HostModel{Address: new("ssh://gpu2")} })
	for name, plan := range map[string]struct{ config, state map[string]tftypes.Value }{
		"creation": {config, nil}, "change": {relabelled, state},
		"creation of hosts that are not known yet": {tf.clusterOfUnknownHosts("swarm"), nil},
	} {
		_, diagnostics := tf.plan("trainyard_cluster", plan.config, plan.state)
		if len(diagnostics) != 1 || !diagnostics[0].Attribute.Equal(
			tftypes.NewAttributePath().WithAttributeName("engine"),
		) || !strings.Contains(diagnostics[0].Detail, stub.Particular.NoResidents) {
			t.Errorf("%s: %v", name, diagnostics)
		}
	}
}

// TestPlanOnEngineThatRefuses: an engine that this operating system lacks is refused at the attribute that selects it.
func TestPlanOnEngineThatRefuses(t *testing.T) {
	stub := &providertest.Stub{}
	engines := stub.Registry()
	refusing := engines["process"]
	refusing.Open = func(domain.ClusterRef, engine.Settings) (engine.Engine, error) {
		return nil, domain.Problems{
			{Path: domain.Path{"engine"}, Summary: "Engine not available on macOS", Detail: "use another"},
		}
	}
	engines["process"] = refusing
	tf := terraformOn(t, engines)
	_, diagnostics := tf.plan("trainyard_cluster",
		tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")}), nil)
	if len(diagnostics) != 1 || diagnostics[0].Summary != "Engine not available on macOS" ||
		!diagnostics[0].Attribute.Equal(tftypes.NewAttributePath().WithAttributeName("engine")) {
		t.Errorf("the plan of a cluster: %v", diagnostics)
	}
}

func TestProcessHasNoEndpointAndNoNetwork(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	planned, diagnostics := tf.plan("trainyard_cluster",
		tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")}), nil)
	fatalOn(t, nil, diagnostics)
	if !planned["endpoint"].IsNull() || !planned["network"].IsNull() {
		t.Errorf("planned %s and %s", planned["endpoint"], planned["network"])
	}
}

// Changes from outside to declared attributes are in the plan, and those to others are not.
func TestClusterDrift(t *testing.T) {
	for name, test := range map[string]struct {
		surveyed func(c *domain.Cluster)
		changed  []path.Path
	}{
		"a host that left": {
			func(c *domain.Cluster) { delete(c.Hosts, "gpu2") }, []path.Path{path.Root("hosts").AtMapKey("gpu2")},
		},
		"a role": {
			drift("gpu1", func(h *domain.Host) { h.Role = domain.HostWorker }),
			[]path.Path{path.Root("hosts").AtMapKey("gpu1").AtName("role")},
		},
		"a label": {
			drift("gpu2", func(h *domain.Host) { h.Labels = map[string]string{} }),
			[]path.Path{path.Root("hosts").AtMapKey("gpu2").AtName("labels")},
		},
		"an availability": {
			drift("gpu1", func(h *domain.Host) { h.Availability = domain.HostDrained }),
			[]path.Path{path.Root("hosts").AtMapKey("gpu1").AtName("availability")},
		},
		"the network is gone": {func(c *domain.Cluster) { c.Network = nil }, []path.Path{path.Root("network")}},
		"encryption": {
			func(c *domain.Cluster) { c.Network = &domain.Network{Subnet: c.Network.Subnet} },
			[]path.Path{path.Root("network").AtName("encrypted")},
		},
		"a subnet, not managed": {
			func(c *domain.Cluster) { c.Network = &domain.Network{Subnet: "10.7.0.0/20", Encrypted: true} }, nil,
		},
		"attachable, unmanaged": {func(c *domain.Cluster) {
			c.Network = &domain.Network{Subnet: c.Network.Subnet, Encrypted: true, Attachable: true}
		}, nil},
		"nothing": {func(*domain.Cluster) {}, nil},
	} {
		stub := &providertest.Stub{Network: &domain.Network{}}
		tf := newTerraform(t, stub)
		config := tf.swarm(func(m *cluster.Model) {
			gpu1 := m.Hosts["gpu1"]
			gpu1.Availability = new("active")
			m.Hosts["gpu1"] = gpu1
			m.Network = &cluster.NetworkModel{Encrypted: new(true)}
		})
		state := tf.created(config)
		stub.Surveyed = func(c domain.Cluster) (domain.Cluster, error) {
			c.Hosts = maps.Clone(c.Hosts)
			test.surveyed(&c)
			return c, nil
		}
		found, diagnostics := tf.read("trainyard_cluster", state)
		fatalOn(t, nil, diagnostics)
		planned, diagnostics := tf.plan("trainyard_cluster", config, found)
		fatalOn(t, nil, diagnostics)
		before, after := planOf(t, found), planOf(t, planned)
		for _, at := range test.changed {
			if same(t, before, after, at) {
				t.Errorf("%s: the plan does not change %s", name, at)
			}
		}
		if changed := !slices.EqualFunc([]string{"hosts", "network", "endpoint", "engine"},
			[]string{"hosts", "network", "endpoint", "engine"},
			func(a, _ string) bool { return planned[a].Equal(found[a]) }); changed != (len(test.changed) > 0) {
			t.Errorf("%s: the plan changes something: %t", name, changed)
		}
	}
}

// drift changes a host as found.
func drift(name string, change func(h *domain.Host)) func(c *domain.Cluster) {
	return func(c *domain.Cluster) {
		h := c.Hosts[name]
		change(&h)
		c.Hosts[name] = h
	}
}

func planOf(t *testing.T, attributes map[string]tftypes.Value) tfsdk.Plan {
	t.Helper()
	s := cluster.Schema(t.Context(), []string{"process", "swarm"})
	return tfsdk.Plan{Schema: s, Raw: tftypes.NewValue(s.Type().TerraformType(t.Context()), attributes)}
}

// same reports whether two plans have the same value at a path.
func same(t *testing.T, a, b tfsdk.Plan, at path.Path) bool {
	t.Helper()
	get := func(p tfsdk.Plan) attr.Value {
		matches, diags := p.PathMatches(t.Context(), at.Expression())
		if diags.HasError() || len(matches) == 0 {
			return nil // no such element
		}
		var v attr.Value
		if diags := p.GetAttribute(t.Context(), at, &v); diags.HasError() {
			t.Fatal(diags)
		}
		return v
	}
	x, y := get(a), get(b)
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return x.Equal(y)
}

// Plans of groups use the planned cluster, whichever endpoint either is reached at.
func TestGroupsOfPlannedClusterAtAnotherEndpoint(t *testing.T) {
	stub := &providertest.Stub{}
	tf := newTerraform(t, stub)
	config := tf.config("trainyard_cluster",
		map[string]tftypes.Value{"name": providertest.Text("lab"), "endpoint": providertest.Text("ssh://new")})
	_, diagnostics := tf.plan("trainyard_cluster", config, nil)
	fatalOn(t, nil, diagnostics)
	group := tf.group("g", role{replicas: 1, port: 9000})
	group["cluster"] = labReference("ssh://old")
	planned, diagnostics := tf.plan("trainyard_group", group, nil)
	fatalOn(t, nil, diagnostics)
	if !planned["members"].IsFullyKnown() {
		t.Errorf("got members %s, want those on the planned cluster", planned["members"])
	}
}

// Two clusters of one name would be taken for one; what is planned anew, or has a new endpoint, is still the same one.
func TestClusterNameUsedTwice(t *testing.T) {
	at := func(endpoint string, hosts ...string) func(m *cluster.Model) {
		return func(m *cluster.Model) {
			m.Endpoint, m.Hosts = resourcekit.TextOrNull(endpoint), nil
			for _, host := range hosts {
				if m.Hosts == nil {
					m.Hosts = map[string]cluster.HostModel{}
				}
				m.Hosts[host] = cluster.HostModel{Address: new("ssh://" + host), Role: new("manager")}
			}
		}
	}
	for name, test := range map[string]struct {
		first, second func(m *cluster.Model)
		twice         bool
	}{
		"the same":                        {at("", "a1", "a2"), at("", "a1", "a2"), false},
		"another endpoint, the same host": {at("ssh://a2", "a1", "a2"), at("", "a1"), false},
		"another site":                    {at("", "a1", "a2"), at("", "b1"), true},
		"another site, by its endpoint":   {at("ssh://a1"), at("ssh://b1"), true},
		"another site, and the default":   {at(""), at("ssh://b1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			tf := newTerraform(t, &providertest.Stub{Network: &domain.Network{}, Endpoint: "unix:///default"})
			_, diagnostics := tf.plan("trainyard_cluster", tf.swarm(test.first), nil)
			fatalOn(t, nil, diagnostics)
			_, diagnostics = tf.plan("trainyard_cluster", tf.swarm(test.second), nil)
			twice := len(diagnostics) == 1 && diagnostics[0].Summary == "Cluster name used twice"
			if twice != test.twice || !twice && len(diagnostics) > 0 {
				t.Errorf("got %v, want it to be refused: %t", diagnostics, test.twice)
			}
		})
	}
}

// Changing the endpoint replaces neither cluster nor group.
func TestEndpointIsChangedInPlace(t *testing.T) {
	stub := storedWorkers(t, 1)
	tf := newTerraform(t, stub)
	config := tf.group("g", role{replicas: 1, port: 10000})
	state := tf.readGroup(config)
	config = maps.Clone(config)
	config["cluster"] = labReference("ssh://new")
	proposed := maps.Clone(state)
	proposed["cluster"] = config["cluster"]
	resp, err := tf.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "trainyard_group", Config: tf.object("trainyard_group", config),
		PriorState: tf.object("trainyard_group", state), ProposedNewState: tf.object("trainyard_group", proposed),
	})
	fatalOn(t, err, resp.Diagnostics)
	if len(resp.RequiresReplace) > 0 {
		t.Errorf("another endpoint replaces the group: %v", resp.RequiresReplace)
	}
	planned := tf.attributes("trainyard_group", resp.PlannedState)
	for name, v := range planned {
		if changed := !v.Equal(state[name]); changed != (name == "cluster") {
			t.Errorf("%s: was %s, is planned as %s", name, state[name], v)
		}
	}
}

// Refresh and plan use a cluster at one endpoint, and so share one snapshot, even if the
// configuration omits the endpoint.
func TestRefreshAndPlanReadTheSame(t *testing.T) {
	stub := &providertest.Stub{Network: &domain.Network{}, Endpoint: "ssh://gpu1"}
	config := newTerraform(t, stub).swarm(func(m *cluster.Model) {
		m.Hosts["gpu1"] = cluster.HostModel{Address: new("ssh://gpu1")}
	})
	state := newTerraform(t, stub).created(config)

	tf := newTerraform(t, stub) // another run
	stub.Snapshots = 0
	state, diagnostics := tf.read("trainyard_cluster", state)
	fatalOn(t, nil, diagnostics)
	_, diagnostics = tf.plan("trainyard_cluster", config, state)
	fatalOn(t, nil, diagnostics)
	if stub.Snapshots != 1 {
		t.Errorf("refresh and plan took %d snapshots of the cluster", stub.Snapshots)
	}
}

// What the engine knows of hosts is kept from one apply to the next, though it is in no state.
func TestUpdateKeepsWhatTheEngineKnows(t *testing.T) {
	stub := &providertest.Stub{Network: &domain.Network{}}
	tf := newTerraform(t, stub)
	state := tf.created(tf.swarm(nil))
	providertest.Change(stub, "", func(document *domain.ClusterDocument) {
		gpu2 := document.Spec.Hosts["gpu2"]
		gpu2.ID, gpu2.Joined = "as it was stored", false
		document.Spec.Hosts["gpu2"] = gpu2
	})

	config := tf.swarm(func(m *cluster.Model) {
		m.Hosts["gpu2"] = cluster.HostModel{Address: new("ssh://gpu2"), Labels: map[string]string{"gpu": "a100"}}
		m.Hosts["gpu3"] = cluster.HostModel{Address: new("ssh://gpu3")}
	})
	planned, diagnostics := tf.plan("trainyard_cluster", config, state)
	fatalOn(t, nil, diagnostics)
	stub.Calls = nil
	state, diagnostics = tf.applyCluster(config, state, planned)
	fatalOn(t, nil, diagnostics)
	hosts := stub.Hosts()
	if hosts["gpu1"].ID != "id-of-gpu1" || !hosts["gpu1"].Joined || hosts["gpu2"].ID != "as it was stored" ||
		hosts["gpu2"].Joined || hosts["gpu3"].ID != "id-of-gpu3" {
		t.Errorf("stored hosts: %+v", hosts)
	}
	if hosts["gpu2"].Labels["gpu"] != "a100" {
		t.Errorf("stored labels: %v", hosts["gpu2"].Labels)
	}
	if form, put := slices.Index(stub.Calls, "Form"), slices.Index(stub.Calls, "Put cluster"); form < 0 || form > put {
		t.Errorf("calls %v: the cluster is to be formed before it is stored", stub.Calls)
	}
	expectNoChange(t, tf, "after the update", config, state)
}

// The state of a cluster that could not be formed or read stays as it was.
func TestFailuresLeaveTheStateAsItIs(t *testing.T) {
	unreachable := errors.Join(engine.ErrUnreachable, errors.New("ssh://gpu1"))
	for name, fail := range map[string]func(stub *providertest.Stub){
		"forming":   func(stub *providertest.Stub) { stub.Fails = providertest.Failures{"Form": unreachable} },
		"storing":   func(stub *providertest.Stub) { stub.Fails = providertest.Failures{"Put cluster": unreachable} },
		"reading":   func(stub *providertest.Stub) { stub.Fails = providertest.Failures{"Get cluster": unreachable} },
		"surveying": func(stub *providertest.Stub) { stub.Surveyed = fails(unreachable) },
		"surveying, with something not found": func(stub *providertest.Stub) {
			stub.Surveyed = fails(errors.Join(engine.ErrNotFound, engine.ErrUnreachable))
		},
	} {
		stub := &providertest.Stub{Network: &domain.Network{}}
		tf := newTerraform(t, stub)
		state := tf.created(tf.swarm(nil))
		fail(stub)
		var kept map[string]tftypes.Value
		var diagnostics []*tfprotov6.Diagnostic
		if name == "forming" || name == "storing" {
			config := tf.swarm(func(m *cluster.Model) { m.Network = &cluster.NetworkModel{Attachable: new(true)} })
			planned, failures := tf.plan("trainyard_cluster", config, state)
			fatalOn(t, nil, failures)
			kept, diagnostics = tf.applyCluster(config, state, planned)
		} else {
			kept, diagnostics = tf.read("trainyard_cluster", state)
		}
		if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
			t.Errorf("%s: got %v, want one error", name, diagnostics)
		}
		for attribute, v := range kept {
			if !v.Equal(state[attribute]) {
				t.Errorf("%s: %s was %s, and is %s in the state", name, attribute, state[attribute], v)
			}
		}
		if len(kept) != len(state) {
			t.Errorf("%s: the state has %d attributes, and had %d", name, len(kept), len(state))
		}
	}
}

func fails(err error) func(domain.Cluster) (domain.Cluster, error) {
	return func(c domain.Cluster) (domain.Cluster, error) { return c, err }
}

func TestUnreachableSaysWhatToDo(t *testing.T) {
	stub := &providertest.Stub{
		Fails: providertest.Failures{"Get cluster": errors.Join(engine.ErrUnreachable, errors.New("ssh://gpu1"))},
	}
	tf := newTerraform(t, stub)
	_, diagnostics := tf.read("trainyard_cluster", tf.swarm(nil))
	if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, "ssh://gpu1") ||
		!strings.Contains(diagnostics[0].Detail, "-refresh=false") {
		t.Errorf("got %v", diagnostics)
	}
}

func TestClusterValidatesRoles(t *testing.T) {
	tf := newTerraform(t, &providertest.Stub{})
	for name, change := range map[string]func(m *cluster.Model){
		"role":         func(m *cluster.Model) { m.Hosts["gpu1"] = cluster.HostModel{Role: new("leader")} },
		"availability": func(m *cluster.Model) { m.Hosts["gpu1"] = cluster.HostModel{Availability: new("drained")} },
		"endpoint":     func(m *cluster.Model) { m.Endpoint = types.StringValue("") },
	} {
		resp, err := tf.server.ValidateResourceConfig(context.Background(), &tfprotov6.ValidateResourceConfigRequest{
			TypeName: "trainyard_cluster", Config: tf.object("trainyard_cluster", tf.swarm(change)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Diagnostics) != 1 {
			t.Errorf("%s: got %v, want one error", name, resp.Diagnostics)
		}
	}
}
