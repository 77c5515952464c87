package provider

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
)

// filesEngine is an engine whose hosts keep files.
type filesEngine struct {
	*providertest.Stub
	// found are the versions on hosts, and away are the hosts that are down.
	found   map[string]map[string][]engine.FileFault
	away    map[string]bool
	failure error
}

func (e *filesEngine) Snapshot() engine.Engine { return e }

func (e *filesEngine) FilesPath(digest string) string {
	return "/content/" + strings.TrimPrefix(digest, "sha256:")
}

func (e *filesEngine) FindFiles(context.Context) (map[string]engine.HostFiles, error) {
	found := map[string]engine.HostFiles{}
	for host := range e.Hosts() {
		found[host] = engine.HostFiles{Versions: maps.Clone(e.found[host]), Away: e.away[host]}
	}
	return found, nil
}

func (e *filesEngine) ProvideFiles(_ context.Context, spec engine.FilesSpec) error {
	for host := range e.Hosts() {
		if e.found[host] == nil {
			e.found[host] = map[string][]engine.FileFault{}
		}
		if e.found[host][spec.Tree.Digest()] = nil; e.failure != nil {
			return e.failure
		}
	}
	return nil
}

func (e *filesEngine) RemoveFiles(_ context.Context, digests []string) error {
	for _, has := range e.found {
		maps.DeleteFunc(has, func(digest string, _ []engine.FileFault) bool { return slices.Contains(digests, digest) })
	}
	return nil
}

func (e *filesEngine) Lock(context.Context, string, engine.Holder) (func() error, error) {
	return func() error { return nil }, nil
}

const theFiles = "trainyard_files"

// filesLab is a run of Terraform with the files "code" of the cluster lab.
type filesLab struct {
	terraform
	engine *filesEngine
	source string
}

func newFilesLab(t *testing.T, hosts ...string) filesLab {
	t.Helper()
	e := &filesEngine{
		Stub:  providertest.Set(&providertest.Stub{}, providertest.LabOf(hosts...)),
		found: map[string]map[string][]engine.FileFault{},
	}
	source := t.TempDir()
	writeFile(t, filepath.Join(source, "train.py"), "pass\n")
	return filesLab{
		terraformOn(t, engine.Registry{"process": providertest.Driver(e), "swarm": providertest.Driver(e.Stub)}), e,
		source,
	}
}

// files returns the configuration of the files.
func (l filesLab) files(engineName string, set map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	reference := map[string]tftypes.Value{
		"name": providertest.Text("lab"), "engine": providertest.Text(engineName),
		"endpoint": tftypes.NewValue(tftypes.String, nil),
	}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{
		"name": tftypes.String, "engine": tftypes.String, "endpoint": tftypes.String,
	}}
	config := l.config(theFiles, map[string]tftypes.Value{
		"name": providertest.Text("code"), "cluster": tftypes.NewValue(typ, reference),
		"source": providertest.Text(l.source),
	})
	maps.Copy(config, set)
	return config
}

// hosts returns the attribute hosts of a state.
func (l filesLab) hosts(state map[string]tftypes.Value) map[string]string {
	l.t.Helper()
	var values map[string]tftypes.Value
	if err := state["hosts"].As(&values); err != nil {
		l.t.Fatal(err)
	}
	hosts := map[string]string{}
	for host, value := range values {
		var text string
		if err := value.As(&text); err != nil {
			l.t.Fatal(err)
		}
		hosts[host] = text
	}
	return hosts
}

func (l filesLab) applied(config, prior map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	planned, diagnostics := l.plan(theFiles, config, prior)
	fatalOn(l.t, nil, diagnostics)
	state, diagnostics := l.apply(theFiles, config, prior, planned)
	fatalOn(l.t, nil, diagnostics)
	return state
}

func (l filesLab) refreshed(state map[string]tftypes.Value) map[string]tftypes.Value {
	l.t.Helper()
	found, diagnostics := l.read(theFiles, state)
	fatalOn(l.t, nil, diagnostics)
	return found
}

func textOf(t *testing.T, v tftypes.Value) (text string) {
	t.Helper()
	if err := v.As(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// The plan shows the path of the files, and what will change on hosts.
func TestPlanOfFiles(t *testing.T) {
	l := newFilesLab(t, "gpu1", "gpu2")
	config := l.files("process", nil)
	planned, diagnostics := l.plan(theFiles, config, nil)
	fatalOn(t, nil, diagnostics)
	if digest, path := textOf(t, planned["digest"]), textOf(t, planned["path"]); path != "/content/"+
		strings.TrimPrefix(digest, "sha256:") || planned["hosts"].IsKnown() {
		t.Errorf("planned are digest %s, path %s, hosts %s", digest, path, planned["hosts"])
	}
	state := l.applied(config, nil)
	digest := textOf(t, state["digest"])
	unchanged := func(when string, state map[string]tftypes.Value, want bool) {
		t.Helper()
		planned, diagnostics := l.plan(theFiles, config, state)
		fatalOn(t, nil, diagnostics)
		if got := planned["hosts"].Equal(state["hosts"]); got != want || got && !planned["path"].Equal(state["path"]) {
			t.Errorf("%s: planned is %v", when, planned)
		}
	}
	unchanged("applied", l.refreshed(state), true)
	for when, test := range map[string]struct {
		change func()
		want   map[string]string
	}{
		"altered": {func() {
			l.engine.found["gpu1"][digest] = []engine.FileFault{{Path: "train.py"}, {Path: "a", Missing: true}}
		}, map[string]string{"gpu1": "altered: train.py; missing: a", "gpu2": digest}},
		"missing": {func() { delete(l.engine.found["gpu2"], digest) }, map[string]string{"gpu1": digest}},
	} {
		test.change()
		drifted := l.refreshed(state)
		if got := l.hosts(drifted); !maps.Equal(got, test.want) {
			t.Errorf("%s: hosts have %v, want %v", when, got, test.want)
		}
		unchanged(when, drifted, false)
		if mended := l.applied(config, drifted); !maps.Equal(l.hosts(mended), l.hosts(state)) {
			t.Errorf("%s: hosts have %v after an apply", when, l.hosts(mended))
		}
	}
	l.engine.away, l.engine.found["gpu2"] = map[string]bool{"gpu2": true}, nil
	unchanged("a host is away", l.refreshed(state), true)
}

// A host that joins the cluster by the same plan gets the files, though its address is not known yet.
func TestPlanOfFilesForNewHost(t *testing.T) {
	l := newFilesLab(t, "gpu1")
	config := l.files("process", nil)
	state := l.applied(config, nil)
	_, diagnostics := l.plan("trainyard_cluster", l.clusterOfUnknownHosts("process"), nil)
	fatalOn(t, nil, diagnostics)
	planned, diagnostics := l.plan(theFiles, config, l.refreshed(state))
	fatalOn(t, nil, diagnostics)
	if planned["hosts"].IsKnown() || !planned["path"].Equal(state["path"]) {
		t.Errorf("planned path %s on %s", planned["path"], planned["hosts"])
	}
}

// Unknown values defer reading the source.
func TestPlanOfUnknownFiles(t *testing.T) {
	l := newFilesLab(t, "gpu1")
	planned, diagnostics := l.plan(theFiles,
		l.files("process", map[string]tftypes.Value{"source": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)}),
		nil)
	fatalOn(t, nil, diagnostics)
	for _, attribute := range []string{"path", "digest", "size_bytes", "hosts"} {
		if planned[attribute].IsKnown() {
			t.Errorf("%s is planned as %s", attribute, planned[attribute])
		}
	}
}

func TestFilesThatCannotBePlanned(t *testing.T) {
	l := newFilesLab(t, "gpu1")
	for what, test := range map[string]struct {
		config map[string]tftypes.Value
		at     string
		says   []string
	}{
		"on swarm": {l.files("swarm", nil), "engine", []string{"does not copy files to its hosts", "trainyard_image"}},
		"no source": {
			l.files("process", map[string]tftypes.Value{"source": providertest.Text(l.source + "/none")}), "source",
			[]string{l.source + "/none: no such file or directory"},
		},
	} {
		_, diagnostics := l.plan(theFiles, test.config, nil)
		if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Attribute.String(), test.at) {
			t.Errorf("%s: got %v", what, details(diagnostics))
			continue
		}
		for _, phrase := range test.says {
			if !strings.Contains(diagnostics[0].Detail, phrase) {
				t.Errorf("%s: %q does not say %q", what, diagnostics[0].Detail, phrase)
			}
		}
	}
	config := l.files("process", map[string]tftypes.Value{"name": providertest.Text("Code")})
	resp, err := l.server.ValidateResourceConfig(t.Context(),
		&tfprotov6.ValidateResourceConfigRequest{TypeName: theFiles, Config: l.object(theFiles, config)})
	if err != nil || len(resp.Diagnostics) != 1 ||
		!strings.Contains(resp.Diagnostics[0].Detail, `"Code" is not a DNS label`) {
		t.Errorf("a bad name: got %v (%v)", details(resp.Diagnostics), err)
	}
}

// An error about the source names the files, as far as their name is known.
func TestUnreadableFilesAreNamed(t *testing.T) {
	l := newFilesLab(t, "gpu1")
	known := l.files("process", map[string]tftypes.Value{"source": providertest.Text(l.source + "/none")})
	for want, attribute := range map[string]string{
		`Unable to plan files "code"`: "cluster", "Unable to plan files": "name",
	} {
		config := maps.Clone(known)
		config[attribute] = tftypes.NewValue(config[attribute].Type(), tftypes.UnknownValue)
		_, diagnostics := l.plan(theFiles, config, nil)
		if len(diagnostics) != 1 {
			t.Fatalf("%s unknown: got %v", attribute, details(diagnostics))
		}
		if got := diagnostics[0].Summary; got != want {
			t.Errorf("%s unknown: got %q, want %q", attribute, got, want)
		}
	}
}

// What is applied is what was planned, and what a failed apply has left on hosts is in the state.
func TestFilesThatFail(t *testing.T) {
	l := newFilesLab(t, "gpu1", "gpu2")
	config := l.files("process", nil)
	planned, diagnostics := l.plan(theFiles, config, nil)
	fatalOn(t, nil, diagnostics)
	writeFile(t, filepath.Join(l.source, "train.py"), "print()\n")
	state, diagnostics := l.apply(theFiles, config, nil, planned)
	if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail, "has changed since it was planned") ||
		state != nil {
		t.Errorf("changed since the plan: got %v (%v)", state, details(diagnostics))
	}
	planned, diagnostics = l.plan(theFiles, config, nil)
	fatalOn(t, nil, diagnostics)
	l.engine.failure = os.ErrDeadlineExceeded
	state, diagnostics = l.apply(theFiles, config, nil, planned)
	if len(diagnostics) != 1 || state == nil || len(l.hosts(state)) != 1 {
		t.Errorf("a host failed: got %v (%v)", state, details(diagnostics))
	}
	l.engine.failure = nil
	if state = l.applied(config, l.refreshed(state)); len(l.hosts(state)) != 2 {
		t.Errorf("after another apply hosts have %v", l.hosts(state))
	}
	planned, diagnostics = l.plan(theFiles, nil, state)
	fatalOn(t, nil, diagnostics)
	state, diagnostics = l.apply(theFiles, nil, state, planned)
	fatalOn(t, nil, diagnostics)
	if state != nil || len(l.engine.found["gpu1"]) > 0 {
		t.Errorf("after a destroy there is %v, and the state is %v", l.engine.found, state)
	}
}
