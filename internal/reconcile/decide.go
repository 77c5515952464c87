// Package reconcile compares the desired state of a group with what is observed, and carries out the difference.
//
// The provider and the controller use the same functions: [Decide] computes the desired state from a specification,
// [Diff] lists the changes, and [Reconciler] carries them out.
package reconcile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// View is what was read of a cluster before a decision.
type View struct {
	Traits    engine.Traits
	Inventory engine.Inventory
	// Groups are the documents of the cluster's groups by name.
	Groups map[string]domain.GroupDocument
	// Sweeps are the resources that runs of sweeps hold, active or about to end, as a group document for each sweep.
	Sweeps map[string]domain.GroupDocument
	// Stored are the groups and sweeps as they were read. A plan takes those that it destroys out of Groups and Sweeps,
	// though their members run until the apply.
	Stored map[string]domain.GroupDocument
	// Pools are the documents of the cluster's GPU pools by name. Devices are the states of their devices by UUID: only
	// those in trouble, unless devices have to be chosen.
	Pools   map[string]domain.GPUPoolDocument
	Devices map[string]placement.DeviceState
	// Pinned keeps every member that has a place where it is; only the others are placed.
	Pinned bool
	// Sizes are the sizes that members of the group are to get, by role; nil for the stored ones.
	Sizes map[string]domain.Size
	// Leave names the members of the group that are to move off unusable devices, if there are
	// others; see [Group.Leaving].
	Leave []string
}

// occupants returns the documents of everything that has members: groups, and sweeps as groups.
func (v View) occupants() map[string]domain.GroupDocument {
	if len(v.Sweeps) == 0 {
		return v.Groups
	}
	all := maps.Clone(v.Sweeps)
	maps.Copy(all, v.Groups)
	return all
}

// sized returns the documents with the resources that members request when they start.
func sized(documents map[string]domain.GroupDocument) map[string]domain.GroupDocument {
	all := make(map[string]domain.GroupDocument, len(documents))
	for name, doc := range documents {
		doc.Spec = doc.Sized()
		all[name] = doc
	}
	return all
}

// Decision is the desired state of a group.
type Decision struct {
	// Document is the group's next document, based on the revision that it names.
	Document domain.GroupDocument
	// Members are the group's members with their hosts and addresses.
	Members []domain.Member
	// Layout renders the members' specifications.
	Layout *topology.Layout
	// inform holds the engine-scheduled roles whose placement or update rule the engine has to be given again: they
	// changed, or the last apply did not finish.
	inform map[string]bool
	// retryFailed is set if the last apply did not finish: this one gives failed members another run.
	retryFailed bool
}

// Decide returns the desired state of the group, given what the cluster offers and what was decided before.
func Decide(view View, spec domain.Group) (Decision, domain.Problems) {
	members, problems := topology.Check(spec)
	if problems.Err() != nil {
		return Decision{}, problems
	}
	if view.Traits.Schedules {
		problems = append(problems, topology.ValidatePools(spec, members)...)
	}
	previous := view.Groups[spec.Name]
	counts := topology.Counts(spec, previous.Counts)
	absent := absentIn(view.Traits, spec, counts, previous.Absent)
	if len(absent) > 0 || !maps.Equal(counts, topology.Counts(spec, nil)) { // differ from the declared ones
		members = topology.Expand(spec, counts, absent)
	}
	if _, taken := view.Sweeps[spec.Name]; taken {
		problems.Add(domain.Path{"name"}, "Name in use",
			"cluster %q has a sweep %q, whose runs are members of a group of that name; choose another name",
			spec.Cluster, spec.Name)
	}
	checkNames(&problems, view.occupants(), spec.Name, members)
	checkTaken(&problems, view, spec, members)
	problems = append(problems, placement.CheckSpread(spec, previous.Spec, view.Inventory.Hosts)...)
	sizes := view.Sizes
	if sizes == nil {
		sizes = sizesIn(spec, previous)
	}
	in := view.input(domain.GroupDocument{Spec: spec, Sizes: sizes}.Sized(), members)
	in.Current = previous.Assignments
	assignments, unplaced := place(in, view.Leave)
	problems = append(problems, unplaced...)
	if problems.Err() != nil {
		return Decision{}, problems
	}
	next := domain.GroupDocument{
		Header:        previous.Header,
		Spec:          spec,
		Counts:        counts,
		Absent:        absent,
		Scaled:        scaledIn(spec, previous.Scaled),
		Sizes:         sizes,
		MinRun:        max(previous.MinRun, 1),
		EarlierRuns:   previous.EarlierRuns,
		GroupRestarts: previous.GroupRestarts,
		StartedAt:     previous.StartedAt,
		Assignments:   assignments,
		Before:        fallback(previous, spec),
	}
	switch {
	case previous.Revision == 0:
	case !maps.Equal(previous.Spec.Triggers, spec.Triggers):
		next.Rerun()
	case !previous.Spec.Equal(spec):
		next.GroupRestarts, next.StartedAt = 0, nil // the restart budget belongs to a specification
	}
	checkSize(&problems, view.Traits, next)
	decision := placed(view, next, members)
	decision.retryFailed = previous.Applying
	decision.inform = map[string]bool{}
	for name, now := range spec.Roles {
		before, distributed := previous.Spec.Roles[name],
			SchedulingOf(view.Traits, spec, name) == domain.SchedulingEngine
		decision.inform[name] = distributed &&
			(previous.Applying || !samePlaces(before.Placement, now.Placement) || !before.Update.Equal(now.Update))
	}
	return decision, problems
}

// input returns the input for placing members of a group.
func (v View) input(group domain.Group, members []domain.Member) placement.Input {
	return placement.Input{
		Group:         group,
		Members:       members,
		Hosts:         v.Inventory.Hosts,
		SharedAddress: v.Traits.MemberAddress == nil,
		Images:        v.Traits.Supports.Images,
		BusyPorts:     v.Inventory.BusyPorts,
		Closed:        v.Inventory.Closed,
		Reserved:      v.Inventory.Reserved,
		Room:          v.Inventory.Addresses,
		Pools:         v.Pools,
		Devices:       v.Devices,
		Groups:        sized(v.occupants()),
		Pinned:        v.Pinned,
	}
}

// absentIn returns the indexes that roles leave out, starting from the stored ones. Engine-scheduled members get their
// indexes from the engine.
func absentIn(
	traits engine.Traits, spec domain.Group, counts map[string]int, stored map[string][]int,
) map[string][]int {
	stored = maps.Clone(stored)
	maps.DeleteFunc(stored,
		func(role string, _ []int) bool { return SchedulingOf(traits, spec, role) == domain.SchedulingEngine })
	return topology.Absent(spec, counts, stored)
}

// scaledIn returns the last scaling of each role whose count belongs to a policy.
func scaledIn(spec domain.Group, stored map[string]domain.Scaled) map[string]domain.Scaled {
	scaled := maps.Clone(stored)
	maps.DeleteFunc(scaled, func(name string, _ domain.Scaled) bool {
		role, found := spec.Roles[name]
		return !found || role.Replicas != nil
	})
	if len(scaled) == 0 {
		return nil
	}
	return scaled
}

// sizesIn returns the sizes that policies have set, for roles that still exist. A newly
// declared value takes precedence.
func sizesIn(spec domain.Group, previous domain.GroupDocument) map[string]domain.Size {
	var sizes map[string]domain.Size
	for name, size := range previous.Sizes {
		role, found := spec.Roles[name]
		now, before := role.Resources, previous.Spec.Roles[name].Resources
		if now.CPUs != before.CPUs || now.Limits.CPUs != before.Limits.CPUs {
			size.CPUs = 0
		}
		if now.MemoryMiB != before.MemoryMiB || now.Limits.MemoryMiB != before.Limits.MemoryMiB {
			size.MemoryMiB = 0
		}
		if found && size.Resources != (domain.Resources{}) {
			if sizes == nil {
				sizes = map[string]domain.Size{}
			}
			sizes[name] = size
		}
	}
	return sizes
}

// fallback returns the document to roll back to if this change fails: the last one under which the members ran. It is
// nil if no role asks for rollback.
func fallback(previous domain.GroupDocument, spec domain.Group) *domain.GroupDocument {
	wanted := false
	for _, role := range spec.Roles {
		wanted = wanted || role.Update.OnFailure == domain.UpdateRollback
	}
	switch {
	case !wanted || previous.Revision == 0:
		return nil
	case previous.Applying:
		return previous.Before
	}
	previous.Before = nil
	return &previous
}

// checkSize adds a problem if a document is larger than the engine can store.
func checkSize(problems *domain.Problems, traits engine.Traits, document domain.GroupDocument) {
	if traits.MaxItem == 0 {
		return
	}
	document.Applying = true
	data, err := json.Marshal(document)
	switch {
	case err != nil:
		problems.Add(nil, "Group can't be stored", "%v", err)
	case len(data) > traits.MaxItem && document.Before != nil:
		problems.Add(nil, "Group too large",
			"the stored group takes %d bytes, including the specification to roll back to, and a cluster of engine "+
				"%q stores at most %d: "+
				"shrink its configs, environment and commands, move them into the image or onto the hosts, or leave "+
				"out update.on_failure = %q",
			len(data), traits.Name, traits.MaxItem, domain.UpdateRollback)
	case len(data) > traits.MaxItem:
		problems.Add(nil, "Group too large",
			"the stored group takes %d bytes, and a cluster of engine %q stores at most %d: "+
				"shrink its configs, environment and commands, or move them into the image or onto the hosts", len(
				data,
			),
			traits.Name, traits.MaxItem)
	}
}

// samePlaces reports whether two placements allow the same hosts and distribute members the same way.
func samePlaces(a, b domain.Placement) bool {
	return cmp.Or(a.Strategy, domain.Spread) == cmp.Or(b.Strategy, domain.Spread) && a.SpreadBy == b.SpreadBy &&
		maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(slices.Sorted(slices.Values(a.Hosts)), slices.Sorted(slices.Values(b.Hosts)))
}

// checkNames adds a problem if a member would have the name of another group's: group a-b with role c makes the same
// names as group a with role b-c.
func checkNames(
	problems *domain.Problems, groups map[string]domain.GroupDocument, group string, members []domain.Member,
) {
	for _, other := range slices.Sorted(maps.Keys(groups)) {
		if other == group {
			continue
		}
		for _, m := range members {
			if _, taken := groups[other].Assignments[m.Name]; taken {
				problems.Add(domain.Path{"roles", domain.Key(m.Role)}, "Member name in use",
					"a member would be named %q, but group %q of this cluster already has a member of that name; "+
						"rename the group or the role", m.Name, other)
				break
			}
		}
	}
}

// checkTaken adds a problem if the name of a member, or of a pool of members, is taken by something that is not ours.
func checkTaken(problems *domain.Problems, view View, spec domain.Group, members []domain.Member) {
	reported := map[string]bool{}
	for _, m := range members {
		name := m.Name
		if SchedulingOf(view.Traits, spec, m.Role) == domain.SchedulingEngine {
			name = domain.PoolName(spec.Name, m.Role)
		}
		if whose, taken := view.Inventory.Taken[name]; taken && !reported[m.Role] {
			reported[m.Role] = true
			problems.Add(domain.Path{"roles", domain.Key(m.Role)}, "Member name in use",
				"%q is the name of %s: remove that, or rename the group or the role", name, whose)
		}
	}
}

// Current returns the decision that a stored document stands for.
func Current(traits engine.Traits, hosts map[string]domain.Host, doc domain.GroupDocument) Decision {
	return decisionOf(View{Traits: traits, Inventory: engine.Inventory{Hosts: hosts}}, doc)
}

func decisionOf(view View, doc domain.GroupDocument) Decision {
	return placed(view, doc, topology.Expand(doc.Spec, doc.Counts, doc.Absent))
}

// placed returns the decision for a document with these members, and fills in where the members are.
func placed(view View, doc domain.GroupDocument, members []domain.Member) Decision {
	for i := range members {
		assigned := doc.Assignments[members[i].Name]
		scheduling := SchedulingOf(view.Traits, doc.Spec, members[i].Role)
		host, name := view.Inventory.Hosts[assigned.Host].MemberAddress(), members[i].Name
		if scheduling == domain.SchedulingEngine {
			name = domain.PoolName(doc.Spec.Name, members[i].Role)
		}
		if view.Traits.MemberAddress != nil {
			host = view.Traits.MemberAddress(name)
		}
		members[i].Place(scheduling, assigned, host)
	}
	return Decision{
		Document: doc, Members: members,
		Layout: topology.NewLayout(doc.Spec, members, view.Traits.FilesOf).Sized(doc.Sizes),
	}
}

// KeptIn returns the names of the members that the decision leaves as they are in the stored document.
func (d Decision) KeptIn(view View) map[string]bool {
	before := view.Groups[d.Document.Spec.Name]
	if !sameMembers(d.Document, before) {
		return d.Kept(decisionOf(view, before))
	}
	kept := make(map[string]bool, len(d.Members))
	for _, m := range d.Members {
		kept[m.Name] = true
	}
	return kept
}

// sameMembers reports whether two documents stand for the same members in the same run.
func sameMembers(a, b domain.GroupDocument) bool {
	return a.MinRun == b.MinRun && maps.Equal(a.Counts, b.Counts) && maps.EqualFunc(a.Absent, b.Absent, slices.Equal) &&
		maps.Equal(a.Assignments, b.Assignments) && a.Spec.Equal(b.Spec)
}

// Kept returns the names of the members that the decision leaves as they are in the previous decision.
func (d Decision) Kept(before Decision) map[string]bool {
	kept := map[string]bool{}
	if d.Document.MinRun != before.Document.MinRun {
		return kept
	}
	if slices.Equal(d.Members, before.Members) && d.Document.Spec.Equal(before.Document.Spec) {
		for _, m := range d.Members {
			kept[m.Name] = true
		}
		return kept // saves hashing all of them
	}
	hashes := make(map[string]string, len(before.Members))
	for i, m := range before.Members {
		hashes[m.Name] = before.Layout.Hash(i)
	}
	for i, m := range d.Members {
		kept[m.Name] = d.Layout.Hash(i) == hashes[m.Name]
	}
	return kept
}

// Rule returns the group's completion rule.
func (d Decision) Rule() domain.CompletionRule {
	return topology.Rule(d.Document.Spec, d.Members)
}

// names returns the names of the members, in order.
func (d Decision) names() []string {
	names := make([]string, len(d.Members))
	for i, m := range d.Members {
		names[i] = m.Name
	}
	return names
}

// places returns the assignments of the members, without those of members that are being removed.
func (d Decision) places() map[string]domain.Assignment {
	places := make(map[string]domain.Assignment, len(d.Members))
	for _, m := range d.Members {
		if at, placed := d.Document.Assignments[m.Name]; placed {
			places[m.Name] = at
		}
	}
	return places
}

// withLeaving returns the assignments with the stored ones of observed members that the decision removes: they hold
// their places until they are gone.
func (d Decision) withLeaving(
	stored map[string]domain.Assignment, observed []domain.Observed,
) map[string]domain.Assignment {
	all := maps.Clone(d.Document.Assignments)
	for _, o := range observed {
		at, had := stored[o.Name]
		if _, stays := all[o.Name]; had && !stays {
			all[o.Name] = at
		}
	}
	return all
}
