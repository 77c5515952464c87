package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestDeviceStates(t *testing.T) {
	pools := map[string]domain.GPUPoolDocument{"p": {Devices: map[string][]domain.Device{
		"a": {
			{UUID: "GPU-a0"}, {UUID: "GPU-a1"}, {UUID: "GPU-a2"}, {UUID: "GPU-a3"}, {UUID: "GPU-a4"}, {UUID: "GPU-a5"},
			{UUID: "GPU-a6"}, {UUID: "GPU-gone"},
		}, "c": {{UUID: "GPU-c0"}},
	}}}
	found := dgx()
	found["a"].GPUs[0].Processes = []domain.GPUProcess{{PID: 7, Member: "mnist-worker-0"}}
	found["a"].GPUs[1].Processes = []domain.GPUProcess{
		{PID: 7, Member: "mnist-worker-0"}, {PID: 4711, Command: "python"}, {PID: 4712},
	}
	found["a"].GPUs[2].Trouble = "fallen off the bus (XID 79)"
	for i, used := range map[int]int64{3: 20_000, 4: 20_000, 5: 3, 6: 20_000} {
		found["a"].GPUs[i].MemoryUsedMiB = &used
	}
	groups := map[string]domain.GroupDocument{
		"mnist": {Assignments: map[string]domain.Assignment{"mnist-worker-1": {Host: "a", GPUs: "GPU-a4"}}},
	}
	stored := map[string]domain.GroupDocument{
		"leaving": {Assignments: map[string]domain.Assignment{"leaving-worker-0": {Host: "a", GPUs: "GPU-a6"}}},
	}
	found["c"] = domain.HostGPUs{Unknown: "no driver"}
	want := map[string]placement.DeviceState{
		"GPU-a1":   {Busy: "python (process 4711), process 4712"},
		"GPU-a3":   {Busy: "processes that its agent can't see (20000 MiB)"},
		"GPU-a2":   {Lost: "fallen off the bus (XID 79)"},
		"GPU-gone": {Lost: "no longer found"},
		"GPU-c0":   {Closed: "no driver"},
	}
	if diff := cmp.Diff(want, reconcile.DeviceStates(pools, found, groups, stored)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// A plan that destroys members frees their devices. They use them until the apply, even if the agent
// can't see by which processes.
func TestDevicesOfWhatLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		group  string
		change func(groups map[string]domain.GroupDocument)
		busy   bool
	}{
		"it is replaced": {
			group: "mnist", change: func(groups map[string]domain.GroupDocument) { delete(groups, "mnist") },
		},
		"it is renamed": {
			group:  "other",
			change: func(groups map[string]domain.GroupDocument) { groups["mnist"] = domain.GroupDocument{} },
		},
		"somebody else uses them": {
			group: "other", change: func(groups map[string]domain.GroupDocument) { delete(groups, "mnist") },
			busy: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := poolOf(t, "GPU-a4", "GPU-a5")
			ctx := within(t)
			must(t, r.Update(ctx, pooled("mnist")))
			found := dgx()
			for _, n := range []int{4, 5} {
				found["a"].GPUs[n].MemoryUsedMiB = new(int64(20_000))
				if test.busy {
					found["a"].GPUs[n].Processes = []domain.GPUProcess{{PID: 4711}}
				}
			}
			f.gpus = []map[string]domain.HostGPUs{found}
			spec := pooled(test.group)
			view, err := r.View(ctx, documents[domain.ClusterDocument](f)[""].Spec, spec)
			must(t, err)
			test.change(view.Groups)
			decision, problems, err := r.Decide(ctx, view, spec)
			must(t, err)
			if err := problems.Err(); (err != nil) != test.busy {
				t.Fatalf("problems: %v", err)
			}
			if got := devicesOf(decision.Document); !test.busy && len(got) != 2 {
				t.Errorf("its members get %v", got)
			}
		})
	}
}

// An apply gets exactly what the plan showed, or changes nothing.
func TestPlannedDevices(t *testing.T) {
	f := newFake()
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	r := reconcile.Reconciler{Engine: f}
	ctx := t.Context()
	if _, err := r.PutPool(ctx, domain.GPUPool{
		Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4", "GPU-a5", "GPU-a6", "GPU-a7"}},
	}, true, nil); err != nil {
		t.Fatal(err)
	}
	r.Planned = map[string]domain.Assignment{
		"mnist-worker-0": domain.ParsePlace("a GPU-a7"), "mnist-worker-1": domain.ParsePlace("a GPU-a5"),
	}
	if err := r.Update(ctx, pooled("mnist")); err != nil {
		t.Fatal(err)
	}
	group, err := engine.Get[domain.GroupDocument](ctx, f, "mnist")
	if err != nil {
		t.Fatal(err)
	}
	for member, want := range r.Planned {
		if got := group.Assignments[member]; got.GPUs != want.GPUs || got.Host != "a" || got.Port == 0 {
			t.Errorf("%s was assigned %+v, planned %+v", member, got, want)
		}
	}
	busy := dgx()
	busy["a"].GPUs[6].Processes = []domain.GPUProcess{{PID: 4711, Command: "python"}}
	f.gpus = []map[string]domain.HostGPUs{busy}
	r.Planned = map[string]domain.Assignment{
		"busy-worker-0": domain.ParsePlace("a GPU-a4"), "busy-worker-1": domain.ParsePlace("a GPU-a6"),
	}
	if err := r.Update(ctx, pooled("busy")); err == nil ||
		!strings.Contains(err.Error(),
			"busy-worker-1 was to get GPU-a6 of host a: it is used by python (process 4711)") {
		t.Errorf("a planned device that is in use since: %v", err)
	}
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	r.Planned = map[string]domain.Assignment{
		"other-worker-0": domain.ParsePlace("a GPU-a7"), "other-worker-1": domain.ParsePlace("a GPU-a6"),
	}
	var stale *reconcile.StalePlanError
	if err := r.Update(ctx, pooled("other")); !errors.As(err, &stale) || len(stale.Members) != 1 ||
		!strings.Contains(err.Error(), "other-worker-0 was planned on a GPU-a7, and would now be on a GPU-a4") {
		t.Errorf("planned devices that were taken since: %v", err)
	}
	if _, err := engine.Get[domain.GroupDocument](ctx, f, "other"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("of what could not be had as planned there is: %v", err)
	}
}

// A group that is adopted keeps its devices: a replacement that comes before the destroy of the former instance was
// planned as if those were free.
func TestAdoptedGroupKeepsItsDevices(t *testing.T) {
	f := newFake()
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	r := reconcile.Reconciler{Engine: f}
	_, err := r.PutPool(t.Context(), domain.GPUPool{
		Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4", "GPU-a5"}},
	}, true, nil)
	must(t, err)
	must(t, r.Update(t.Context(), pooled("mnist")))
	before := f.document(t, "mnist").Assignments
	r.Planned = map[string]domain.Assignment{
		"mnist-worker-0": before["mnist-worker-1"], "mnist-worker-1": before["mnist-worker-0"],
	}
	if adopted, err := r.Create(t.Context(), pooled("mnist")); err != nil || !adopted {
		t.Fatalf("adopted is %t (%v)", adopted, err)
	}
	if diff := cmp.Diff(before, f.document(t, "mnist").Assignments); diff != "" {
		t.Errorf("its devices (-before +after):\n%s", diff)
	}
}

// Hosts are not asked about GPUs for members that keep their devices.
func TestKeptDevicesAreNotLookedAt(t *testing.T) {
	f := newFake()
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	r := reconcile.Reconciler{Engine: f}
	ctx := t.Context()
	if _, err := r.PutPool(ctx, domain.GPUPool{
		Cluster: "lab", Name: "p", Devices: map[string][]string{"a": {"GPU-a4", "GPU-a5"}},
	}, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(ctx, pooled("mnist")); err != nil {
		t.Fatal(err)
	}
	r.Engine = engine.Intercept(f, func(_ context.Context, call engine.Call, do func() error) error {
		if call.Name == "GPUs" {
			t.Error("the GPUs were looked at")
		}
		return do()
	})
	changed := pooled("mnist")
	changed.Env = map[string]string{"A": "b"}
	if err := r.Update(ctx, changed); err != nil {
		t.Fatal(err)
	}
}
