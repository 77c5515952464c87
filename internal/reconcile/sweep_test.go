package reconcile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// If some of a sweep's runs were lost, the others are found, and an apply restores them without another start of any.
func TestSweepThatLacksRuns(t *testing.T) {
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	large := map[string]string{"NOTE": strings.Repeat("x", 110_000)} // one run per chunk
	spec := domain.Sweep{
		Cluster: "lab", Name: "lr", Template: domain.Template{Command: []string{"train"}},
		Runs: map[string]map[string]string{"a": large, "b": large},
	}
	_, err := r.PutSweep(within(t), spec, true)
	must(t, err)
	before := documents[domain.SweepDocument](f)["lr"]
	f.Drop(engine.Key{Kind: domain.SweepRunsKind, Name: "lr/" + before.Chunks[1]})

	found, err := r.SweepRuns(within(t), "lr")
	if !errors.Is(err, reconcile.ErrRunsMissing) || len(found.Spec.Runs) != 1 || found.Runs == nil {
		t.Errorf("found %d runs, and their states: %v (%v)", len(found.Spec.Runs), found.Runs != nil, err)
	}
	view, err := r.View(within(t), documents[domain.ClusterDocument](f)[""].Spec, domain.Group{})
	must(t, err)
	plan, problems, err := r.CheckSweep(within(t), view, spec)
	must(t, errors.Join(err, problems.Err()))
	if plan.New != 1 || plan.Reruns+plan.Gone != 0 {
		t.Errorf("planned is %+v", plan)
	}
	_, err = r.PutSweep(within(t), spec, false)
	must(t, err)
	found, err = r.Sweep(within(t), "lr")
	must(t, err)
	if !found.Spec.Equal(spec) || found.Document.ID != before.ID || found.Document.MinRun != before.MinRun {
		t.Errorf("restored as %+v", found.Document)
	}
}
