package enginetest

import (
	"errors"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// testResidents: the controller and the agents start, and their states are reported.
func testResidents(t *testing.T, h Harness) {
	e := h.Open(t, h.lab)
	if _, err := e.Residents(t.Context()); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("without a cluster: %v, not ErrNotFound", err)
	}
	spec := h.form(t, e)
	found, err := e.Residents(t.Context())
	must(t, err)
	if found.Controller.State != domain.ResidentAbsent || len(found.Missing()) == 0 {
		t.Errorf("before they were started: %+v", found)
	}
	must(t, e.StartController(acctest.Bounded(t)))
	found, err = reconcile.Reconciler{Engine: e}.AwaitResidents(acctest.Bounded(t))
	must(t, err)
	if found.Controller.State != domain.ResidentRunning || len(found.Agents) != len(spec.Hosts) ||
		found.Agents[h.Host].State != domain.ResidentRunning {
		t.Errorf("once they were waited for: %+v", found)
	}
	must(t, e.StopController(acctest.Bounded(t)))
	found, err = e.Residents(t.Context())
	must(t, err)
	if found.Controller.State != domain.ResidentAbsent || found.Agents[h.Host].State != domain.ResidentAbsent {
		t.Errorf("once they were stopped: %+v", found)
	}
}
