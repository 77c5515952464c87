package reconcile_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestPreflightAsksOncePerRole: members of a role on the same host run the same program.
func TestPreflightAsksOncePerRole(t *testing.T) {
	f := newFake()
	problems, err := reconcile.Reconciler{
		Engine: f,
	}.Preflight(t.Context(), decide(t, lab(), group(2, 3)), map[string]bool{"mnist-worker-0": true})
	must(t, err)
	var asked []string
	for _, p := range problems {
		asked = append(asked, p.Detail)
	}
	want := []string{"nothing keeps mnist-ps-0 from using more", "nothing keeps mnist-worker-1 from using more"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestPreflightAsksOnEachHost: hosts may differ; a problem that is the same on all of them is reported once.
func TestPreflightAsksOnEachHost(t *testing.T) {
	f, view := newFake(), lab()
	f.absent = "train"
	view.Inventory.Hosts["b"] = domain.Host{Address: "10.0.0.2", Capacity: domain.Capacity{CPUs: 8, MemoryMiB: 1024}}
	problems, err := reconcile.Reconciler{Engine: f}.Preflight(t.Context(), decide(t, view, group(0, 4)), nil)
	must(t, err)
	var details []string
	for _, p := range problems {
		details = append(details, p.Detail)
	}
	want := []string{
		"nothing keeps mnist-worker-0 from using more", `"train" is not there`,
		"nothing keeps mnist-worker-1 from using more",
	}
	if diff := cmp.Diff(want, details); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestPreflightReportsNoResidents: members can't be started where the controller can't be; members that are
// kept need no controller.
func TestPreflightReportsNoResidents(t *testing.T) {
	f := newFake()
	f.traits.NoResidents = "there is no image of the controller"
	d := decide(t, lab(), group(2, 3))
	problems, err := reconcile.Reconciler{Engine: f}.Preflight(t.Context(), d, nil)
	must(t, err)
	if faults, are := errors.AsType[domain.Problems](problems.Err()); !are || len(faults) != 1 ||
		faults[0].Path.String() != "cluster" || faults[0].Detail != f.traits.NoResidents {
		t.Errorf("got %v", problems)
	}
	kept := map[string]bool{}
	for _, m := range d.Members {
		kept[m.Name] = true
	}
	problems, err = reconcile.Reconciler{Engine: f}.Preflight(t.Context(), d, kept)
	must(t, err)
	if len(problems) > 0 {
		t.Errorf("where all members are kept: %v", problems)
	}
}
