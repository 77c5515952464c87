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
)

func TestFind(t *testing.T) {
	none, broken := &stubEngine{}, &stubEngine{fails: failures{"Get cluster": errors.New("unreachable")}}
	has := set(&stubEngine{}, labOf("local"))
	for name, test := range map[string]struct {
		engines engine.Registry
		want    string
		failure string
	}{
		"the first":             {engine.Registry{"a": driver(has), "b": driver(none)}, "a", ""},
		"the second":            {engine.Registry{"a": driver(none), "b": driver(has)}, "b", ""},
		"beside a broken one":   {engine.Registry{"a": driver(broken), "b": driver(has)}, "b", ""},
		"nowhere":               {engine.Registry{"a": driver(none), "b": driver(none)}, "", `any of the engines ["a" "b"]`},
		"perhaps in the broken": {engine.Registry{"a": driver(none), "b": driver(broken)}, "", "engine \"a\": there is no such cluster\nengine \"b\": unreachable"},
		"can't be opened":       {engine.Registry{"a": unopened("unreachable: no credentials"), "b": driver(none)}, "", `engine "a": unreachable: no credentials`},
		"beside one that can't": {engine.Registry{"a": unopened("no credentials"), "b": driver(has)}, "b", ""},
	} {
		got, err := newSession(test.engines, engine.Settings{}).find(t.Context(), "lab")
		if test.failure == "" {
			if err != nil || got != (domain.ClusterRef{Engine: test.want, Name: "lab"}) {
				t.Errorf("%s: got %v, %v", name, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.failure) {
			t.Errorf("%s: got %v, want an error that says %s", name, err, test.failure)
		}
		if unsure := strings.Contains(test.failure, "unreachable"); errors.Is(err, engine.ErrNotFound) == unsure {
			t.Errorf("%s: got %v: what could not be reached is not what is not there", name, err)
		}
	}
}

func TestImportByID(t *testing.T) {
	tf := newTerraform(t, set(&stubEngine{}, labOf("local")))
	for _, test := range []struct{ resource, id, failure string }{
		{"trainyard_cluster", "lab", ""},
		{"trainyard_group", "lab/g", ""},
		{"trainyard_group", "lab", "<cluster>/<group>"},
		{"trainyard_group", "lab/", "<cluster>/<group>"},
		{"trainyard_group", "lab/g/x", "<cluster>/<group>"},
	} {
		resp, err := tf.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: test.resource, ID: test.id})
		if err != nil {
			t.Fatal(err)
		}
		if test.failure != "" {
			if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, test.failure) {
				t.Errorf("%s: got %v, want an error that says %s", test.id, resp.Diagnostics, test.failure)
			}
			continue
		}
		fatalOn(t, nil, resp.Diagnostics)
		state, err := resp.ImportedResources[0].State.Unmarshal(tf.schemas[test.resource].ValueType())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(state.String(), `"process"`) {
			t.Errorf("%s: the state does not have the engine that was found: %s", test.id, state)
		}
	}
}

func TestImportByIdentity(t *testing.T) {
	tf := newTerraform(t, set(&stubEngine{}, labOf("local")))
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"cluster": tftypes.String, "name": tftypes.String}}
	identity, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, map[string]tftypes.Value{"cluster": text("lab"), "name": text("g")}))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tf.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "trainyard_group", Identity: &tfprotov6.ResourceIdentityData{IdentityData: &identity},
	})
	fatalOn(t, err, resp.Diagnostics)
	state, err := resp.ImportedResources[0].State.Unmarshal(tf.schemas["trainyard_group"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	var attributes map[string]tftypes.Value
	if err := state.As(&attributes); err != nil {
		t.Fatal(err)
	}
	if !attributes["name"].Equal(text("g")) {
		t.Errorf("got name %s", attributes["name"])
	}
}

func unopened(reason string) engine.Driver {
	return engine.Driver{Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return nil, errors.New(reason) }}
}

func TestFindReturnsTheStoredEndpoint(t *testing.T) {
	lab := labOf("local")
	lab.Spec.Endpoint = "ssh://gpu1"
	got, err := newSession(engine.Registry{"swarm": driver(set(&stubEngine{}, lab))}, engine.Settings{}).find(t.Context(), "lab")
	if want := (domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "ssh://gpu1"}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// openings notes down how often, and with what endpoints, engines are opened.
type openings []domain.ClusterRef

// registry returns the stub as the engine "swarm", and notes down in last what else it was opened with.
func (o *openings) registry(stub *stubEngine, last *engine.Settings) engine.Registry {
	return engine.Registry{"swarm": {Open: func(ref domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
		*o = append(*o, ref)
		*last = settings
		return stub, nil
	}}}
}

func TestSessionKeepsEngines(t *testing.T) {
	var opened openings
	var settings engine.Settings
	s := newSession(opened.registry(&stubEngine{}, &settings), engine.Settings{})
	gpu1 := domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "ssh://gpu1"}
	for _, step := range []struct {
		name      string
		do        func()
		ref       domain.ClusterRef
		openings  int
		endpoints []string
		hosts     int
	}{
		{"the first time", nil, gpu1, 1, nil, 0},
		{"again", nil, gpu1, 1, nil, 0},
		{"another cluster", nil, domain.ClusterRef{Engine: "swarm", Name: "other"}, 2, nil, 0},
		{"with hosts known", func() {
			s.know(domain.Cluster{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb", Hosts: map[string]domain.Host{
				"gpu1": {Role: domain.HostManager, Address: "ssh://gpu1"}, "gpu3": {Role: domain.HostManager, Address: "ssh://gpu3"},
				"gpu2": {Role: domain.HostWorker, Address: "ssh://gpu2"}, "gpu4": {Role: domain.HostManager}, "gpu5": {Address: "ssh://gpu5"},
			}})
		}, gpu1, 3, []string{"tcp://lb"}, 5},
		{"with nothing new", func() { s.know(domain.Cluster{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb"}) }, gpu1, 3, []string{"tcp://lb"}, 5},
		{"at another endpoint", nil, domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb"}, 4, nil, 5},
		{"back at the first", nil, gpu1, 4, nil, 5},
	} {
		if step.do != nil {
			step.do()
		}
		if _, err := s.open(step.ref); err != nil {
			t.Fatal(err)
		}
		if len(opened) != step.openings || !slices.Equal(settings.Endpoints, step.endpoints) || len(settings.Hosts) != step.hosts {
			t.Errorf("%s: %d openings, the last with %q and %v; want %d, %q, %d hosts", step.name, len(opened), settings.Endpoints, settings.Hosts, step.openings, step.endpoints, step.hosts)
		}
	}
}

func TestPlanReadsASnapshot(t *testing.T) {
	stub := set(&stubEngine{}, labOf("local"))
	s := newSession(engine.Registry{"swarm": driver(stub)}, engine.Settings{})
	here := domain.ClusterRef{Engine: "swarm", Name: "lab"}
	there := domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "ssh://gpu1"}
	planned := func(ref domain.ClusterRef) {
		t.Helper()
		reconciler, err := s.plan(ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Cluster(t.Context(), reconciler.Engine); err != nil {
			t.Fatal(err)
		}
	}
	live, err := s.open(here)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name      string
		do        func()
		snapshots int
	}{
		{"the first plan", func() { planned(here) }, 1},
		{"another", func() { planned(here) }, 1},
		{"at another endpoint", func() { planned(there) }, 2},
		{"after a read", func() { _, _ = engine.List[domain.GroupDocument](t.Context(), live.Engine); planned(here) }, 2},
		{"after a write", func() { _, _ = engine.Put(t.Context(), live.Engine, labOf("local")); planned(here) }, 3},
		{"after a write, at another endpoint", func() { planned(there) }, 4},
		{"after a write that failed", func() {
			stub.fails = failures{"Form": errors.New("no quorum")}
			_, _ = live.Engine.Form(t.Context(), domain.Cluster{})
			planned(here)
		}, 5},
	} {
		step.do()
		if stub.snapshots != step.snapshots {
			t.Errorf("%s: %d snapshots, want %d", step.name, stub.snapshots, step.snapshots)
		}
	}
}
