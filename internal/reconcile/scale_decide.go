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

// nearest returns the decision for count to, or for the count closest to it that is possible, and why to is not. It
// assumes that a smaller change is possible whenever a larger one is.
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

// decide returns the desired state of the group with another count of the role. Removed members keep their
// assignments until they are gone.
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

// indexes returns the indexes of the role's members for this count. New members fill gaps first.
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

// SchedulingOf returns who chooses the hosts of a role's members. If the engine does, it also chooses which ones are
// removed, which is unknown beforehand.
func SchedulingOf(traits engine.Traits, spec domain.Group, role string) domain.Scheduling {
	if traits.Schedules && topology.Interchangeable(spec, role) {
		return domain.SchedulingEngine
	}
	return domain.SchedulingPinned
}

// order returns the indexes of the role's members in the order of their removal. The chief is last, as the group would
// never complete without it.
func (s Scaling) order(traits engine.Traits, doc domain.GroupDocument, indexes []int) []int {
	order := slices.Sorted(slices.Values(indexes))
	slices.Reverse(order)
	if topology.HasIdentity(doc.Spec, s.Role) || SchedulingOf(traits, doc.Spec, s.Role) == domain.SchedulingEngine {
		return order
	}
	chief := Chief(doc)
	rank := func(i int) int {
		member := domain.MemberName(s.Group, s.Role, i)
		if member == chief {
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

// Chief returns the name of the member whose end completes a group; "" if there is none.
func Chief(doc domain.GroupDocument) string {
	rule := topology.Rule(doc.Spec, topology.Expand(doc.Spec, doc.Counts, doc.Absent))
	if rule.When != domain.WhenChief || len(rule.Members) == 0 {
		return ""
	}
	return rule.Members[0]
}

// restarts reports whether members that the previous decision has already have to restart.
func (d Decision) restarts(before Decision) bool {
	kept := d.Kept(before)
	return slices.ContainsFunc(before.Members, func(m domain.Member) bool {
		same, there := kept[m.Name]
		return there && !same
	})
}

// reasonOf returns the details of an error, without the attribute paths of problems.
func reasonOf(err error) string {
	problems, is := errors.AsType[domain.Problems](err)
	if !is {
		return err.Error()
	}
	var details []string
	for _, p := range problems {
		details = append(details, p.Detail)
	}
	return strings.Join(details, "; ")
}
