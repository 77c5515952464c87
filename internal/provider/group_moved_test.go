package provider

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// moving is an engine on which the only member of the group moves to host b at the end of an apply.
type moving struct{ *providertest.Stub }

func (e moving) Intercept(ctx context.Context, call engine.Call, do func() error) error {
	err := e.Stub.Intercept(ctx, call, do)
	if call.Name == "Prune" {
		providertest.Change(e.Stub, "g", func(document *domain.GroupDocument) {
			document.Assignments = map[string]domain.Assignment{"g-worker-0": {Host: "b", Port: 10000}}
			moved := reconcile.Current(engine.Traits{}, e.Hosts(), *document)
			e.Observed[0].Host, e.Observed[0].Hash = "b", moved.Layout.Hash(0)
		})
	}
	return err
}

// A member that moves during an update leaves the state as it was planned, with a warning; the next refresh shows its
// place.
func TestMemberMovesDuringUpdate(t *testing.T) {
	stub := providertest.Set(storedWorkers(t, 1), providertest.LabOf("local", "b"))
	tf := terraformOn(t, engine.Registry{"process": providertest.Driver(moving{stub})})
	config := tf.group("g", role{replicas: 1, port: 10000})
	state := tf.readGroup(config)
	config = maps.Clone(config)
	config["priority"] = tftypes.NewValue(tftypes.Number, 1)
	planned, diagnostics := tf.plan("trainyard_group", config, state)
	fatalOn(t, nil, diagnostics)
	state, diagnostics = tf.apply("trainyard_group", config, state, planned)
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		!strings.Contains(diagnostics[0].Detail, `placements["g-worker-0"] is "b", not "local"`) {
		t.Errorf("got %q, want a warning that the member has moved", details(diagnostics))
	}
	for name, v := range planned {
		if v.IsFullyKnown() && !v.Equal(state[name]) {
			t.Errorf("%s was planned as %s, and is %s in the state", name, v, state[name])
		}
	}
	if got := providertest.TextsOf(t, tf.readGroup(state)["placements"])["g-worker-0"]; got != "b" {
		t.Errorf("the refresh finds the member on %s", got)
	}
}
