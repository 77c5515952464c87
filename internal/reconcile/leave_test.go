package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestMembersLeaveLostGPUs has worker-0 and worker-1 on the first two devices of a pool, some of which fail. The
// decision is carried out, and then made again.
func TestMembersLeaveLostGPUs(t *testing.T) {
	const w0, w1 = "mnist-worker-0", "mnist-worker-1"
	done := func(member string, state domain.State) func(f *fake) {
		return func(f *fake) { f.put(member, func(o *domain.Observed) { o.State = state }) }
	}
	two := map[string]domain.DeviceSet{w0: "GPU-a4", w1: "GPU-a5"}
	for name, test := range map[string]struct {
		devices []string
		spec    func(g *domain.Group)
		broken  []int
		// change is what happens to members meanwhile; planned is what a plan shows for them.
		change  func(f *fake)
		planned map[string]domain.Assignment
		reason  string
		want    map[string]domain.DeviceSet
		warns   []string
	}{
		"to a spare one": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{4},
			reason: "GPU-a4 of host a (" + offTheBus + "): " + w0,
			want:   map[string]domain.DeviceSet{w0: "GPU-a6", w1: "GPU-a5"},
		},
		"not to one that is lost as well": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6", "GPU-a7"}, broken: []int{5, 6},
			reason: "GPU-a5 of host a (" + offTheBus + "): " + w1,
			want:   map[string]domain.DeviceSet{w0: "GPU-a4", w1: "GPU-a7"},
		},
		"one that nobody has": {devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{6}, want: two},
		"with none to spare": {
			devices: []string{"GPU-a4", "GPU-a5"}, broken: []int{4},
			reason: "GPU-a4 of host a (" + offTheBus + "): " + w0, want: two,
			warns: []string{
				`members of role "worker" stay on GPUs that can't be used, as no others are available: GPU-a4 of host a (` + offTheBus + "): " + w0,
				"1 of them fit",
			},
		},
		"with too few to spare": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{4, 5},
			reason: "GPU-a4 of host a (" + offTheBus + "): " + w0 + "; GPU-a5 of host a (" + offTheBus + "): " + w1,
			want:   map[string]domain.DeviceSet{w0: "GPU-a6", w1: "GPU-a5"},
			warns:  []string{"GPU-a5 of host a (" + offTheBus + "): " + w1},
		},
		"with none to spare for several": {
			devices: []string{"GPU-a4", "GPU-a5"}, broken: []int{4, 5},
			reason: "GPU-a4 of host a (" + offTheBus + "): " + w0 + "; GPU-a5 of host a (" + offTheBus + "): " + w1,
			want:   two,
			warns: []string{
				"GPU-a4 of host a (" + offTheBus + "): " + w0 + "; GPU-a5 of host a (" + offTheBus + "): " + w1,
			},
		},
		"not a member that is done": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{5}, change: done(w1, domain.StateCompleted),
			want: two,
		},
		"not of a group that has ended": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{5}, change: done(w0, domain.StateCompleted),
			want: two,
		},
		"one that failed": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{5}, change: done(w1, domain.StateFailed),
			reason: "failed: " + w1,
			want:   map[string]domain.DeviceSet{w0: "GPU-a4", w1: "GPU-a6"},
		},
		"not one that is planned to stay": {
			devices: []string{"GPU-a4", "GPU-a5", "GPU-a6"}, broken: []int{5},
			planned: map[string]domain.Assignment{w1: {Host: "a", GPUs: "GPU-a5"}},
			reason:  "GPU-a5 of host a (" + offTheBus + "): " + w1, want: two,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := poolOf(t, test.devices...)
			ctx := within(t)
			spec := pooled("mnist")
			must(t, r.Update(ctx, spec))
			if diff := cmp.Diff(two, f.assigned(t)); diff != "" {
				t.Fatalf("devices before (-want +got):\n%s", diff)
			}
			f.breakGPUs(test.broken...)
			if _, err := r.KeepPools(ctx); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(f)
			}
			group, err := r.Read(ctx, "mnist")
			must(t, err)
			if group.Progress.Reason != test.reason {
				t.Errorf("the group is %+v, for the reason %q", group.Progress, test.reason)
			}

			r.Planned = test.planned
			view, err := r.View(ctx, documents[domain.ClusterDocument](f)[""].Spec, spec)
			must(t, err)
			view.Leave = group.Leaving()
			decision, problems, err := r.Decide(ctx, view, spec)
			must(t, err)
			must(t, problems.Err())
			details := ""
			for _, p := range problems {
				details += p.Detail
			}
			if len(problems) > 1 || (len(problems) == 1) != (test.warns != nil) ||
				slices.ContainsFunc(test.warns, func(part string) bool { return !strings.Contains(details, part) }) {
				t.Errorf("the warnings %v do not say %q", problems, test.warns)
			}
			if diff := cmp.Diff(test.want, devicesOf(decision.Document)); diff != "" {
				t.Errorf("decided devices (-want +got):\n%s", diff)
			}

			before := f.cast()
			must(t, r.Update(ctx, spec))
			for range 2 {
				if diff := cmp.Diff(test.want, f.assigned(t)); diff != "" {
					t.Errorf("devices (-want +got):\n%s", diff)
				}
				for member, a := range f.cast() {
					if moved := test.want[member] != two[member]; (a.runs > before[member].runs) != moved {
						t.Errorf("%s was started %d times, and %d before", member, a.runs, before[member].runs)
					}
				}
				r.Planned = nil
				if test.planned == nil {
					must(t, r.Update(ctx, spec))
				}
			}
		})
	}
}

func devicesOf(doc domain.GroupDocument) map[string]domain.DeviceSet {
	devices := map[string]domain.DeviceSet{}
	for member, at := range doc.Assignments {
		devices[member] = at.GPUs
	}
	return devices
}

// assigned returns the devices of the members of the group "mnist".
func (f *fake) assigned(t *testing.T) map[string]domain.DeviceSet {
	t.Helper()
	return devicesOf(f.document(t, "mnist"))
}

// An unusable device is given to no new member, even if its owner can't leave it. Once it works it is given out again.
func TestLostGPUsAreNotGiven(t *testing.T) {
	f, r := poolOf(t, "GPU-a4", "GPU-a5", "GPU-a6")
	ctx := within(t)
	must(t, r.Update(ctx, pooled("mnist")))
	more := pooled("mnist")
	role := more.Roles["worker"]
	role.Replicas = new(3)
	more.Roles = maps.Clone(more.Roles)
	more.Roles["worker"] = role
	f.breakGPUs(4, 6)
	if _, err := r.KeepPools(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(ctx, more); err == nil || !strings.Contains(err.Error(), "GPU-a6 can't be used: "+offTheBus) {
		t.Errorf("a member on a device that is lost: %v", err)
	}
	f.breakGPUs()
	if _, err := r.KeepPools(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, r.Update(ctx, more))
	if diff := cmp.Diff(map[string]domain.DeviceSet{
		"mnist-worker-0": "GPU-a4", "mnist-worker-1": "GPU-a5", "mnist-worker-2": "GPU-a6",
	}, f.assigned(t)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// The controller moves members off lost hosts, but not off unusable devices.
func TestKeepLeavesMembersOnLostGPUs(t *testing.T) {
	f, r := poolOf(t, "GPU-a4", "GPU-a5", "GPU-a6")
	ctx := within(t)
	must(t, r.Update(ctx, pooled("mnist")))
	f.breakGPUs(4)
	keeper := reconcile.Reconciler{Engine: f, Controller: true}
	if _, err := keeper.KeepPools(ctx); err != nil {
		t.Fatal(err)
	}
	before := f.assigned(t)
	if _, err := keeper.Keep(ctx, "mnist"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.assigned(t)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}
