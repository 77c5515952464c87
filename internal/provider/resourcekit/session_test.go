package resourcekit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

func TestFind(t *testing.T) {
	none, broken := &providertest.Stub{}, &providertest.Stub{
		Fails: providertest.Failures{"Get cluster": errors.New("unreachable")},
	}
	has := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	for name, test := range map[string]struct {
		engines engine.Registry
		want    string
		failure string
	}{
		"the first": {
			engine.Registry{"a": providertest.Driver(has), "b": providertest.Driver(none)}, "a", "",
		},
		"the second": {
			engine.Registry{"a": providertest.Driver(none), "b": providertest.Driver(has)}, "b", "",
		},
		"beside a broken one": {
			engine.Registry{"a": providertest.Driver(broken), "b": providertest.Driver(has)}, "b", "",
		},
		"nowhere": {
			engine.Registry{"a": providertest.Driver(none), "b": providertest.Driver(none)}, "",
			`start the ID with the address of a host: ssh://ops@gpu1/lab`,
		},
		"perhaps in the broken": {
			engine.Registry{"a": providertest.Driver(none), "b": providertest.Driver(broken)}, "",
			"engine \"a\": no such cluster\nengine \"b\": unreachable",
		},
		"can't be opened": {
			engine.Registry{"a": unopened("unreachable: no credentials"), "b": providertest.Driver(none)}, "",
			`engine "a": unreachable: no credentials`,
		},
		"beside one that can't": {
			engine.Registry{"a": unopened("no credentials"), "b": providertest.Driver(has)}, "b", "",
		},
	} {
		got, err := NewSession(test.engines, engine.Settings{}).Find(t.Context(), "", "lab")
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

// TestFindAtAnAddress: only engines with such addresses are asked.
func TestFindAtAnAddress(t *testing.T) {
	has, none := providertest.Driver(providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))),
		providertest.Driver(&providertest.Stub{})
	at := func(driver engine.Driver, schemes ...string) engine.Driver {
		driver.Schemes = schemes
		return driver
	}
	engines := engine.Registry{"a": has, "b": at(none, "tcp", "ssh"), "c": at(has, "ssh")}
	for endpoint, want := range map[string]string{"": "a", "ssh://ops@gpu1": "c"} {
		got, err := NewSession(engines, engine.Settings{}).Find(t.Context(), endpoint, "lab")
		if err != nil || got != (domain.ClusterRef{Engine: want, Name: "lab", Endpoint: endpoint}) {
			t.Errorf("%q: got %v, %v", endpoint, got, err)
		}
	}
	_, err := NewSession(engines, engine.Settings{}).Find(t.Context(), "tcp://gpu1", "lab")
	if says := `cluster "lab": not found at tcp://gpu1 by any of the engines ["b"]`; err == nil || err.Error() != says {
		t.Errorf("got %v, want %s", err, says)
	}
}

// TestCutEndpoint cuts at least two names, as for a group or an image.
func TestCutEndpoint(t *testing.T) {
	const docker = "unix:///run/user/1000/docker.sock"
	for id, want := range map[string][2]string{
		"":                         {"", ""},
		"lab/mnist":                {"", "lab/mnist"},
		"ssh://ops@gpu1:2222/lab":  {"ssh://ops@gpu1:2222", "lab"},
		"tcp://gpu1/lab/spark/ps":  {"tcp://gpu1", "lab/spark/ps"},
		"ssh://gpu1":               {"ssh://gpu1", ""},
		"ssh://[2001:db8::1]:22/a": {"ssh://[2001:db8::1]:22", "a"},

		docker:                               {docker, ""},
		docker + "/lab":                      {docker, "lab"},
		docker + "/lab/mnist":                {docker, "lab/mnist"},
		docker + "/lab/hub.example/team/a:1": {docker, "lab/hub.example/team/a:1"},
		"unix:///run/engine/lab/mnist":       {"unix:///run/engine", "lab/mnist"},
		"ssh://gpu1/run/a.sock/lab/mnist":    {"ssh://gpu1/run/a.sock", "lab/mnist"},
		"ssh://gpu1/lab/hub.example/a:1":     {"ssh://gpu1", "lab/hub.example/a:1"},
		"npipe:////./pipe/engine/lab/mnist":  {"npipe:////./pipe/engine", "lab/mnist"},
	} {
		if endpoint, names := CutEndpoint(id, 2); endpoint != want[0] || names != want[1] {
			t.Errorf("%q: got %q and %q", id, endpoint, names)
		}
	}
}

func unopened(reason string) engine.Driver {
	return engine.Driver{
		Open: func(domain.ClusterRef, engine.Settings) (engine.Engine, error) { return nil, errors.New(reason) },
	}
}

func TestFindReturnsTheStoredEndpoint(t *testing.T) {
	lab := providertest.LabOf("local")
	lab.Spec.Endpoint = "ssh://gpu1"
	got, err := NewSession(engine.Registry{"swarm": providertest.Driver(providertest.Set(&providertest.Stub{}, lab))},
		engine.Settings{}).Find(t.Context(), "", "lab")
	if want := (domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "ssh://gpu1"}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// openings records how often, and with which endpoints, engines are opened.
type openings []domain.ClusterRef

// registry returns the stub as the engine "swarm", and stores in last the other settings it was opened with.
func (o *openings) registry(stub *providertest.Stub, last *engine.Settings) engine.Registry {
	return engine.Registry{
		"swarm": {Open: func(ref domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
			*o = append(*o, ref)
			*last = settings
			return stub, nil
		}},
	}
}

func TestSessionKeepsEngines(t *testing.T) {
	var opened openings
	var settings engine.Settings
	s := NewSession(opened.registry(&providertest.Stub{}, &settings), engine.Settings{})
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
			s.Know(domain.Cluster{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb", Hosts: map[string]domain.Host{
				"gpu1": {Role: domain.HostManager, Address: "ssh://gpu1"},
				"gpu3": {Role: domain.HostManager, Address: "ssh://gpu3"},
				"gpu2": {Role: domain.HostWorker, Address: "ssh://gpu2"}, "gpu4": {Role: domain.HostManager},
				"gpu5": {Address: "ssh://gpu5"},
			}})
		}, gpu1, 3, []string{"tcp://lb"}, 5},
		{
			"with nothing new", func() { s.Know(domain.Cluster{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb"}) },
			gpu1, 3, []string{"tcp://lb"}, 5,
		},
		{"at another endpoint", nil, domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "tcp://lb"}, 4, nil, 5},
		{"back at the first", nil, gpu1, 4, nil, 5},
	} {
		if step.do != nil {
			step.do()
		}
		if _, err := s.Open(step.ref); err != nil {
			t.Fatal(err)
		}
		if len(opened) != step.openings || !slices.Equal(settings.Endpoints, step.endpoints) ||
			len(settings.Hosts) != step.hosts {
			t.Errorf("%s: %d openings, the last with %q and %v; want %d, %q, %d hosts", step.name, len(opened),
				settings.Endpoints, settings.Hosts, step.openings, step.endpoints, step.hosts)
		}
	}
}

func TestPlanReadsASnapshot(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	s := NewSession(engine.Registry{"swarm": providertest.Driver(stub)}, engine.Settings{})
	here := domain.ClusterRef{Engine: "swarm", Name: "lab"}
	there := domain.ClusterRef{Engine: "swarm", Name: "lab", Endpoint: "ssh://gpu1"}
	planned := func(ref domain.ClusterRef) {
		t.Helper()
		reconciler, err := s.Plan(ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Cluster(t.Context(), reconciler.Engine); err != nil {
			t.Fatal(err)
		}
	}
	live, err := s.Open(here)
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
		{
			"after a read",
			func() { _, _ = engine.List[domain.GroupDocument](t.Context(), live.Engine); planned(here) }, 2,
		},
		{
			"after a write",
			func() { _, _ = engine.Put(t.Context(), live.Engine, providertest.LabOf("local")); planned(here) }, 3,
		},
		{"after a write, at another endpoint", func() { planned(there) }, 4},
		{"after a write that failed", func() {
			stub.Fails = providertest.Failures{"Form": errors.New("no quorum")}
			_, _ = live.Engine.Form(t.Context(), domain.Cluster{})
			planned(here)
		}, 5},
	} {
		step.do()
		if stub.Snapshots != step.snapshots {
			t.Errorf("%s: %d snapshots, want %d", step.name, stub.Snapshots, step.snapshots)
		}
	}
}
