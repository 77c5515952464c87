package provider

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/group"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/sweep"
)

func TestReadOfSweep(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*providertest.Stub)
		gone   bool
	}{
		"gone": {func(e *providertest.Stub) { providertest.Drop[domain.SweepDocument](e) }, true},
		"gone with cluster": {func(e *providertest.Stub) {
			providertest.Drop[domain.SweepDocument](e)
			providertest.Drop[domain.ClusterDocument](e)
		}, true},
		"can't be read": {func(e *providertest.Stub) {
			e.Fails = providertest.Failures{"List sweep-runs": errors.New("disk full")}
		}, false},
	} {
		stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
		tf := newTerraform(t, stub)
		state := tf.applySweep(tf.sweep())
		test.change(stub)
		found, diagnostics := newTerraform(t, stub).read(theSweep, state)
		if (found == nil) != test.gone || (len(diagnostics) == 0) != test.gone {
			t.Errorf("%s: read as %v (%v)", name, found, details(diagnostics))
		}
	}
}

// A sweep that was created but is missing in the state is adopted; one with another specification is not.
func TestCreateOfSweepThatExists(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	config := tf.sweep()
	tf.applySweep(config)
	state, diagnostics := tf.apply(theSweep, config, nil, tf.planSweep(config, nil))
	if state == nil || len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		diagnostics[0].Summary != "Sweep adopted" {
		t.Errorf("adopted: got %v (%v)", state, details(diagnostics))
	}
	config = tf.sweep(func(m *sweep.Model) { m.MaxParallel = new(int64(2)) })
	state, diagnostics = tf.apply(theSweep, config, nil, tf.planSweep(config, nil))
	if state != nil || len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `already has a sweep "lr" with another specification`) {
		t.Errorf("another: got %v (%v)", state, details(diagnostics))
	}
}

// A sweep that somebody else changes between the write and the read is an error that says so, and is
// in the state as applied.
func TestPutOfSweepThatIsChanged(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	tf := newTerraform(t, stub)
	config := tf.sweep()
	planned := tf.planSweep(config, nil)
	stub.Changed = func() {
		stub.Changed = nil
		doc, err := engine.Get[domain.SweepDocument](t.Context(), stub, "lr")
		if err != nil {
			t.Fatal(err)
		}
		doc.Spec.MaxParallel = new(7)
		providertest.Set(stub, doc)
	}
	state, diagnostics := tf.apply(theSweep, config, nil, planned)
	if state == nil || len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, "changed by someone else in the meantime: apply again") {
		t.Errorf("got %v (%v)", state, details(diagnostics))
	}
}

// A stored sweep is in the state, whatever fails after that.
func TestPutOfSweepThatFails(t *testing.T) {
	down := errors.New("no room on the disk")
	for name, test := range map[string]struct {
		fails   string
		tracked bool
	}{
		"before it is stored": {"Put sweep", false},
		"after it is stored":  {"StartController", true},
	} {
		stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
		tf := newTerraform(t, stub)
		config := tf.sweep()
		planned := tf.planSweep(config, nil)
		stub.Fails = providertest.Failures{test.fails: down}
		state, diagnostics := tf.apply(theSweep, config, nil, planned)
		if (state != nil) != test.tracked || len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail,
			down.Error()) || strings.Contains(diagnostics[0].Detail, "terraform untaint") != test.tracked {
			t.Errorf("%s: got %v (%v)", name, state, details(diagnostics))
		}
	}
}

// Runs that were lost from the store are missing in the state, and the next apply restores them.
func TestSweepThatLacksRuns(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	tf := newTerraform(t, stub)
	config := tf.sweep()
	state := tf.applySweep(config)
	providertest.Drop[domain.SweepRuns](stub)
	tf = newTerraform(t, stub)
	found, diagnostics := tf.read(theSweep, state)
	fatalOn(t, nil, diagnostics)
	planned := tf.planSweep(config, found)
	if planned["runs"].Equal(found["runs"]) {
		t.Error("the plan is empty")
	}
	restored, diagnostics := tf.apply(theSweep, config, found, planned)
	fatalOn(t, nil, diagnostics)
	if !restored["runs"].Equal(state["runs"]) {
		t.Errorf("restored as %v", restored["runs"])
	}
}

// folderEngine is an engine whose folders can be read, but not removed.
type folderEngine struct{ *providertest.Stub }

func (e folderEngine) ReadFolder(context.Context, domain.KeptFolder, engine.FolderVisitor) error {
	return nil
}

func (e folderEngine) RemoveFolders(context.Context, []domain.KeptFolder) error {
	return errors.New("disk full")
}

// A destroy that fails after it has collected the results says where they are, as the next one may find less.
func TestDestroyOfSweepThatFailsAfterCollecting(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	tf := terraformOn(t, engine.Registry{"process": providertest.Driver(folderEngine{stub})})
	tf.applySweep(tf.sweep())
	providertest.Change(stub, "lr", func(doc *domain.SweepDocument) {
		doc.Spec.Results = &domain.Results{Path: "/results", OnDestroy: domain.DeleteResults}
	})
	ran(stub, map[string]domain.Run{"a": {
		State: domain.RunSucceeded, Assignment: &domain.Assignment{Host: "local"},
		Results: &domain.RunResults{Path: "/results"},
	}})
	folder := t.TempDir()
	left, diagnostics := tf.apply(theSweep, nil, tf.sweep(func(m *sweep.Model) {
		m.Results = &sweep.ResultsModel{Path: "/results", OnDestroy: new("delete"), CollectTo: new(folder)}
	}), nil)
	archives, err := filepath.Glob(folder + "/lab-lr-*.tar")
	if err != nil || len(archives) != 1 {
		t.Fatalf("collected are %v (%v)", archives, err)
	}
	if said := strings.Join(details(diagnostics), "\n"); left == nil || len(diagnostics) != 2 ||
		!strings.Contains(said, "1 of its 2 runs are in "+archives[0]) || !strings.Contains(said, "disk full") {
		t.Errorf("left %v: %s", left != nil, said)
	}
}

// A sweep whose destroy was interrupted is shown, destroyed, or created anew by the next apply.
func TestSweepThatIsHalfDestroyed(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	tf := newTerraform(t, stub)
	config := tf.sweep()
	state := tf.applySweep(config)
	id := providertest.Documents[domain.SweepDocument](stub)["lr"].ID
	for _, rest := range []func(){func() {}, func() { providertest.Drop[domain.SweepRuns](stub) }} {
		providertest.Change(stub, "lr", func(doc *domain.SweepDocument) { doc.Ending = true })
		rest()
		tf = newTerraform(t, stub)
		found, diagnostics := tf.read(theSweep, state)
		fatalOn(t, nil, diagnostics)
		planned := tf.planSweep(config, found)
		if planned["id"].IsKnown() && planned["runs"].Equal(found["runs"]) {
			t.Fatal("the plan is empty")
		}
		_, diagnostics = tf.apply(theSweep, config, found, planned)
		fatalOn(t, nil, diagnostics)
		doc := providertest.Documents[domain.SweepDocument](stub)["lr"]
		if doc.Ending || doc.ID == id || doc.Count != 2 {
			t.Fatalf("made anew as %+v", doc)
		}
		id = doc.ID
	}
	providertest.Change(stub, "lr", func(doc *domain.SweepDocument) { doc.Ending = true })
	left, diagnostics := tf.apply(theSweep, nil, state, nil)
	if stored := providertest.Documents[domain.SweepDocument](stub); left != nil || len(diagnostics) > 0 ||
		len(stored) > 0 {
		t.Errorf("got %v (%v), with the sweeps %v", left, details(diagnostics), stored)
	}
}

// What a sweep uses can't be destroyed before it.
func TestDeleteOfWhatSweepUses(t *testing.T) {
	stub := gpuStub()
	tf := newTerraform(t, stub)
	pool := tf.applyPool(tf.gpuPool("p", named(t, map[string][]int{"a": {4, 5}})))
	tf.applySweep(tf.sweep(func(m *sweep.Model) { m.GPUs = &group.RoleGPUsModel{Pool: "p"} }))
	if left, diagnostics := tf.apply(theGPUPool, nil, pool, nil); left == nil || len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `"p" of cluster "lab" is in use by sweep lr`) {
		t.Errorf("the pool: got %v (%v)", left, details(diagnostics))
	}
	lab := tf.config("trainyard_cluster",
		map[string]tftypes.Value{"name": providertest.Text("lab"), "engine": providertest.Text("process")})
	if left, diagnostics := tf.apply("trainyard_cluster", nil, lab, nil); left == nil || len(diagnostics) != 1 ||
		!strings.Contains(diagnostics[0].Detail, `Cluster "lab" still has sweep lr`) {
		t.Errorf("the cluster: got %v (%v)", left, details(diagnostics))
	}
}

// The data source says what queued runs wait for on the present cluster.
func TestReadOfSweepData(t *testing.T) {
	stub := providertest.Set(&providertest.Stub{}, providertest.LabOf("local"))
	tf := newTerraform(t, stub)
	tf.applySweep(tf.sweep(func(m *sweep.Model) { m.MaxParallel = new(int64(1)) }))
	ran(stub, map[string]domain.Run{"a": {State: domain.RunRunning, Assignment: &domain.Assignment{Host: "local"}}})
	schemas, err := tf.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	fatalOn(t, err, schemas.Diagnostics)
	s := schemas.DataSourceSchemas[theSweep]
	read := func(name string) (map[string]tftypes.Value, []*tfprotov6.Diagnostic) {
		config := nullsOf(s)
		config["name"] = providertest.Text(name)
		config["cluster"] = tftypes.NewValue(config["cluster"].Type(), map[string]tftypes.Value{
			"name": providertest.Text("lab"), "engine": tftypes.NewValue(tftypes.String, nil),
			"endpoint": tftypes.NewValue(tftypes.String, nil), "id": tftypes.NewValue(tftypes.String, nil),
		})
		resp, err := tf.server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
			TypeName: theSweep, Config: encode(t, s, tftypes.NewValue(s.ValueType(), config)),
		})
		if err != nil || len(resp.Diagnostics) > 0 {
			return nil, resp.Diagnostics
		}
		v, err := resp.State.Unmarshal(s.ValueType())
		var found map[string]tftypes.Value
		if err == nil {
			err = v.As(&found)
		}
		if err != nil {
			t.Fatal(err)
		}
		return found, nil
	}
	found, diagnostics := read("lr")
	fatalOn(t, nil, diagnostics)
	at := tftypes.NewAttributePath().WithElementKeyString("b").WithAttributeName("reason")
	reason, _, err := tftypes.WalkAttributePath(found["runs"], at)
	if why, ok := reason.(tftypes.Value); err != nil || !ok ||
		!why.Equal(providertest.Text("max_parallel is 1, and 1 are running")) {
		t.Errorf("run b waits: %v (%v)", reason, err)
	}
	if !found["ended"].Equal(tftypes.NewValue(tftypes.Bool, false)) || !found["best"].IsNull() {
		t.Errorf("ended is %s, best %s", found["ended"], found["best"])
	}
	if _, diagnostics := read("other"); len(diagnostics) != 1 || diagnostics[0].Summary != "Not found" {
		t.Errorf("another sweep: %v", details(diagnostics))
	}
}

// A sweep is imported by its ID, as it is stored.
func TestImportOfSweep(t *testing.T) {
	tf := newTerraform(t, providertest.Set(&providertest.Stub{}, providertest.LabOf("local")))
	config := tf.sweep()
	state := tf.applySweep(config)
	resp, err := tf.server.ImportResourceState(t.Context(),
		&tfprotov6.ImportResourceStateRequest{TypeName: theSweep, ID: "lab/lr"})
	fatalOn(t, err, resp.Diagnostics)
	found, diagnostics := tf.read(theSweep, tf.attributes(theSweep, resp.ImportedResources[0].State))
	fatalOn(t, nil, diagnostics)
	for attribute, value := range state {
		if !found[attribute].Equal(value) {
			t.Errorf("%s is imported as %s, is %s", attribute, found[attribute], value)
		}
	}
}
