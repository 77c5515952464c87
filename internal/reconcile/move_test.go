package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestKeepMoves: a group of ps-0, worker-0 (the chief) and worker-1 on host a, which is lost, in run 3,
// a minute after its start.
func TestKeepMoves(t *testing.T) {
	const ps, w0, w1 = 0, 1, 2
	elsewhere := func(doc *domain.GroupDocument) {
		doc.Assignments["mnist-worker-0"] = domain.Assignment{Host: "b", Port: 20001}
	}
	all := []string{"mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}
	for name, c := range map[string]struct {
		spec   func(g *domain.Group)
		doc    func(doc *domain.GroupDocument)
		change func(o []domain.Observed)
		lost   string
		want   reconcile.Upkeep
	}{
		"all on the lost host": {lost: "a", want: reconcile.Upkeep{Move: all}},
		"on another":           {lost: "b", want: reconcile.Upkeep{}},
		"some on another": {
			change: func(o []domain.Observed) { o[ps].Host = "b" }, lost: "a", want: reconcile.Upkeep{Move: all[1:]},
		},
		"a member that ended": {
			change: func(o []domain.Observed) { o[w1].State = domain.StateCompleted }, lost: "a",
			want: reconcile.Upkeep{Move: all[:2]},
		},
		"a member that failed": {
			change: func(o []domain.Observed) { fail(&o[w1], 137, 0) }, lost: "a",
			want: reconcile.Upkeep{Move: all[:2]},
		},
		"pending or restarting": {
			change: func(o []domain.Observed) {
				o[w1].State, o[w0].State = domain.StatePending, domain.StateRestarting
			},
			lost: "a", want: reconcile.Upkeep{Move: all},
		},
		"the group is completed": {
			change: func(o []domain.Observed) { o[w0].State = domain.StateCompleted }, lost: "a",
			want: reconcile.Upkeep{Stop: []string{"mnist-ps-0", "mnist-worker-1"}, Reason: domain.StopCompleted},
		},
		"the group restarts as a whole, and needs no attempt for it": {
			spec: asAWhole, change: func(o []domain.Observed) { fail(&o[w1], 137, 0) }, lost: "a",
			want: reconcile.Upkeep{Move: all},
		},
		"before the deadline": {
			spec: func(g *domain.Group) { g.Completion.Deadline = duration(time.Hour) }, lost: "a",
			want: reconcile.Upkeep{Move: all, Next: epoch.Add(time.Hour)},
		},
		"past the deadline": {
			spec: func(g *domain.Group) { g.Completion.Deadline = duration(time.Second) }, lost: "a",
			want: reconcile.Upkeep{Stop: all, Reason: domain.StopDeadline},
		},
		"decided, and not carried out": {
			doc: elsewhere, change: func(o []domain.Observed) { o[w0].Hash = "older" }, lost: "a",
			want: reconcile.Upkeep{Resume: true},
		},
		"decided by an apply that has yet to start it": {
			doc: elsewhere, change: func(o []domain.Observed) { o[ps].Host, o[w1].Host, o[w0].Run = "b", "b", 0 },
			lost: "a", want: reconcile.Upkeep{},
		},
		"restarted as a whole without an attempt, and not carried out": {
			doc:    func(doc *domain.GroupDocument) { doc.MinRun, doc.StartedAt = 5, &epoch },
			change: func(o []domain.Observed) { o[w1].Run = 5 }, lost: "b", want: reconcile.Upkeep{Resume: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := group(1, 2)
			if c.spec != nil {
				c.spec(&spec)
			}
			doc := stored(t, spec, 5)
			if c.doc != nil {
				c.doc(&doc)
			}
			d := current(doc)
			observed := observe(current(stored(t, spec, 5)), 3)
			if c.change != nil {
				c.change(observed)
			}
			lost := map[string]string{c.lost: "host " + c.lost + " is down"}
			if diff := cmp.Diff(c.want, reconcile.Keep(d, observed, lost, epoch.Add(time.Minute))); diff != "" {
				t.Errorf("upkeep (-want +got):\n%s", diff)
			}
		})
	}
}

// hostsOf returns the hosts of the members, and fails if the group's document disagrees.
func (f *fake) hostsOf(t *testing.T) map[string]string {
	t.Helper()
	hosts := map[string]string{}
	assigned := f.document(t, "mnist").Assignments
	for name, a := range f.cast() {
		hosts[name] = a.observed.Host
		if assigned[name].Host != a.observed.Host {
			t.Errorf("%s is on host %s, and the document has it on %s", name, a.observed.Host, assigned[name].Host)
		}
	}
	return hosts
}

// addressed is the MemberAddress of an engine that reaches members by name.
func addressed(member string) string { return member }

// TestKeepMovesMembers has ps-0, worker-0 and worker-1 on a, b and a, and loses host a.
func TestKeepMovesMembers(t *testing.T) {
	for name, c := range map[string]struct {
		spec  domain.Group
		named bool
		// runs is how often each member was started in total.
		runs map[string]int
	}{
		"one by one": {group(1, 2), true, map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 1, "mnist-worker-1": 2}},
		"as a whole": {
			group(1, 2, asAWhole), true, map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 2, "mnist-worker-1": 2},
		},
		// The fake's hosts share an address, so moved members keep theirs.
		"at their hosts' address": {
			group(1, 2), false, map[string]int{"mnist-ps-0": 2, "mnist-worker-0": 1, "mnist-worker-1": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			if c.named {
				f.traits.MemberAddress = addressed
			}
			must(t, reconcile.Reconciler{Engine: f}.Update(within(t), c.spec))
			if diff := cmp.Diff(map[string]string{"mnist-ps-0": "a", "mnist-worker-0": "b", "mnist-worker-1": "a"},
				f.hostsOf(t)); diff != "" {
				t.Fatalf("hosts (-want +got):\n%s", diff)
			}
			before := f.document(t, "mnist")
			f.lose("a")
			r := reconcile.Reconciler{Engine: f, Controller: true}
			read, err := r.Read(t.Context(), "mnist")
			must(t, err)
			if want := (domain.Progress{
				Phase: domain.PhaseDegraded, Reason: "host a is down: mnist-ps-0, mnist-worker-1",
			}); read.Progress != want {
				t.Errorf("the group is %+v", read.Progress)
			}
			now := time.Now()
			pending, err := r.Pending(t.Context(), now)
			must(t, err)
			if diff := cmp.Diff([]reconcile.Due{{Group: "mnist", Due: now}}, pending); diff != "" {
				t.Errorf("what is to be done (-want +got):\n%s", diff)
			}
			_, err = r.Keep(t.Context(), "mnist")
			must(t, err)
			if diff := cmp.Diff(map[string]string{"mnist-ps-0": "b", "mnist-worker-0": "b", "mnist-worker-1": "b"},
				f.hostsOf(t)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			runs := map[string]int{}
			for name, a := range f.cast() {
				runs[name] = a.runs
			}
			if diff := cmp.Diff(c.runs, runs); diff != "" {
				t.Errorf("starts (-want +got):\n%s", diff)
			}
			doc := f.document(t, "mnist")
			if doc.Revision != before.Revision+1 || doc.GroupRestarts != 0 || doc.Applying ||
				!doc.Spec.Equal(before.Spec) {
				t.Errorf("the document is %+v", doc)
			}
			if whole := c.spec.RestartScope == domain.ScopeGroup; whole != (doc.MinRun == doc.Revision) ||
				whole != (doc.StartedAt != nil) {
				t.Errorf("members have to run since run %d, of a run that started at %v", doc.MinRun, doc.StartedAt)
			}
			_, err = f.Observe(t.Context(), "")
			must(t, err)
			pending, err = r.Pending(t.Context(), now)
			if len(pending) > 0 || err != nil {
				t.Errorf("after the move there is %v to do (%v)", pending, err)
			}
			if len(f.locks) > 0 {
				t.Errorf("the locks %v are still held", f.locks)
			}
		})
	}
}

// TestMoveDiesBetweenCalls: the controller dies after each of its calls in turn while it moves members. The next one
// finishes the move, and no member starts twice.
func TestMoveDiesBetweenCalls(t *testing.T) {
	for _, spec := range []domain.Group{group(1, 2), group(1, 2, asAWhole)} {
		for k := 0; ; k++ {
			if k == 100 {
				t.Fatal("a move takes more than 100 calls")
			}
			f, _ := applied(t, spec)
			f.lose("a")
			mortal := enginetest.NewMortal(f, k)
			_, err := reconcile.Reconciler{Engine: mortal, Controller: true}.Keep(t.Context(), "mnist")
			if err != nil && !errors.Is(err, enginetest.ErrDead) {
				t.Fatalf("after %d calls %v: %v", k, mortal.Calls(), err)
			}
			r := reconcile.Reconciler{Engine: f, Controller: true}
			for range 5 {
				pending, err := r.Pending(t.Context(), time.Now())
				must(t, err)
				for _, p := range pending {
					_, err := r.Keep(t.Context(), p.Group)
					must(t, err)
				}
			}
			f.hostsOf(t)
			for name, a := range f.cast() {
				if want := 2; a.observed.Host != "b" || a.observed.State != domain.StateRunning || a.runs > want ||
					name != "mnist-worker-0" && a.runs != want {
					t.Errorf("after a death at call %d %v: %s is %s on %s, and was started %d times", k, mortal.Calls(),
						name, a.observed.State, a.observed.Host, a.runs)
				}
			}
			if err == nil {
				break
			}
		}
	}
}

// TestNoRoomToMove: members that can't be placed elsewhere stay, and are retried.
func TestNoRoomToMove(t *testing.T) {
	wide := group(1, 2, role("worker", func(r *domain.Role) { r.Resources.CPUs = 40 }))
	f, _ := applied(t, wide)
	before := f.document(t, "mnist")
	f.lose("a")
	r := reconcile.Reconciler{Engine: f, Controller: true}
	next, err := r.Keep(t.Context(), "mnist")
	unplaced, is := errors.AsType[*reconcile.UnplacedError](err)
	if !is || unplaced.Group != "mnist" || !next.After(time.Now()) {
		t.Fatalf("the next look is at %s (%v)", next, err)
	}
	for _, part := range []string{
		"host a is down, and these members", `group "mnist"`, "mnist-worker-",
		"2 members of 40 CPUs each, and only 1 of them fit", "1 of which take no new members: host a is down",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" {
		t.Errorf("the document was changed (-before +after):\n%s", diff)
	}
	if len(f.locks) > 0 || len(f.staged) > 0 {
		t.Errorf("left are the locks %v, and staged %v", f.locks, f.staged)
	}
	// It moves once there is room.
	hosts := f.hosts()
	hosts["c"] = hosts["b"]
	f.setHosts(hosts)
	_, err = r.Keep(t.Context(), "mnist")
	must(t, err)
	if hosts := f.hostsOf(t); hosts["mnist-worker-0"] == hosts["mnist-worker-1"] || hosts["mnist-worker-0"] == "a" ||
		hosts["mnist-worker-1"] == "a" {
		t.Errorf("the members are on %v", hosts)
	}
}

// TestHostsThatComeBack: a host that returns before its members are placed elsewhere keeps them.
func TestHostsThatComeBack(t *testing.T) {
	f, _ := applied(t, group(1, 2, asAWhole))
	before := f.document(t, "mnist")
	f.lose("a")
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if made := calls.made(); call == "Inventory" && slices.Contains(made[:len(made)-1], "Inventory") {
			f.lose("nobody")
		}
		return nil
	}
	_, err := reconcile.Reconciler{Engine: e, Controller: true}.Keep(t.Context(), "mnist")
	must(t, err)
	if diff := cmp.Diff(before, f.document(t, "mnist")); diff != "" {
		t.Errorf("the document was changed (-before +after):\n%s", diff)
	}
	for name, a := range f.cast() {
		if a.runs != 1 {
			t.Errorf("%s was started %d times", name, a.runs)
		}
	}
}

// TestLookingForLostHosts: the engine is asked about its hosts once, and only if a member reports trouble with one.
func TestLookingForLostHosts(t *testing.T) {
	f, r := applied(t, group(1, 100))
	must(t, r.Update(within(t), group(1, 100, func(g *domain.Group) { g.Name = "other" })))
	for name, c := range map[string]struct {
		prepare       func()
		pending, keep []string
	}{
		"no trouble": {
			func() {}, []string{"List group", "Get cluster", "Observe"},
			[]string{"Lock", "Get group", "Get cluster", "Observe"},
		},
		"a paused host": {
			func() { f.inventory.Closed = map[string]string{"a": "host a is paused"} },
			[]string{"List group", "Get cluster", "Observe", "Inventory"},
			[]string{"Lock", "Get group", "Get cluster", "Observe", "Get cluster", "Inventory"},
		},
	} {
		c.prepare()
		e, calls := recorded(f)
		r := reconcile.Reconciler{Engine: e, Controller: true}
		pending, err := r.Pending(t.Context(), epoch)
		if len(pending) > 0 || err != nil {
			t.Errorf("%s: there is %v to do (%v)", name, pending, err)
		}
		if diff := cmp.Diff(c.pending, calls.made()); diff != "" {
			t.Errorf("%s: calls of a look (-want +got):\n%s", name, diff)
		}
		calls.calls = nil
		_, err = r.Keep(t.Context(), "mnist")
		must(t, err)
		if diff := cmp.Diff(c.keep, calls.made()); diff != "" {
			t.Errorf("%s: calls of keeping a group (-want +got):\n%s", name, diff)
		}
		f.inventory.Closed = nil
	}
}

// TestPendingWithoutInventory: if the hosts can't be read, groups that need nothing from them are still looked after.
func TestPendingWithoutInventory(t *testing.T) {
	f, r := applied(t, group(1, 1))
	must(t, r.Update(within(t), group(1, 1, func(g *domain.Group) { g.Name = "other" })))
	f.put("other-worker-0", func(o *domain.Observed) { o.State = domain.StateCompleted })
	f.lose("a")
	boom := errors.New("out of reach")
	e, calls := recorded(f)
	calls.before = func(call string) error {
		if call == "Inventory" {
			return boom
		}
		return nil
	}
	pending, err := reconcile.Reconciler{Engine: e}.Pending(t.Context(), epoch)
	if diff := cmp.Diff([]reconcile.Due{{Group: "other", Due: epoch}}, pending); diff != "" || !errors.Is(err, boom) {
		t.Errorf("what is to be done (-want +got), with %v:\n%s", err, diff)
	}
}

// TestHostLostDuringApply: the apply moves the members itself, as it holds the group's lock, and continues.
func TestHostLostDuringApply(t *testing.T) {
	f := newFake()
	f.traits.MemberAddress = addressed
	f.plays["mnist-worker-1"] = []play{{waits, waits, waits, waits, waits}, {runs}}
	e, calls := recorded(f)
	looks := 0
	calls.before = func(call string) error {
		if call == "Observe" {
			if looks++; looks == 3 {
				f.lose("a")
			}
		}
		if call == "Put group" && looks == 3 && !f.document(t, "mnist").Applying {
			t.Error("the document says that the apply has ended")
		}
		return nil
	}
	must(t, reconcile.Reconciler{Engine: e}.Update(within(t), group(1, 2)))
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)")
	if diff := cmp.Diff(map[string]string{"mnist-ps-0": "b", "mnist-worker-0": "b", "mnist-worker-1": "b"},
		f.hostsOf(t)); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if f.document(t, "mnist").Applying || f.cast()["mnist-worker-0"].runs != 1 {
		t.Errorf("worker 0 was started %d times, and the document is %+v", f.cast()["mnist-worker-0"].runs,
			f.document(t, "mnist"))
	}
}

// TestAllocationLockedDuringApply: an apply that has begun continues although others keep it from moving the members of
// a host for longer than it waits for them.
func TestAllocationLockedDuringApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.traits.MemberAddress = addressed
		f.plays["mnist-worker-1"] = []play{{waits, waits, waits, waits, waits}, {runs}}
		e, calls := recorded(f)
		looks, lost := 0, time.Time{}
		calls.before = func(call string) error {
			if call == "Observe" {
				if looks++; looks == 3 {
					f.lose("a")
					lost = time.Now()
				}
			}
			if call == "Lock" && !lost.IsZero() && time.Since(lost) < time.Minute {
				return &engine.LockedError{Lock: "allocation", Holder: engine.Holder{Who: "ada", Process: 1}}
			}
			return nil
		}
		must(t, reconcile.Reconciler{Engine: e}.Update(t.Context(), group(1, 2)))
		for member, host := range f.hostsOf(t) {
			if host != "b" {
				t.Errorf("%s is on host %s", member, host)
			}
		}
	})
}

// TestPlannedHostLostDuringApply: a member whose plan showed its GPU gets another one.
func TestPlannedHostLostDuringApply(t *testing.T) {
	f := newFake()
	f.traits.MemberAddress = addressed
	f.gpus = []map[string]domain.HostGPUs{dgx()}
	putPool(t, reconcile.Reconciler{Engine: f}, onBoth, true)
	f.plays["mnist-worker-0"] = []play{{waits, waits, waits, waits, waits}, {runs}}
	r := interfering(t, f, "Start", "Observe", func() {
		f.lose("a")
		f.gpus[0]["a"] = domain.HostGPUs{Unknown: "host a is down"}
	})
	r.Planned = map[string]domain.Assignment{"mnist-worker-0": domain.ParsePlace("a GPU-a4")}
	one := pooled("mnist")
	one.Roles["worker"] = domain.Role{Replicas: new(1), GPUs: &domain.GPURequest{Pool: "p"}}
	must(t, r.Update(within(t), one))
	if got := f.document(t, "mnist").Assignments["mnist-worker-0"].Place(); got != "b GPU-b0" {
		t.Errorf("the member is at %s", got)
	}
}

// TestNoRoomDuringApply: an apply waits for a host to come back, and its timeout error says so.
func TestNoRoomDuringApply(t *testing.T) {
	f := newFake()
	f.plays["mnist-ps-0"] = []play{{waits, waits, waits, waits, waits, waits, waits}}
	e, calls := recorded(f)
	ctx, cancel := context.WithCancel(t.Context())
	inventories := 0
	calls.before = func(call string) error {
		if call == "Start" {
			f.lose("a")
		}
		if call == "Inventory" {
			if inventories++; inventories > 4 {
				cancel()
			}
		}
		return nil
	}
	err := reconcile.Reconciler{
		Engine: e,
	}.Update(ctx, group(1, 2, role("worker", func(r *domain.Role) { r.Resources.CPUs = 40 })))
	for _, part := range []string{
		`group "mnist" is degraded (host a is down: `, "can't be placed elsewhere", "only 1 of them fit",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// TestApplyOnClosedHosts: an apply neither waits for hosts that keep their members, nor moves members off them.
func TestApplyOnClosedHosts(t *testing.T) {
	f, r := applied(t, group(1, 2))
	before := f.hostsOf(t)
	f.inventory.Closed = map[string]string{"a": "host a is paused", "b": "host b is paused"}
	must(t, r.Update(within(t), group(1, 2, role("worker", func(r *domain.Role) { r.Resources.CPUs = 1 }))))
	if diff := cmp.Diff(before, f.hostsOf(t)); diff != "" {
		t.Errorf("hosts (-before +after):\n%s", diff)
	}
	f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)", "mnist-worker-1 (running)")
	if err := r.Update(within(t), group(1, 3)); err == nil ||
		!strings.Contains(err.Error(), "2 of which take no new members: host a is paused; host b is paused") {
		t.Errorf("a further worker: %v", err)
	}
}
