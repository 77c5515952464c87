package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/placement"
	"github.com/trainyard/terraform-provider-trainyard/internal/topology"
)

// Claim is what a request for room is going to get.
type Claim struct {
	Request domain.RoomRequest
	// Decision is the group with its places, Warnings are about it, and Gone are the members that have yet to be
	// removed for it, by policy key.
	Decision Decision
	Warnings domain.Problems
	Gone     map[string][]string
	// Refusal is why the room can't be had, even if all roles of lower priority yielded; nil if it can.
	Refusal error
	// Answer says in words what is done about it.
	Answer string
}

// without returns the view after these members are gone.
func (v View) without(roles []elastic, gone map[string]bool) View {
	if len(gone) == 0 {
		return v
	}
	groups := maps.Clone(v.Groups)
	for _, r := range roles {
		doc := groups[r.group]
		doc.Assignments = maps.Clone(doc.Assignments)
		maps.DeleteFunc(doc.Assignments, func(member string, _ domain.Assignment) bool { return gone[member] })
		groups[r.group] = doc
	}
	v.Groups = groups
	return v
}

// settled returns the view after members that are being removed are gone; they hold their places until then.
func (v View) settled() View {
	groups := maps.Clone(v.Groups)
	for name, doc := range groups {
		if !doc.Scaling {
			continue
		}
		places := make(map[string]domain.Assignment, len(doc.Assignments))
		for _, m := range topology.Expand(doc.Spec, doc.Counts, doc.Absent) {
			if at, placed := doc.Assignments[m.Name]; placed {
				places[m.Name] = at
			}
		}
		doc.Assignments = places
		groups[name] = doc
	}
	v.Groups = groups
	return v
}

// with returns the view with this document in it.
func (v View) with(doc domain.GroupDocument) View {
	v.Groups = maps.Clone(v.Groups)
	v.Groups[doc.Spec.Name] = doc
	return v
}

// WithClaims returns the view in which everyone who waits has what they can get.
func (v View) WithClaims(claims []Claim) View {
	for _, c := range claims {
		if c.Refusal == nil {
			v = v.with(c.Decision.Document)
		}
	}
	return v
}

// Claims returns what each request gets, in order, and which members are removed for it: no more than needed, and none
// for a request that can't be met.
func (v View) Claims(requests []domain.RoomRequest, y Yielders) []Claim {
	v = v.settled()
	roles, gone := v.elastics(y), map[string]bool{}
	claims := make([]Claim, 0, len(requests))
	for _, request := range requests {
		claim := Claim{Request: request, Gone: map[string][]string{}}
		next, found := v.yieldMost(request, roles, gone, &claim)
		if found {
			for _, r := range roles {
				for _, member := range slices.Backward(r.Members) {
					if next[member] && !gone[member] {
						claim.Gone[r.Key] = append(claim.Gone[r.Key], member)
					}
				}
			}
			gone = next
			v = v.with(claim.Decision.Document)
		}
		claims = append(claims, claim)
	}
	return claims
}

// yieldMost is [View.yield] for a group as a whole, or for as many runs of a sweep as possible.
func (v View) yieldMost(
	request domain.RoomRequest, roles []elastic, gone map[string]bool, claim *Claim,
) (next map[string]bool, found bool) {
	if !request.Sweep {
		return v.yield(request, roles, gone, claim)
	}
	next = gone
	_, runs, refusal := nearest(0, request.Runs(), func(runs int) (Decision, error) {
		some := Claim{Request: request}
		with, possible := v.yield(request.WithRuns(runs), roles, gone, &some)
		if possible {
			next, claim.Decision = with, some.Decision
		}
		return some.Decision, some.Refusal
	})
	if runs == 0 {
		claim.Refusal = refusal
	}
	return next, runs > 0
}

// yield finds out what a request gets, and returns the members that are gone then, including those in gone.
func (v View) yield(
	request domain.RoomRequest, roles []elastic, gone map[string]bool, claim *Claim,
) (next map[string]bool, found bool) {
	fits := func(more map[string]bool) bool {
		all := maps.Clone(gone)
		maps.Copy(all, more)
		decision, problems := v.without(roles, all).give(request)
		if err := problems.Err(); err != nil {
			claim.Refusal = err
			return false
		}
		claim.Decision, claim.Warnings, claim.Refusal = decision, problems, nil
		return true
	}
	if fits(nil) {
		return gone, true
	}
	lacks := claim.Refusal
	more, found := placement.Yield(below(roles, request.Spec.Priority, gone), fits)
	if !found || !fits(more) {
		claim.Refusal = lacks
		return gone, false
	}
	next = maps.Clone(gone)
	maps.Copy(next, more)
	return next, true
}

// Hint names the roles that would have room for a group but don't yield: their priority is not lower, or they can't at
// the moment. It returns "" if even those would not help.
func (v View) Hint(request domain.RoomRequest, y Yielders) string {
	v = v.settled()
	spec := request.Spec
	if request.Sweep {
		request = request.WithRuns(1)
	}
	roles := slices.DeleteFunc(v.elastics(y), func(r elastic) bool { return r.group == spec.Name })
	able := slices.Clone(roles)
	for i, r := range able {
		able[i].Priority, able[i].Least = spec.Priority-1, min(y.Policies[r.Key].Spec.Min, len(r.Members))
	}
	gone, found := placement.Yield(below(able, spec.Priority, nil), func(gone map[string]bool) bool {
		_, problems := v.without(able, gone).give(request)
		return problems.Err() == nil
	})
	if !found {
		return ""
	}
	enough := spec.Priority
	var hints []string
	for _, r := range roles {
		policy := y.Policies[r.Key].Spec
		has := fmt.Sprintf("role %q of group %q has %s, and its policy needs %d", policy.Role, r.group,
			counted(len(r.Members)), policy.Min)
		switch {
		case !slices.ContainsFunc(r.Members, func(member string) bool { return gone[member] }):
		case r.Priority >= spec.Priority:
			enough = max(enough, r.Priority+1)
			hints = append(hints, has)
		case r.stay.Why != "":
			hints = append(hints, fmt.Sprintf("%s, but it keeps %d: %s", has, r.Least, r.stay.Why))
		}
	}
	hint := strings.Join(hints, "; ")
	if enough > spec.Priority {
		hint += fmt.Sprintf(". Roles under a policy give way to groups and sweeps with a higher priority: this one "+
			"has %d, and would have room with %d", spec.Priority, enough)
	}
	return hint
}

// Yielded returns the view after members have gone, by policy key.
func (v View) Yielded(gone map[string][]string) View {
	v.Groups = maps.Clone(v.Groups)
	for key, members := range gone {
		group, role, _ := strings.Cut(key, "/")
		doc, there := v.Groups[group]
		if _, counts := doc.Counts[role]; !there || !counts {
			continue
		}
		doc.Assignments, doc.Counts, doc.Absent = maps.Clone(doc.Assignments), maps.Clone(doc.Counts),
			maps.Clone(doc.Absent)
		left := slices.DeleteFunc(doc.Indexes(role),
			func(i int) bool { return slices.Contains(members, domain.MemberName(group, role, i)) })
		for _, member := range members {
			delete(doc.Assignments, member)
		}
		doc.Counts[role] = len(left)
		if doc.Absent == nil {
			doc.Absent = map[string][]int{}
		}
		doc.Absent[role] = domain.Gaps(left)
		doc.Absent = absentIn(v.Traits, doc.Spec, doc.Counts, doc.Absent)
		v.Groups[group] = doc
	}
	return v
}

// counted returns a number of members in words.
func counted(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// Yields describes which roles yield for a claim, such as role "worker" of group "low" (4 to 2 members).
func (c Claim) Yields(view View) string {
	var roles []string
	for _, key := range slices.Sorted(maps.Keys(c.Gone)) {
		group, role, _ := strings.Cut(key, "/")
		count := view.Groups[group].Counts[role]
		roles = append(roles,
			fmt.Sprintf("role %q of group %q (%d to %s)", role, group, count, counted(count-len(c.Gone[key]))))
	}
	return strings.Join(roles, ", ")
}

// Share decides which roles yield to the requests for room. It returns what each request gets, and the counts
// of roles by policy key. Stays are counts that roles can't go below, in addition to those of groups that
// can't be scaled at present.
func (r Reconciler) Share(
	ctx context.Context, requests map[string]domain.RoomRequest, stays map[string]Stay,
) (claims []Claim, counts map[string]int, err error) {
	if len(requests) == 0 {
		return nil, nil, nil
	}
	now := r
	now.Engine = r.Engine.Snapshot()
	cluster, err := engine.Cluster(ctx, now.Engine)
	if err != nil {
		return nil, nil, err
	}
	turn := domain.InTurn(requests)
	asking := turn[0].Spec
	if i := slices.IndexFunc(turn, func(request domain.RoomRequest) bool { return usesGPUs(request.Spec) }); i >= 0 {
		asking = turn[i].Spec
	}
	view, err := now.View(ctx, cluster.Spec, asking)
	if err != nil {
		return nil, nil, err
	}
	if usesGPUs(asking) {
		found, err := now.Engine.GPUs(ctx)
		if err != nil {
			return nil, nil, err
		}
		view.Devices = DeviceStates(view.Pools, found, view.occupants())
	}
	y, err := now.Yielders(ctx)
	if err != nil {
		return nil, nil, err
	}
	for key, stay := range stays {
		if known, held := y.Stays[key]; !held || known.Count < stay.Count {
			y.Stays[key] = stay
		}
	}
	claims, counts = view.Claims(turn, y), map[string]int{}
	for key, doc := range y.Policies {
		counts[key] = view.Groups[doc.Spec.Group].Counts[doc.Spec.Role]
	}
	for i, c := range claims {
		claims[i].Answer = c.answer(view, y)
	}
	return claims, counts, nil
}

// answer says in words what is done about a claim.
func (c Claim) answer(view View, y Yielders) string {
	switch {
	case c.Refusal == nil && len(c.Gone) == 0:
		return "there is room"
	case c.Refusal == nil:
		return "will give way: " + c.Yields(view)
	}
	if hint := view.Hint(c.Request, y); hint != "" {
		return "no role gives way: " + hint
	}
	return "no role gives way: there would still be no room"
}

// claimsBefore returns what requests that come before a group get: those with a higher priority, or with the same one
// that have waited longer. A group that does not wait itself comes after all of its priority.
func (r Reconciler) claimsBefore(ctx context.Context, view View, group domain.Group) ([]Claim, error) {
	requests, err := engine.List[domain.RoomRequest](ctx, r.Engine)
	if err != nil || len(requests) == 0 {
		return nil, err
	}
	own := domain.RoomRequest{Spec: group, Since: time.Now()}
	if waiting, waits := requests[group.Name]; waits {
		own.Since = waiting.Since
	}
	turn := slices.DeleteFunc(domain.InTurn(requests),
		func(other domain.RoomRequest) bool { return other.Spec.Name == group.Name || other.Turn(own) >= 0 })
	if len(turn) == 0 {
		return nil, nil
	}
	return r.claimsOf(ctx, view, turn)
}

// claimsOf returns what the requests get, without those that can't be met.
func (r Reconciler) claimsOf(ctx context.Context, view View, turn []domain.RoomRequest) ([]Claim, error) {
	y, err := r.Yielders(ctx)
	if err != nil {
		return nil, err
	}
	if view.Pools == nil &&
		slices.ContainsFunc(turn, func(request domain.RoomRequest) bool { return usesGPUs(request.Spec) }) {
		if view.Pools, err = engine.List[domain.GPUPoolDocument](ctx, r.Engine); err != nil {
			return nil, err
		}
		view.Devices = nil // what the caller knows of no pools
	}
	if view.Devices == nil {
		view.Devices = lostDevices(troubleIn(view.Pools))
	}
	view.Pinned = false
	return slices.DeleteFunc(view.Claims(turn, y), func(c Claim) bool { return c.Refusal != nil }), nil
}

// claimants names who has claims, such as group "urgent", with priority 10.
func claimants(claims []Claim) string {
	var names []string
	for _, c := range claims {
		names = append(names, fmt.Sprintf("%s, with priority %d", c.Request.What(), c.Request.Spec.Priority))
	}
	return strings.Join(names, "; ")
}

// claimed adds to the reason for a lack of room that others wait for it and come first.
func claimed(reason string, claims []Claim) string {
	if len(claims) == 0 {
		return reason
	}
	return fmt.Sprintf("%s (%s, waits for room, too, and comes first)", reason, claimants(claims))
}

// Room returns for how many more members of a role there is room, at most this many, after requests of the same or a
// higher priority. short is what prevents more, or "".
func (r Reconciler) Room(ctx context.Context, group, role string, most int) (more int, short string, err error) {
	doc, err := engine.Get[domain.GroupDocument](ctx, r.Engine, group)
	if err != nil {
		return 0, "", err
	}
	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return 0, "", err
	}
	var found map[string]domain.HostGPUs
	if doc.Spec.Roles[role].GPUs != nil {
		if found, err = r.Engine.GPUs(ctx); err != nil {
			return 0, "", err
		}
	}
	from := doc.Counts[role]
	s := Scaling{Group: group, Role: role, From: from, To: from + most}
	view, claims, err := r.viewOfMore(ctx, s, doc.Spec, cluster.Spec, found)
	if err != nil {
		return 0, "", err
	}
	_, count, refusal := nearest(s.From, s.To, func(count int) (Decision, error) { return s.decide(view, doc, count) })
	if refusal != nil {
		short = claimed(summaryOf(refusal), claims)
	}
	return count - from, short, nil
}

// summaryOf returns an error in a few words.
func summaryOf(err error) string {
	problems, is := errors.AsType[domain.Problems](err)
	if !is || len(problems) == 0 {
		return err.Error()
	}
	return problems[0].Summary
}

// viewOfMore returns the view for placing further members of a role, with what others get before it.
func (r Reconciler) viewOfMore(
	ctx context.Context, s Scaling, spec domain.Group, cluster domain.Cluster, found map[string]domain.HostGPUs,
) (view View, claims []Claim, err error) {
	if view, err = r.View(ctx, cluster, spec); err != nil {
		return view, nil, err
	}
	view.Devices = lostDevices(troubleIn(view.Pools))
	if spec.Roles[s.Role].GPUs != nil {
		view.Devices = DeviceStates(view.Pools, found, view.Groups, view.Stored)
	}
	claims, err = r.claimsBefore(ctx, view, spec)
	view = view.WithClaims(claims)
	view.Pinned = true
	return view, claims, err
}
