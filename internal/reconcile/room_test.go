package reconcile_test

import (
	"context"
	"errors"
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

// sharer is a group of workers with one CPU each; with nil replicas, a policy sets their number.
func sharer(name string, priority int, replicas *int) domain.Group {
	return domain.Group{
		Cluster: "lab", Name: name, Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Priority:   priority,
		Completion: domain.Completion{When: domain.WhenNever},
		Template:   domain.Template{Command: []string{"work"}},
		Roles: map[string]domain.Role{"worker": {
			Replicas: replicas, Resources: domain.ResourceRequirements{CPUs: 1}, OnScale: domain.OnScaleNone,
			Placement: domain.Placement{Strategy: domain.Pack},
		}},
	}
}

// idler is the policy that fills the room that there is with a group's workers.
func idler(group string, least int) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		Cluster: "lab", Group: group, Role: "worker", Min: least, Max: 20,
		Metrics: map[string]domain.ScalingMetric{
			"room": {Algorithm: domain.ScalingAlgorithm{IdleRoom: &domain.IdleRoomAlgorithm{}}},
		},
	}
}

// crowded is an engine on hosts with these numbers of CPUs.
func crowded(cpus ...float64) *fake {
	f := newFake()
	hosts := map[string]domain.Host{}
	for i, n := range cpus {
		hosts[string(rune('a'+i))] = domain.Host{
			Address: "10.0.0.1", Capacity: domain.Capacity{CPUs: n, MemoryMiB: 1 << 16},
		}
	}
	f.setHosts(hosts)
	return f
}

// shares runs a group with this many workers under a policy, after changes to the policy.
func (f *fake) shares(
	t *testing.T, priority, count, least int, name string, changes ...func(p *domain.AutoscalingPolicy),
) {
	t.Helper()
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), sharer(name, priority, nil)))
	policy := idler(name, least)
	for _, change := range changes {
		change(&policy)
	}
	set(f, domain.AutoscalingPolicyDocument{Header: domain.Header{Revision: 1}, Spec: policy})
	if count != 1 {
		f.grow(t, name, 1, count)
	}
}

// grow scales a group's workers, and fails if that is not possible.
func (f *fake) grow(t *testing.T, name string, from, to int) {
	t.Helper()
	done, short, err := reconcile.Reconciler{
		Engine: f,
	}.Scale(within(t), reconcile.Scaling{Group: name, Role: "worker", From: from, To: to, At: epoch, Why: "a test"})
	if err != nil || done.To != to {
		t.Fatalf("%s was scaled to %d, and not to %d: %s, %v", name, done.To, to, short, err)
	}
}

// share decides which roles yield to these requests, and describes which members are removed for each, or why none is.
func (f *fake) share(t *testing.T, requests ...domain.RoomRequest) []string {
	t.Helper()
	waiting := map[string]domain.RoomRequest{}
	for _, request := range requests {
		waiting[request.Spec.Name] = request
	}
	claims, _, err := reconcile.Reconciler{Engine: f}.Share(within(t), waiting, nil)
	must(t, err)
	var answers []string
	for _, c := range claims {
		var gone []string
		for _, key := range slices.Sorted(maps.Keys(c.Gone)) {
			gone = append(gone, c.Gone[key]...)
		}
		what := strings.Join(gone, " ")
		if c.Refusal != nil {
			what = c.Answer
		}
		answers = append(answers, c.Request.Spec.Name+": "+what)
	}
	return answers
}

func asks(name string, priority, members int) domain.RoomRequest {
	return domain.RoomRequest{Spec: sharer(name, priority, &members), Since: epoch}
}

// Roles of lower priority yield if that helps, and requests are served in order.
func TestShare(t *testing.T) {
	for name, test := range map[string]struct {
		prepare  func(t *testing.T, f *fake)
		requests []domain.RoomRequest
		want     []string
	}{
		"one gives way": {
			func(t *testing.T, f *fake) { f.shares(t, 0, 4, 1, "low") },
			[]domain.RoomRequest{asks("urgent", 1, 2)}, []string{"urgent: low-worker-3 low-worker-2"},
		},
		"there is room": {
			func(t *testing.T, f *fake) { f.shares(t, 0, 2, 1, "low") },
			[]domain.RoomRequest{asks("urgent", 1, 2)}, []string{"urgent: "},
		},
		"not for its own kind": {
			func(t *testing.T, f *fake) { f.shares(t, 1, 4, 1, "low") },
			[]domain.RoomRequest{asks("urgent", 1, 2)},
			[]string{`urgent: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1. ` +
				`Roles under a policy give way to groups and sweeps with a higher priority: this one has 1, and would have room with 2`},
		},
		"not below min": {
			func(t *testing.T, f *fake) { f.shares(t, 0, 4, 3, "low") },
			[]domain.RoomRequest{asks("urgent", 1, 2)},
			[]string{"urgent: no role gives way: there would still be no room"},
		},
		"not a role that is paused": {
			func(t *testing.T, f *fake) {
				f.shares(t, 0, 4, 1, "low", func(p *domain.AutoscalingPolicy) { p.Paused = domain.PauseIn })
			},
			[]domain.RoomRequest{asks("urgent", 1, 2)},
			[]string{
				`urgent: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1, but it keeps 4: its policy is paused`,
			},
		},
		"nor one that never scales in": {
			func(t *testing.T, f *fake) {
				f.shares(t, 0, 4, 1, "low",
					func(p *domain.AutoscalingPolicy) { p.ScaleIn.Select = domain.SelectDisabled })
			},
			[]domain.RoomRequest{asks("urgent", 1, 2)},
			[]string{
				`urgent: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1, but it keeps 4: its policy never scales in`,
			},
		},
		"nor one whose group is being applied": {
			func(t *testing.T, f *fake) {
				f.shares(t, 0, 4, 1, "low")
				doc := documents[domain.GroupDocument](f)["low"]
				doc.Applying = true
				set(f, doc)
			},
			[]domain.RoomRequest{asks("urgent", 1, 2)},
			[]string{
				`urgent: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1, but it keeps 4: ` +
					`an apply of group "low" is in progress; if it was interrupted, the next apply completes it`,
			},
		},
		"the least important one": {
			func(t *testing.T, f *fake) { f.shares(t, -1, 2, 0, "lowest"); f.shares(t, 0, 2, 0, "low") },
			[]domain.RoomRequest{asks("urgent", 1, 2)}, []string{"urgent: lowest-worker-1 lowest-worker-0"},
		},
		"one after the other": {
			func(t *testing.T, f *fake) { f.shares(t, 0, 4, 0, "low") },
			[]domain.RoomRequest{asks("next", 1, 2), asks("first", 2, 2), asks("none", 1, 3)},
			[]string{
				"first: low-worker-3 low-worker-2", "next: low-worker-1 low-worker-0",
				"none: no role gives way: there would still be no room",
			},
		},
		"what can't be had keeps nobody": {
			func(t *testing.T, f *fake) { f.shares(t, 0, 4, 0, "low") },
			[]domain.RoomRequest{asks("huge", 9, 5), asks("next", 1, 1)},
			[]string{"huge: no role gives way: there would still be no room", "next: low-worker-3"},
		},
		"members on their way": {
			func(t *testing.T, f *fake) {
				f.shares(t, 0, 4, 0, "low")
				doc := documents[domain.GroupDocument](f)["low"]
				doc.Scaling, doc.Counts = true, map[string]int{"worker": 2}
				set(f, doc)
			},
			[]domain.RoomRequest{asks("urgent", 1, 2)}, []string{"urgent: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowded(4)
			test.prepare(t, f)
			if diff := cmp.Diff(test.want, f.share(t, test.requests...)); diff != "" {
				t.Errorf("who gives way (-want +got):\n%s", diff)
			}
		})
	}
}

// Members are removed from the host where room is needed. With guards.remove by index, all members
// down to those are removed.
func TestShareOfHosts(t *testing.T) {
	for name, test := range map[string]struct {
		order domain.RemovalOrder
		want  string
	}{
		"any":      {"", "urgent: low-worker-1 low-worker-0"},
		"by index": {domain.RemoveHighestIndex, "urgent: low-worker-3 low-worker-2 low-worker-1 low-worker-0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowded(2, 2)
			r := reconcile.Reconciler{Engine: f}
			low := sharer("low", 0, nil)
			low.Framework, low.Roles["master"] = "spark", domain.Role{Replicas: new(1)}
			must(t, r.Update(within(t), low))
			policy := idler("low", 0)
			policy.Guards.Remove = test.order
			set(f, domain.AutoscalingPolicyDocument{Header: domain.Header{Revision: 1}, Spec: policy})
			f.grow(t, "low", 1, 4)
			doc := documents[domain.GroupDocument](f)["low"]
			at := func(i int) string { return doc.Assignments[domain.MemberName("low", "worker", i)].Host }
			if at(2) != at(3) || at(0) == at(2) {
				t.Fatalf("the members are at %v", doc.Assignments)
			}
			urgent := asks("urgent", 1, 1)
			role := urgent.Spec.Roles["worker"]
			role.Resources.CPUs, role.Placement.Hosts = 2, []string{at(0)}
			urgent.Spec.Roles["worker"] = role
			if diff := cmp.Diff([]string{test.want}, f.share(t, urgent)); diff != "" {
				t.Errorf("who gives way (-want +got):\n%s", diff)
			}
		})
	}
}

// If the engine chooses which members are removed, only roles on a single host yield: with several, the
// wrong host might be freed.
func TestShareOfScattered(t *testing.T) {
	const stays = `urgent: no role gives way: role "worker" of group "low" has 4 members, and its policy needs 1, but it keeps 4: the engine chooses which members to remove, and may free another host`
	for name, test := range map[string]struct {
		hosts     []string
		schedules bool
		want      string
	}{
		"several hosts": {nil, true, stays},
		"one host":      {[]string{"a"}, true, "urgent: low-worker-3 low-worker-2"},
		"no choice":     {nil, false, "urgent: low-worker-3 low-worker-2"},
	} {
		f := crowded(4, 1)
		f.traits.Schedules = test.schedules
		low := sharer("low", 0, nil)
		worker := low.Roles["worker"]
		worker.Placement.Hosts = test.hosts
		low.Framework, low.Roles = "spark", map[string]domain.Role{"master": {Replicas: new(1)}, "worker": worker}
		must(t, reconcile.Reconciler{Engine: f}.Update(within(t), low))
		set(f, domain.AutoscalingPolicyDocument{Header: domain.Header{Revision: 1}, Spec: idler("low", 1)})
		f.grow(t, "low", 1, 4)
		urgent := asks("urgent", 1, 1)
		role := urgent.Spec.Roles["worker"]
		role.Resources.CPUs, role.Placement.Hosts = 2, []string{"a"}
		urgent.Spec.Roles["worker"] = role
		if diff := cmp.Diff([]string{test.want}, f.share(t, urgent)); diff != "" {
			t.Errorf("%s: who gives way (-want +got):\n%s", name, diff)
		}
		view := reconcile.View{
			Traits: f.traits, Inventory: engine.Inventory{Hosts: documents[domain.ClusterDocument](f)[""].Spec.Hosts},
		}
		if problems := reconcile.CheckRoom(view, low, idler("low", 1)); (len(problems) > 0) != (test.want == stays) ||
			problems.Err() != nil {
			t.Errorf("%s: the plan of its policy says %v", name, problems)
		}
	}
}

// Room is kept for a group that waits for a GPU, unless the only one can't be used.
func TestClaimOfGPU(t *testing.T) {
	for trouble, want := range map[string]int{"": 0, "fallen off the bus (XID 79)": 2} {
		f := crowded(4)
		withPool("GPU-a4")(f)
		f.shares(t, 0, 2, 1, "low")
		if trouble != "" {
			pool := documents[domain.GPUPoolDocument](f)["p"]
			pool.Trouble = map[string]string{"GPU-a4": trouble}
			set(f, pool)
		}
		urgent := asks("urgent", 1, 1)
		role := urgent.Spec.Roles["worker"]
		role.Resources.CPUs, role.GPUs = 2, &domain.GPURequest{Pool: "p"}
		urgent.Spec.Roles["worker"] = role
		urgent.Revision = 1
		set(f, urgent)
		more, short, err := reconcile.Reconciler{Engine: f}.Room(within(t), "low", "worker", 2)
		if more != want || err != nil {
			t.Errorf("with the trouble %q, there is room for %d, want %d: %s, %v", trouble, more, want, short, err)
		}
	}
}

// An apply stores a request, waits for roles to yield, and deletes the request once it has the room. Nobody else
// takes the room meanwhile.
func TestApplyWaitsForRoom(t *testing.T) {
	f := crowded(4)
	f.shares(t, 0, 4, 1, "low")
	r := reconcile.Reconciler{Engine: f}
	applied := make(chan error, 1)
	go func() { applied <- r.Update(within(t), sharer("urgent", 1, new(2))) }()
	f.awaits(t, func() bool { return len(documents[domain.RoomRequest](f)) == 1 })

	if more, short, err := r.Room(within(t), "low", "worker", 3); err != nil || more != 0 ||
		!strings.Contains(short, `(group "urgent", with priority 1, waits for room, too, and comes first)`) {
		t.Errorf("there is room for %d: %s, %v", more, short, err)
	}
	f.grow(t, "low", 4, 2)
	must(t, <-applied)
	if n := len(documents[domain.RoomRequest](f)); n > 0 {
		t.Errorf("%d requests are left", n)
	}
	f.expectStates(t, "low-worker-0 (running)", "low-worker-1 (running)", "urgent-worker-0 (running)",
		"urgent-worker-1 (running)")

	must(t, r.Destroy(within(t), "urgent"))
	if more, short, err := r.Room(within(t), "low", "worker", 3); err != nil || more != 2 ||
		!strings.Contains(short, "Not enough") && short == "" {
		t.Errorf("afterwards there is room for %d: %s, %v", more, short, err)
	}
}

// While somebody waits, neither a policy nor a later apply takes the room that was freed: the later apply queues up.
func TestRoomIsKeptForWhoWaits(t *testing.T) {
	f := crowded(4)
	f.shares(t, 0, 4, 1, "low")
	e, calls := recorded(f)
	applied := map[string]chan error{}
	for i, spec := range []domain.Group{sharer("first", 2, new(2)), sharer("next", 1, new(1))} {
		r := reconcile.Reconciler{Engine: []engine.Engine{f, e}[i]}
		done := make(chan error, 1)
		applied[spec.Name] = done
		go func() { done <- r.Update(within(t), spec) }()
		f.awaits(t, func() bool { return len(documents[domain.RoomRequest](f)) == i+1 })
	}
	f.grow(t, "low", 4, 3) // this would be enough for the next one
	tries := count(calls, "Inventory")
	f.awaits(t, func() bool { return count(calls, "Inventory") > tries+1 })
	f.grow(t, "low", 3, 2)
	must(t, <-applied["first"])
	f.grow(t, "low", 2, 1)
	must(t, <-applied["next"])
	f.expectStates(t, "first-worker-0 (running)", "first-worker-1 (running)", "low-worker-0 (running)",
		"next-worker-0 (running)")
}

// The timeout error of an apply says what it waited for.
func TestApplyWaitsInVain(t *testing.T) {
	f := crowded(4)
	f.shares(t, 0, 4, 1, "low")
	ctx, cancel := context.WithCancelCause(within(t))
	e, calls := recorded(f)
	r := reconcile.Reconciler{Engine: e}
	applied := make(chan error, 1)
	go func() { applied <- r.Update(ctx, sharer("urgent", 1, new(2))) }()
	f.awaits(t, func() bool { return len(documents[domain.RoomRequest](f)) == 1 })
	request := documents[domain.RoomRequest](f)["urgent"]
	request.Answer = "low stays"
	_, err := engine.Put(t.Context(), f, request)
	must(t, err)
	before := count(calls, "Get room-request")
	f.awaits(t, func() bool { return count(calls, "Get room-request") > before+1 })
	over := errors.New("time is over")
	cancel(over)
	err = <-applied
	var inVain *reconcile.RoomError
	if !errors.As(err, &inVain) || !errors.Is(err, over) || inVain.Answer != "low stays" ||
		!strings.Contains(err.Error(), "CPUs") {
		t.Errorf("the apply ended with %v", err)
	}
	if n := len(documents[domain.RoomRequest](f)); n > 0 || len(f.locks) > 0 {
		t.Errorf("%d requests are left, and the locks %v", n, f.locks)
	}
	if _, there := documents[domain.GroupDocument](f)["urgent"]; there {
		t.Error("something of the group is there")
	}
}

// If nobody could yield, an apply fails at once, and says what would help.
func TestApplyDoesNotWait(t *testing.T) {
	for name, test := range map[string]struct {
		low, least, priority, members int
		says                          string
	}{
		"a priority would help": {0, 1, 0, 2,
			`There would be room: role "worker" of group "low" has 4 members, and its policy needs 1. ` +
				`Roles under a policy give way to groups and sweeps with a higher priority: this one has 0, and would have room with 1`},
		"nothing would": {0, 3, 5, 2, "Not enough CPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			f := crowded(4)
			f.shares(t, test.low, 4, test.least, "low")
			err := reconcile.Reconciler{Engine: f}.Update(within(t), sharer("urgent", test.priority, &test.members))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the apply ended with %v", err)
			}
			if n := len(documents[domain.RoomRequest](f)); n > 0 {
				t.Errorf("%d requests are left", n)
			}
		})
	}
}

// The request of an apply that died is removed once nobody holds the lock of its group.
func TestAbandonedRequest(t *testing.T) {
	f := crowded(4)
	request := asks("urgent", 1, 2)
	request.Revision = 1
	set(f, request)
	r := reconcile.Reconciler{Engine: f, Controller: true}
	release, err := f.Lock(t.Context(), reconcile.GroupLock("urgent"), engine.Holder{Who: "an apply", Process: 1})
	must(t, err)
	if removed, err := r.Abandoned(t.Context(), request); removed || err != nil {
		t.Errorf("while an apply waits it is removed: %t, %v", removed, err)
	}
	must(t, release())
	if removed, err := r.Abandoned(t.Context(), request); !removed || err != nil ||
		len(documents[domain.RoomRequest](f)) > 0 {
		t.Errorf("afterwards it is removed: %t, %v", removed, err)
	}
}

// awaits polls until holds returns true.
func (f *fake) awaits(t *testing.T, holds func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("waited in vain")
		}
	}
}

// count returns how often a call was made.
func count(calls *recorder, name string) (n int) {
	for _, call := range calls.made() {
		if call == name {
			n++
		}
	}
	return n
}
