package reconcile_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// undeclared leaves the number of workers to a policy.
var undeclared = role("worker", func(r *domain.Role) { r.Replicas = nil })

// following returns an engine on which a group runs whose number of workers a policy may change.
// prepare sets up the engine.
func following(t *testing.T, spec domain.Group, prepare ...func(f *fake)) *fake {
	t.Helper()
	f := newFake()
	for _, prepare := range prepare {
		prepare(f)
	}
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), spec))
	spec.Roles = maps.Clone(spec.Roles)
	undeclared(&spec)
	must(t, r.Update(within(t), spec))
	return f
}

// scaling is a change of the number of workers at the epoch.
func scaling(from, to int, remove ...string) reconcile.Scaling {
	return reconcile.Scaling{Group: "mnist", Role: "worker", From: from, To: to, Remove: remove, At: epoch, Why: "busy"}
}

// workers returns the indexes of the workers, sorted by member name.
func (f *fake) workers() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.cast())) {
		if number, is := strings.CutPrefix(name, "mnist-worker-"); is {
			names = append(names, number)
		}
	}
	return strings.Join(names, " ")
}

// restarted returns the members that were started more than once, without their common prefix.
func (f *fake) restarted() string {
	var names []string
	for name, a := range f.cast() {
		if a.runs > 1 {
			names = append(names, strings.TrimPrefix(name, "mnist-"))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// hundred sets up a network with 100 addresses for members.
func hundred(f *fake) { f.inventory.Addresses = 100 }

// onGPUs gives each worker a device of the pool "p".
func onGPUs(g *domain.Group) {
	role("worker", func(r *domain.Role) { r.GPUs = &domain.GPURequest{Pool: "p"} })(g)
}

// withPool creates the pool "p" of devices of host a.
func withPool(uuids ...string) func(f *fake) {
	return func(f *fake) {
		f.gpus = []map[string]domain.HostGPUs{dgx()}
		spec := domain.GPUPool{Cluster: "lab", Name: "p", Devices: map[string][]string{"a": uuids}}
		if _, err := (reconcile.Reconciler{Engine: f}).PutPool(context.Background(), spec, true, nil); err != nil {
			panic(err)
		}
	}
}

// schedules makes the engine schedule interchangeable members itself.
func schedules(f *fake) { f.traits = engine.Traits{Schedules: true, MemberAddress: addressed} }

// TestScale changes the number of workers, once or several times.
func TestScale(t *testing.T) {
	inPeace := role("worker", func(r *domain.Role) { r.OnScale = domain.OnScaleNone })
	large := role("worker", func(r *domain.Role) { r.Resources.CPUs = 20 })
	two := []string{"GPU-a1", "GPU-a2"}
	for name, c := range map[string]struct {
		spec    domain.Group
		prepare func(f *fake)
		scale   []reconcile.Scaling
		// want are the indexes of the workers, done the last reported count, and restarted the members that restarted.
		want      string
		done      int
		restarted string
		// short are parts of what prevents more, and absent the gaps.
		short  []string
		absent []int
	}{
		"out, and all learn of it": {
			spec: group(1, 2), scale: []reconcile.Scaling{scaling(2, 4)}, want: "0 1 2 3", done: 4,
			restarted: "ps-0 worker-0 worker-1",
		},
		"in, and all learn of it": {
			spec: group(1, 3), scale: []reconcile.Scaling{scaling(3, 1)}, want: "0", done: 1,
			restarted: "ps-0 worker-0",
		},
		"in by index, whoever is to go": {
			spec: group(1, 3), scale: []reconcile.Scaling{scaling(3, 2, "mnist-worker-0")}, want: "0 1", done: 2,
			restarted: "ps-0 worker-0 worker-1",
		},
		"out in peace": {
			spec: group(1, 2, inPeace), scale: []reconcile.Scaling{scaling(2, 4)}, want: "0 1 2 3", done: 4,
		},
		"in in peace": {
			spec: group(1, 3, inPeace), scale: []reconcile.Scaling{scaling(3, 2)}, want: "0 1", done: 2,
		},
		"to none": {
			spec: group(1, 2, framework("none"), inPeace), scale: []reconcile.Scaling{scaling(2, 0)}, want: "", done: 0,
		},
		"to the same": {
			spec: group(1, 2), scale: []reconcile.Scaling{scaling(2, 2)}, want: "0 1", done: 2,
		},
		"interchangeable members out": {
			spec: farm(2), scale: []reconcile.Scaling{scaling(2, 5)}, want: "0 1 2 3 4", done: 5,
		},
		"interchangeable members in": {
			spec: farm(4), scale: []reconcile.Scaling{scaling(4, 2)}, want: "0 1", done: 2,
		},
		"interchangeable members chosen": {
			spec:  farm(4),
			scale: []reconcile.Scaling{scaling(4, 2, "mnist-worker-1", "mnist-master-0", "mnist-worker-0")},
			want:  "2 3", done: 2, absent: []int{0, 1},
		},
		"more than are chosen": {
			spec: farm(4), scale: []reconcile.Scaling{scaling(4, 1, "mnist-worker-1")}, want: "0", done: 1,
		},
		"gaps are filled first": {
			spec:  farm(5),
			scale: []reconcile.Scaling{scaling(5, 3, "mnist-worker-1", "mnist-worker-3"), scaling(3, 4), scaling(4, 6)},
			want:  "0 1 2 3 4 5", done: 6,
		},
		"some gaps are filled": {
			spec: farm(5), scale: []reconcile.Scaling{
				scaling(5, 2, "mnist-worker-1", "mnist-worker-3", "mnist-worker-0"), scaling(2, 3),
			},
			want: "0 2 4", done: 3, absent: []int{1, 3},
		},
		"the chief stays to the last": {
			spec:  farm(3, completes("worker")),
			scale: []reconcile.Scaling{scaling(3, 1, "mnist-worker-0", "mnist-worker-2")}, want: "0", done: 1,
		},
		"members that the engine distributes": {
			spec: farm(2), prepare: schedules,
			scale: []reconcile.Scaling{scaling(2, 4), scaling(4, 3, "mnist-worker-0")}, want: "0 1 2", done: 3,
		},
		"with devices": {
			spec: farm(2, onGPUs), prepare: withPool("GPU-a1", "GPU-a2", "GPU-a3"),
			scale: []reconcile.Scaling{scaling(2, 3), scaling(3, 2, "mnist-worker-0")}, want: "1 2", done: 2,
			absent: []int{0},
		},

		"as far as there are processors": {
			spec: farm(2, large), scale: []reconcile.Scaling{scaling(2, 9)}, want: "0 1 2 3 4 5", done: 6,
			short: []string{`role "worker" has 9 members of 20 CPUs each, and only 6 of them fit`, "host a: "},
		},
		"not even one more": {
			spec: farm(6, large), scale: []reconcile.Scaling{scaling(6, 7)}, want: "0 1 2 3 4 5", done: 6,
			short: []string{"7 members of 20 CPUs each, and only 6"},
		},
		"as far as there are devices": {
			spec: group(1, 1, onGPUs), prepare: withPool(two...), scale: []reconcile.Scaling{scaling(1, 4)},
			want: "0 1", done: 2, restarted: "ps-0 worker-0",
			short: []string{`role "worker" has 4 members of 1 GPU of pool "p" each, and only 2 of them fit`},
		},
		"as far as there are addresses": {
			spec: farm(2), prepare: hundred, scale: []reconcile.Scaling{scaling(2, 150)},
			want: strings.TrimSpace(numbers(99)), done: 99,
			short: []string{"has addresses for 100 members"},
		},
		"as far as templates can be rendered": {
			spec: group(3, 1, inPeace,
				role("worker", func(r *domain.Role) { r.Args = []string{`{{ address "ps" .Index }}`} })),
			scale: []reconcile.Scaling{scaling(1, 5)}, want: "0 1 2", done: 3,
			short: []string{`role "ps" has no member 3`},
		},
		"as far down as the framework lets it": {
			spec: group(1, 3), scale: []reconcile.Scaling{scaling(3, 0)}, want: "0", done: 1,
			restarted: "ps-0 worker-0", short: []string{`framework "tensorflow" needs`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var prepare []func(f *fake)
			if c.prepare != nil {
				prepare = append(prepare, c.prepare)
			}
			f := following(t, c.spec, prepare...)
			before := f.document(t, "mnist")
			r := reconcile.Reconciler{Engine: f, Controller: true}
			var done domain.Scaled
			var short string
			for _, s := range c.scale {
				var err error
				if done, short, err = r.Scale(within(t), s); err != nil {
					t.Fatal(err)
				}
			}
			last := c.scale[len(c.scale)-1]
			if want := (domain.Scaled{At: epoch, From: last.From, To: c.done, Why: "busy"}); done != want {
				t.Errorf("done is %+v, want %+v", done, want)
			}
			for _, part := range c.short {
				if !strings.Contains(short, part) {
					t.Errorf("what is in the way is %q, and does not say %q", short, part)
				}
			}
			if (short == "") != (c.short == nil) {
				t.Errorf("what is in the way is %q", short)
			}
			if got := f.workers(); got != c.want {
				t.Errorf("the workers are %s, want %s", got, c.want)
			}
			if got := f.restarted(); got != c.restarted {
				t.Errorf("started again were %q, want %q", got, c.restarted)
			}
			f.expectScaled(t, before, done)
			if diff := cmp.Diff(c.absent, f.document(t, "mnist").Absent["worker"]); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			group, err := r.Read(t.Context(), "mnist")
			must(t, err)
			if changes := reconcile.Diff(group.Decision, group.Observed); len(changes) > 0 {
				t.Errorf("there are changes left: %+v", changes)
			}
			// An apply of the same specification changes nothing.
			runs := f.cast()
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), before.Spec))
			for name, a := range f.cast() {
				if a.runs != runs[name].runs {
					t.Errorf("the next apply starts %s", name)
				}
			}
			f.expectScaled(t, before, done)
		})
	}
}

// farm is a group of a master and interchangeable workers.
func farm(workers int, changes ...func(g *domain.Group)) domain.Group {
	spec := pool(workers)
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

// numbers lists the first n indexes in the order of their member names.
func numbers(n int) string {
	var names []string
	for i := range n {
		names = append(names, domain.MemberName("mnist", "worker", i))
	}
	slices.Sort(names)
	return strings.ReplaceAll(strings.Join(names, " "), "mnist-worker-", "")
}

// framework sets the framework of a group.
func framework(name string) func(g *domain.Group) {
	return func(g *domain.Group) { g.Framework = name }
}

// completes makes a group complete with the first member of a role.
func completes(role string) func(g *domain.Group) {
	return func(g *domain.Group) {
		g.Completion = domain.Completion{When: domain.WhenChief, Roles: []string{role}}
	}
}

// expectScaled fails unless the group's document only differs from before in the number of workers and in new members.
func (f *fake) expectScaled(t *testing.T, before domain.GroupDocument, done domain.Scaled) {
	t.Helper()
	doc := f.document(t, "mnist")
	if doc.Counts["worker"] != done.To || doc.Counts["worker"] != len(strings.Fields(f.workers())) || doc.Scaling ||
		doc.Applying || !doc.Spec.Equal(before.Spec) {
		t.Errorf("after %+v the document is %+v", done, doc)
	}
	if done.To != done.From && doc.Scaled["worker"] != done {
		t.Errorf("scaled last is %+v, want %+v", doc.Scaled, done)
	}
	devices := map[string]string{}
	for name, at := range doc.Assignments {
		if was, had := before.Assignments[name]; had && was != at && f.cast()[name].observed.Run <= before.Revision {
			t.Errorf("%s was at %+v, and is at %+v", name, was, at)
		}
		for _, uuid := range at.GPUs.UUIDs() {
			if other, taken := devices[uuid]; taken {
				t.Errorf("%s and %s both have %s", name, other, uuid)
			}
			devices[uuid] = name
		}
	}
	if len(doc.Assignments) != len(f.cast()) {
		t.Errorf("the document has places for %v, and there are %s", slices.Sorted(maps.Keys(doc.Assignments)),
			f.states())
	}
	if len(f.locks) > 0 || len(f.staged) > 0 {
		t.Errorf("left are the locks %v, and staged %v", f.locks, f.staged)
	}
}

// TestScaleKeepsTheStart: a deadline counts from the first start, even if all members have restarted since.
func TestScaleKeepsTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		spec domain.Group
		want *time.Time
	}{
		"members start again": {
			group(1, 2, func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) }), &epoch,
		},
		"members go on": {farm(2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := following(t, c.spec)
			_, _, err := reconcile.Reconciler{Engine: f, Controller: true}.Scale(within(t), scaling(2, 3))
			must(t, err)
			if diff := cmp.Diff(c.want, f.document(t, "mnist").StartedAt); diff != "" {
				t.Errorf("started at (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScaleMendsNothing: changes from outside to members that stay are left for a plan to show,
// and for an apply to mend.
func TestScaleMendsNothing(t *testing.T) {
	f := following(t, farm(2))
	f.put("mnist-worker-0", func(o *domain.Observed) { o.Replicas = new(3) })
	_, _, err := reconcile.Reconciler{Engine: f, Controller: true}.Scale(within(t), scaling(2, 3))
	must(t, err)
	if f.cast()["mnist-worker-0"].observed.Replicas == nil || f.workers() != "0 1 2" {
		t.Errorf("the members are %+v", f.cast())
	}
}

// TestDeclaredReplicasTakeOver: a role that declares replicas again has these, with contiguous indexes, and keeps its
// count once it declares none.
func TestDeclaredReplicasTakeOver(t *testing.T) {
	f := following(t, farm(4))
	_, _, err := reconcile.Reconciler{
		Engine: f, Controller: true,
	}.Scale(within(t), scaling(4, 2, "mnist-worker-0", "mnist-worker-2"))
	must(t, err)
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), farm(3)))
	if doc := f.document(t, "mnist"); f.workers() != "0 1 2" || doc.Absent != nil || doc.Scaled != nil {
		t.Errorf("the workers are %s, and the document %+v", f.workers(), doc)
	}
	must(t, r.Update(within(t), farm(9, undeclared)))
	if f.workers() != "0 1 2" {
		t.Errorf("the workers are %s", f.workers())
	}
}

// TestPoolsHaveNoGaps: the engine assigns the indexes of members that it schedules.
func TestPoolsHaveNoGaps(t *testing.T) {
	view := lab()
	view.Traits.Schedules, view.Traits.MemberAddress = true, addressed
	spec := farm(2, undeclared)
	previous := decide(t, view, spec).Document
	previous.Revision, previous.Counts["worker"], previous.Absent = 2, 3, map[string][]int{"worker": {1}}
	view.Groups["mnist"] = previous
	if doc := decide(t, view, spec).Document; doc.Absent != nil || doc.Counts["worker"] != 3 {
		t.Errorf("the document is %+v", doc)
	}
}

// TestGoingBackKeepsTheCount: a rollback leaves the count to the policy, even if the role was
// scaled since the last apply.
func TestGoingBackKeepsTheCount(t *testing.T) {
	back := role("worker",
		func(r *domain.Role) { r.Update = domain.Update{Parallelism: 1, OnFailure: domain.UpdateRollback} })
	f := following(t, farm(4, back))
	done, _, err := reconcile.Reconciler{Engine: f, Controller: true}.Scale(within(t), scaling(4, 3, "mnist-worker-1"))
	must(t, err)
	f.plays["mnist-worker-3"] = []play{{runs}, {exits(127)}, {runs}}
	err = reconcile.Reconciler{Engine: f}.Update(within(t), farm(4, back, undeclared, withAnother))
	if err == nil || !strings.Contains(err.Error(), "was rolled back") {
		t.Fatalf("the apply ended with %v", err)
	}
	doc := f.document(t, "mnist")
	if f.workers() != "0 2 3" || doc.Counts["worker"] != 3 || doc.Scaled["worker"] != done ||
		!cmp.Equal(doc.Absent, map[string][]int{"worker": {1}}) {
		t.Errorf("the workers are %s, and the document %+v", f.workers(), doc)
	}
}

// TestLeavingMembersKeepTheirDevices: a device becomes free once the process that used it is gone, and no sooner.
func TestLeavingMembersKeepTheirDevices(t *testing.T) {
	f := following(t, farm(2, onGPUs), withPool("GPU-a1", "GPU-a2"))
	other := pooled("other")
	role("worker", func(r *domain.Role) { r.Replicas = new(1) })(&other)
	e, calls := recorded(f)
	asked := false
	calls.before = func(call string) error {
		if call == "Remove" {
			asked = true
			if err := (reconcile.Reconciler{Engine: f}).Update(within(t), other); err == nil ||
				!strings.Contains(err.Error(), "0 of 2 GPUs free") {
				t.Errorf("while a member ends, another gets its device: %v", err)
			}
		}
		return nil
	}
	_, _, err := reconcile.Reconciler{Engine: e, Controller: true}.Scale(within(t), scaling(2, 1))
	must(t, err)
	if !asked {
		t.Error("no member was removed")
	}
	must(t, reconcile.Reconciler{Engine: f}.Update(within(t), other))
}
