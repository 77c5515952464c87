package reconcile

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// nearest returns the decision for the count that is asked for, or for the nearest to it for which there is one, where
// one for fewer changes is possible whenever that for more is; and why not what is asked for.
func nearest(from, to int, decide func(count int) (Decision, error)) (d Decision, count int, refusal error) {
	if d, refusal = decide(to); refusal == nil {
		return d, to, nil
	}
	possible, impossible := from, to
	for possible-impossible > 1 || impossible-possible > 1 {
		middle := (possible + impossible) / 2
		if next, err := decide(middle); err == nil {
			d, possible = next, middle
		} else {
			impossible = middle
		}
	}
	return d, possible, refusal
}

// decide returns what the group should be with another count of the role. Members that go keep what they were assigned
// until they are gone.
func (s Scaling) decide(view View, previous domain.GroupDocument, count int) (d Decision, err error) {
	next := previous
	next.Counts, next.Absent = maps.Clone(previous.Counts), maps.Clone(previous.Absent)
	if next.Absent == nil {
		next.Absent = map[string][]int{}
	}
	next.Counts[s.Role], next.Absent[s.Role] = count, domain.Gaps(s.indexes(view.Traits, previous, count))
	next.Absent = absentIn(view.Traits, next.Spec, next.Counts, next.Absent)
	if err := topology.ValidateCounts(next.Spec, next.Counts, next.Absent).Err(); err != nil {
		return d, err
	}
	if count > s.From {
		groups := maps.Clone(view.Groups)
		groups[s.Group] = next
		view.Groups = groups
		placed, problems := Decide(view, next.Spec)
		if err := problems.Err(); err != nil {
			return d, err
		}
		next.Assignments = placed.Document.Assignments
	}
	d = decisionOf(view, next)
	rendered := map[string]bool{}
	for i, m := range d.Members {
		if !rendered[m.Role] {
			rendered[m.Role] = true
			if _, err := d.Layout.Spec(i); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

// indexes returns those of the role's members once there are this many: further ones fill gaps first.
func (s Scaling) indexes(traits engine.Traits, doc domain.GroupDocument, count int) []int {
	indexes := doc.Indexes(s.Role)
	for i := 0; len(indexes) < count; i++ {
		if !slices.Contains(indexes, i) {
			indexes = append(indexes, i)
		}
	}
	going := s.order(traits, doc, indexes)[:max(len(indexes)-count, 0)]
	return slices.DeleteFunc(indexes, func(i int) bool { return slices.Contains(going, i) })
}

// SchedulingOf returns who chooses the hosts of a role's members. Where the engine does, it also chooses those that go:
// nobody knows before which they are.
func SchedulingOf(traits engine.Traits, spec domain.Group, role string) domain.Scheduling {
	if traits.Schedules && topology.Interchangeable(spec, role) {
		return domain.SchedulingEngine
	}
	return domain.SchedulingPinned
}

// order returns the indexes of the role's members in the order in which they go. Without its chief a group would never
// complete.
func (s Scaling) order(traits engine.Traits, doc domain.GroupDocument, indexes []int) []int {
	order := slices.Sorted(slices.Values(indexes))
	slices.Reverse(order)
	if topology.HasIdentity(doc.Spec, s.Role) || SchedulingOf(traits, doc.Spec, s.Role) == domain.SchedulingEngine {
		return order
	}
	rule := topology.Rule(doc.Spec, topology.Expand(doc.Spec, doc.Counts, doc.Absent))
	rank := func(i int) int {
		member := domain.MemberName(s.Group, s.Role, i)
		if rule.When == domain.WhenChief && slices.Contains(rule.Members, member) {
			return len(s.Remove) + 1
		}
		if at := slices.Index(s.Remove, member); at >= 0 {
			return at
		}
		return len(s.Remove)
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	return order
}

// restarts reports whether members have to start again that the decision before it has already.
func (d Decision) restarts(before Decision) bool {
	kept := d.Kept(before)
	return slices.ContainsFunc(before.Members, func(m domain.Member) bool {
		same, there := kept[m.Name]
		return there && !same
	})
}

// reasonOf returns an error in words, without the attributes to which it leads.
func reasonOf(err error) string {
	problems, is := errors.AsType[domain.Problems](err)
	if !is {
		return err.Error()
	}
	var said []string
	for _, p := range problems {
		said = append(said, p.Detail)
	}
	return strings.Join(said, "; ")
}
