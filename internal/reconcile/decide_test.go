package reconcile_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lab returns a view of a one-host cluster with these groups.
func lab(docs ...domain.GroupDocument) reconcile.View {
	view := reconcile.View{
		Traits: engine.Traits{Name: "fake"},
		Inventory: engine.Inventory{
			Hosts: map[string]domain.Host{
				"a": {Address: "10.0.0.1", Capacity: domain.Capacity{CPUs: 8, MemoryMiB: 1024}},
			},
		},
		Groups: map[string]domain.GroupDocument{},
	}
	for _, doc := range docs {
		view.Groups[doc.Spec.Name] = doc
	}
	return view
}

// decide calls Decide, and fails the test on any problem.
func decide(t *testing.T, view reconcile.View, spec domain.Group) reconcile.Decision {
	t.Helper()
	d, problems := reconcile.Decide(view, spec)
	must(t, problems.Err())
	return d
}

// stored returns the document decided for a group, as stored at this revision after a successful apply.
func stored(t *testing.T, spec domain.Group, revision int) domain.GroupDocument {
	t.Helper()
	doc := decide(t, lab(), spec).Document
	doc.Revision = revision
	return doc
}

func TestDecideNew(t *testing.T) {
	d := decide(t, lab(), group(1, 2, role("ps", func(r *domain.Role) { r.Port = new(8000) })))
	want := domain.GroupDocument{
		MinRun: 1, Spec: d.Document.Spec,
		Counts: map[string]int{"ps": 1, "worker": 2},
		Assignments: map[string]domain.Assignment{
			"mnist-ps-0": {Host: "a", Port: 8000}, "mnist-worker-0": {Host: "a", Port: 20000},
			"mnist-worker-1": {Host: "a", Port: 20001},
		},
	}
	if diff := cmp.Diff(want, d.Document); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	members := []domain.Member{
		{
			Name: "mnist-ps-0", Role: "ps", Scheduling: domain.SchedulingPinned, Host: "a", Port: 8000,
			Address: "10.0.0.1:8000",
		},
		{
			Name: "mnist-worker-0", Role: "worker", Scheduling: domain.SchedulingPinned, Host: "a", Port: 20000,
			Address: "10.0.0.1:20000",
		},
		{
			Name: "mnist-worker-1", Role: "worker", Index: 1, Scheduling: domain.SchedulingPinned, Host: "a",
			Port: 20001, Address: "10.0.0.1:20001",
		},
	}
	if diff := cmp.Diff(members, d.Members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if rule := d.Rule(); !cmp.Equal(rule.Members, []string{"mnist-worker-0"}) || rule.When != domain.WhenChief {
		t.Errorf("the completion rule is %+v", rule)
	}
}

// TestDecideWithNamedMembers covers engines that give each member an address.
func TestDecideWithNamedMembers(t *testing.T) {
	view := lab()
	view.Traits.MemberAddress = func(member string) string { return member + ".lab" }
	for _, m := range decide(t, view, group(1, 2)).Members {
		if want := m.Name + ".lab:20000"; m.Address != want {
			t.Errorf("%s is at %s, not %s", m.Name, m.Address, want)
		}
	}
}

func TestDecideAgain(t *testing.T) {
	previous := stored(t, group(1, 2, trigger("v1")), 7)
	previous.MinRun, previous.GroupRestarts, previous.StartedAt = 4, 2, new(epoch)
	// Members keep their places, even if a new group would be placed differently.
	previous.Assignments["mnist-worker-0"] = domain.Assignment{Host: "a", Port: 20500}

	for name, c := range map[string]struct {
		spec domain.Group
		// change turns the previous document into the expected one.
		change func(want *domain.GroupDocument)
	}{
		"unchanged": {group(1, 2, trigger("v1")), func(*domain.GroupDocument) {}},
		"grown": {group(1, 3, trigger("v1")), func(want *domain.GroupDocument) {
			want.GroupRestarts, want.StartedAt = 0, nil
			want.Counts = map[string]int{"ps": 1, "worker": 3}
			want.Assignments["mnist-worker-2"] = domain.Assignment{Host: "a", Port: 20001}
		}},
		"shrunk": {group(1, 1, trigger("v1")), func(want *domain.GroupDocument) {
			want.GroupRestarts, want.StartedAt = 0, nil
			want.Counts = map[string]int{"ps": 1, "worker": 1}
			delete(want.Assignments, "mnist-worker-1")
		}},
		"another trigger": {group(1, 2, trigger("v2")), func(want *domain.GroupDocument) {
			want.MinRun, want.GroupRestarts, want.StartedAt = 8, 0, nil
		}},
		"no trigger any more": {group(1, 2), func(want *domain.GroupDocument) {
			want.MinRun, want.GroupRestarts, want.StartedAt = 8, 0, nil
		}},
		"another command": {
			group(1, 2, trigger("v1"), func(g *domain.Group) { g.Command = []string{"other"} }),
			func(want *domain.GroupDocument) { want.GroupRestarts, want.StartedAt = 0, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := previous
			want.Assignments = maps.Clone(previous.Assignments)
			want.Spec = c.spec
			c.change(&want)
			if diff := cmp.Diff(want, decide(t, lab(previous), c.spec).Document); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecideAfterTriggersOfADeadApply: a trigger counts from the first apply that stored it.
func TestDecideAfterTriggersOfADeadApply(t *testing.T) {
	first := decide(t, lab(), group(1, 1, trigger("v1"))).Document
	if first.MinRun != 1 {
		t.Errorf("a new group with triggers has to run since run %d", first.MinRun)
	}
	first.Revision, first.Applying = 1, true
	if again := decide(t, lab(first), group(1, 1, trigger("v1"))).Document; again.MinRun != 1 || again.Applying {
		t.Errorf("the next apply decides on %+v", again)
	}
}

func TestDecideUnmanagedReplicas(t *testing.T) {
	unmanaged := group(1, 2, role("worker", func(r *domain.Role) { r.Replicas = nil }))
	if d := decide(t, lab(), unmanaged); d.Document.Counts["worker"] != 1 {
		t.Errorf("a new role of unmanaged size has %d members", d.Document.Counts["worker"])
	}
	previous := stored(t, group(1, 3), 2)
	if d := decide(t, lab(previous), unmanaged); d.Document.Counts["worker"] != 3 || len(d.Members) != 4 {
		t.Errorf("a role that had 3 members has %d now, of %v", d.Document.Counts["worker"], d.Members)
	}
}

// named returns the view with a name taken by somebody else's service.
func named(view reconcile.View, name string) reconcile.View {
	view.Inventory.Taken = map[string]string{name: "a service of somebody else's"}
	return view
}

// distributing returns the view for an engine that schedules interchangeable members itself.
func distributing(view reconcile.View) reconcile.View {
	view.Traits.Schedules = true
	return view
}

func TestDecideProblems(t *testing.T) {
	greedy := role("worker", func(r *domain.Role) { r.Resources.CPUs = 3 })
	other := stored(t, group(1, 2, greedy, func(g *domain.Group) { g.Name = "other" }), 1)
	for name, c := range map[string]struct {
		view    reconcile.View
		spec    domain.Group
		summary string
	}{
		"the specification itself": {lab(), group(1, 0), "Missing role"},
		"no room":                  {lab(), group(1, 3, greedy), "Not enough CPUs"},
		"no room beside another":   {lab(other), group(1, 1, greedy), "Not enough CPUs"},
		"no hosts":                 {reconcile.View{}, group(1, 1), "No hosts"},
		"a member's name of another": {
			lab(stored(t, group(1, 1, func(g *domain.Group) { g.Name = "mnist-a" }), 1), other),
			group(1, 1, func(g *domain.Group) {
				g.Framework, g.Roles = "none", map[string]domain.Role{"a-ps": {}, "a-other": {}}
			}),
			"Member name in use",
		},
		"a member's name of somebody else": {
			named(lab(), "mnist-worker-1"), group(1, 2), "Member name in use",
		},
		"a pool's name of somebody else": {
			named(distributing(lab()), "mnist-worker"), group(1, 2, func(g *domain.Group) {
				g.Framework = "spark"
				g.Roles["master"] = g.Roles["ps"]
				delete(g.Roles, "ps")
			}), "Member name in use",
		},
		"a port of another": {
			lab(other), group(1, 1, role("ps", func(r *domain.Role) { r.Port = new(20000) })),
			"Port taken by another group",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := reconcile.Decide(c.view, c.spec)
			if len(problems) != 1 || problems[0].Summary != c.summary || problems[0].Warning {
				t.Errorf("the problems are %v; there should be one: %s", problems, c.summary)
			}
			if d.Document.Spec.Name != "" || d.Members != nil || d.Layout != nil {
				t.Errorf("beside problems there is a decision: %+v", d)
			}
		})
	}
}

// TestDecideKnowsTheInventory: the state of the hosts applies to new members; existing ones stay.
func TestDecideKnowsTheInventory(t *testing.T) {
	one := role("worker", func(r *domain.Role) { r.Resources.CPUs = 1 })
	for name, c := range map[string]struct {
		change func(inventory *engine.Inventory)
		want   string
	}{
		"a host that is down": {
			func(i *engine.Inventory) { i.Closed = map[string]string{"a": "host a is down"} }, "host a is down",
		},
		"what others have reserved": {
			func(i *engine.Inventory) { i.Reserved = map[string]domain.Resources{"a": {CPUs: 6}} },
			"6 reserved by other services",
		},
		"a network without any room": {func(i *engine.Inventory) { i.Addresses = 3 }, "addresses for 3 members"},
	} {
		t.Run(name, func(t *testing.T) {
			previous := stored(t, group(1, 2, one), 2)
			view := lab(previous)
			c.change(&view.Inventory)
			if diff := cmp.Diff(previous, decide(t, view, previous.Spec).Document); diff != "" {
				t.Errorf("what is there was decided anew (-before +after):\n%s", diff)
			}
			changed := decide(t, view, group(1, 2, one, func(g *domain.Group) { g.Command = []string{"other"} }))
			if diff := cmp.Diff(previous.Assignments, changed.Document.Assignments); diff != "" {
				t.Errorf("a new command moved members (-before +after):\n%s", diff)
			}
			_, problems := reconcile.Decide(view, group(1, 4, one))
			if err := problems.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("two further workers: %v", err)
			}
		})
	}
}

// spreadBy sets the label by which the workers are spread.
func spreadBy(g domain.Group, label string) domain.Group {
	role("worker", func(r *domain.Role) { r.Placement.SpreadBy = label })(&g)
	return g
}

// inRacks returns the view with a label rack on each host, with a different value on each.
func inRacks(view reconcile.View) reconcile.View {
	hosts := map[string]domain.Host{}
	for name, host := range view.Inventory.Hosts {
		host.Labels = map[string]string{"rack": "of " + name}
		hosts[name] = host
	}
	view.Inventory.Hosts = hosts
	return view
}

// TestDecideSpreadBy: changing the label to spread by moves and restarts nobody. A label that no host has is refused,
// unless the hosts lost it after it was accepted.
func TestDecideSpreadBy(t *testing.T) {
	before := decide(t, lab(), group(1, 2))
	document := before.Document
	document.Revision = 1
	spec := spreadBy(group(1, 2), "rack")
	after := decide(t, inRacks(lab(document)), spec)
	if diff := cmp.Diff(before.Document.Assignments, after.Document.Assignments); diff != "" {
		t.Errorf("members are moved (-before +after):\n%s", diff)
	}
	if changes := reconcile.Diff(after, observe(before, 1)); len(changes) > 0 {
		t.Errorf("the changes are %+v", changes)
	}
	const at = `roles["worker"].placement.spread_by`
	if _, problems := reconcile.Decide(lab(document), spec); len(problems) != 1 || problems[0].Warning ||
		problems[0].Path.String() != at {
		t.Errorf("a label of no host: %v", problems)
	}
	after.Document.Revision = 2
	lost, problems := reconcile.Decide(lab(after.Document), spreadBy(group(1, 3), "rack"))
	if len(problems) != 1 || !problems[0].Warning || problems[0].Path.String() != at || len(lost.Members) != 4 {
		t.Errorf("a label that hosts have lost: %d members, %v", len(lost.Members), problems)
	}
}

// TestDecideKnowsWhatFits: the plan rejects a document that is too large for the engine.
func TestDecideKnowsWhatFits(t *testing.T) {
	large := func(changes ...func(g *domain.Group)) domain.Group {
		return group(1, 2,
			append(changes, func(g *domain.Group) { g.Env = map[string]string{"LARGE": strings.Repeat("x", 3000)} })...)
	}
	view := lab()
	before := stored(t, large(), 2)
	for name, c := range map[string]struct {
		most    int
		stored  *domain.GroupDocument
		spec    domain.Group
		refused string
	}{
		"no bound":          {0, nil, large(), ""},
		"fits":              {5000, nil, large(), ""},
		"too large":         {3000, nil, large(), "stores at most 3000"},
		"fits over another": {5000, &before, large(), ""},
		"with what it goes back to": {
			5000, &before, updated(large(), domain.Update{OnFailure: domain.UpdateRollback}),
			`leave out update.on_failure = "rollback"`,
		},
	} {
		view.Traits.MaxItem = c.most
		view.Groups = map[string]domain.GroupDocument{}
		if c.stored != nil {
			view.Groups["mnist"] = *c.stored
		}
		_, problems := reconcile.Decide(view, c.spec)
		if err := problems.Err(); (err == nil) != (c.refused == "") ||
			err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecideAsStored: the decision for a stored document equals the one that was stored.
func TestDecideAsStored(t *testing.T) {
	view := lab()
	decided := decide(t, view, group(1, 2))
	current := reconcile.Current(view.Traits, view.Inventory.Hosts, decided.Document)
	if diff := cmp.Diff(decided.Members, current.Members); diff != "" {
		t.Errorf("members (-decided +stored):\n%s", diff)
	}
	for i, m := range decided.Members {
		if decided.Layout.Hash(i) != current.Layout.Hash(i) {
			t.Errorf("%s has another hash when it is read", m.Name)
		}
	}
}
