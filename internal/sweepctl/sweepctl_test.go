package sweepctl

import (
	"context"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lacking is the part of an engine that listing sweeps does not need.
type lacking struct{ engine.Engine }

// leaving is a cluster whose sweep "gone" is destroyed once the sweeps were listed.
type leaving struct {
	lacking
	storetest.Memory
}

func (l *leaving) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	items, err := l.Memory.List(ctx, kind)
	l.Drop(engine.Key{Kind: domain.SweepKind, Name: "gone"})
	return items, err
}

// TestListWhileOneIsDestroyed: a sweep that is destroyed meanwhile is left out of the list.
func TestListWhileOneIsDestroyed(t *testing.T) {
	l := &leaving{}
	for _, name := range []string{"gone", "lr"} {
		storetest.Set(&l.Memory, domain.SweepDocument{Spec: domain.Sweep{Cluster: "lab", Name: name}, ID: name})
	}
	var out strings.Builder
	err := list(t.Context(), reconcile.Reconciler{Engine: l}, &out)
	if err != nil || !strings.Contains(out.String(), "\nlr ") || strings.Contains(out.String(), "gone") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestEmptyRun: a run with an empty name, as of an unset variable, is not the whole sweep.
func TestEmptyRun(t *testing.T) {
	for _, name := range []string{"pause", "resume", "cancel", "results", "ls"} {
		if _, err := parse([]string{name, "lr/"}, engine.Registry{}); err == nil ||
			!strings.Contains(err.Error(), `"lr/" names no run: use SWEEP or SWEEP/RUN`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
