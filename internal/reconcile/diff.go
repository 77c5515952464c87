package reconcile

import (
	"cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Action is what a change does to a member.
type Action string

// The actions on a member.
const (
	ActionStart   Action = "start"
	ActionRestart Action = "restart"
	// ActionMend restores a member's specification within its present run. The member restarts only if it has to.
	ActionMend   Action = "mend"
	ActionRemove Action = "remove"
)

// Change is one step from the observed to the desired state.
type Change struct {
	Action Action
	Member string
	// Index is the member's index in the decision; it has no meaning for ActionRemove.
	Index int
	// Run is the member's present run for ActionMend, and the run of the pool that it joins for ActionStart. It is 0
	// otherwise: the member gets the run of the document.
	Run int
	// Reason is the reason in words.
	Reason string
}

// Diff lists the changes that are needed: removals first, then in the order of the decision's members. Members that are
// as desired, in whatever state, are not listed: finished is not drift.
//
// Members that the engine schedules share specification and run: if one has to restart, all do, and a missing one
// joins the run of the others.
func Diff(d Decision, observed []domain.Observed) []Change {
	found := byName(observed)
	pools := d.pools(found)
	var changes []Change
	for i, m := range d.Members {
		o, ok := found[m.Name]
		delete(found, m.Name)
		pool, pooled := pools[m.Role]
		if ok && pooled && o.Hash == "" {
			ok = false // it is about to end and be replaced
		}
		change := Change{Member: m.Name, Index: i}
		if !ok {
			change.Action, change.Reason, change.Run = ActionStart, "missing", pool.run
		} else if reason := cmp.Or(d.stale(i, o), pool.stale); reason != "" {
			change.Action, change.Reason = ActionRestart, reason
		} else if reason := d.deviation(i, o); reason != "" {
			change.Action, change.Reason, change.Run = ActionMend, reason, o.Run
		} else {
			continue
		}
		changes = append(changes, change)
	}
	var removals []Change
	for _, o := range observed {
		if _, extra := found[o.Name]; extra {
			removals = append(removals,
				Change{Action: ActionRemove, Member: o.Name, Reason: "not in the specification"})
		}
	}
	return append(removals, changes...)
}

// byName returns the members by name.
func byName(observed []domain.Observed) map[string]*domain.Observed {
	named := make(map[string]*domain.Observed, len(observed))
	for i := range observed {
		named[observed[i].Name] = &observed[i]
	}
	return named
}

// pool is the common state of a role's members that the engine schedules.
type pool struct {
	// stale is the reason why they have to restart, or "".
	stale string
	// run is their present run; 0 if a new one begins.
	run int
}

// pools returns the observed pools by role.
func (d Decision) pools(found map[string]*domain.Observed) map[string]pool {
	pools := map[string]pool{}
	for i, m := range d.Members {
		if !m.Shared() {
			continue
		}
		p := pools[m.Role]
		if o := found[m.Name]; o != nil && o.Hash != "" && p.stale == "" {
			p.stale, p.run = d.stale(i, o), o.Run
		}
		if p.stale != "" {
			p.run = 0
		}
		pools[m.Role] = p
	}
	return pools
}

// stale returns the reason why member i, observed as o, has to restart, or "".
func (d Decision) stale(i int, o *domain.Observed) string {
	switch {
	case o.Hash != d.Layout.Hash(i):
		return "specification changed"
	case o.Run < d.Document.MinRun:
		return "rerun"
	case d.retryFailed && (o.State == domain.StateFailed || o.Unstarted):
		return "failed in an earlier apply"
	}
	return ""
}

// deviation returns the reason why member i, observed as o, deviates from what was applied, or "".
func (d Decision) deviation(i int, o *domain.Observed) string {
	switch {
	case drifted(o):
		return d.describeDrift(i, o)
	case d.inform[o.Role] && !o.State.Ended():
		return "placement or update changed"
	}
	return ""
}

// atRest returns the decision as an apply would see it, without what the controller is about to do.
func (d Decision) atRest() Decision {
	d.retryFailed = d.Document.Applying
	if !d.Document.Applying {
		d.Document.MinRun = 0 // a pending restart by the controller is not drift
	}
	return d
}

// upToDate returns the names of the members that need no change.
func upToDate(d Decision, observed []domain.Observed) map[string]bool {
	names := make(map[string]bool, len(d.Members))
	for _, m := range d.Members {
		names[m.Name] = true
	}
	for _, c := range Diff(d, observed) {
		delete(names, c.Member)
	}
	return names
}
