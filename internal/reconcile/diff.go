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
	// ActionMend puts a member back to what it should be, in its present run: it restarts only where it has to for
	// that.
	ActionMend   Action = "mend"
	ActionRemove Action = "remove"
)

// Change is one step from what is observed to what is desired.
type Change struct {
	Action Action
	Member string
	// Index is the member's place in the decision; it has no meaning for ActionRemove.
	Index int
	// Run is the member's present run for ActionMend, and for ActionStart that of a pool which it joins; 0 otherwise:
	// what is started gets the document's.
	Run int
	// Reason says in words why.
	Reason string
}

// Diff lists what has to change, removals first, then in the order of the decision's members. Members that are
// as desired, in whatever state, are not listed: finished is not drift.
//
// Members that the engine distributes share their specification and their run: where one has to be started again all
// are, and one that is missing joins the run of the others.
func Diff(d Decision, observed []domain.Observed) []Change {
	found := byName(observed)
	pools := d.pools(found)
	var changes []Change
	for i, m := range d.Members {
		o, ok := found[m.Name]
		delete(found, m.Name)
		pool, pooled := pools[m.Role]
		if ok && pooled && o.Hash == "" {
			ok = false // it is about to end, and another one takes its place
		}
		change := Change{Member: m.Name, Index: i}
		if !ok {
			change.Action, change.Reason, change.Run = ActionStart, "missing", pool.run
		} else if reason := cmp.Or(d.stale(i, o), pool.stale); reason != "" {
			change.Action, change.Reason = ActionRestart, reason
		} else if reason := d.amiss(i, o); reason != "" {
			change.Action, change.Reason, change.Run = ActionMend, reason, o.Run
		} else {
			continue
		}
		changes = append(changes, change)
	}
	var removals []Change
	for _, o := range observed {
		if _, extra := found[o.Name]; extra {
			removals = append(removals, Change{Action: ActionRemove, Member: o.Name, Reason: "not in the specification"})
		}
	}
	return append(removals, changes...)
}

// byName returns members by their names.
func byName(observed []domain.Observed) map[string]*domain.Observed {
	named := make(map[string]*domain.Observed, len(observed))
	for i := range observed {
		named[observed[i].Name] = &observed[i]
	}
	return named
}

// pool is what the members of a role have in common that the engine distributes.
type pool struct {
	// stale tells why they have to be started again, or is "".
	stale string
	// run is the run that they are in; 0 where a new one begins.
	run int
}

// pools returns the pools by role, as they are found.
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

// stale tells why member i, observed as o, has to be started again, or returns "".
func (d Decision) stale(i int, o *domain.Observed) string {
	switch {
	case o.Hash != d.Layout.Hash(i):
		return "specification changed"
	case o.Run < d.Document.MinRun:
		return "rerun"
	case d.retryFailed && (o.State == domain.StateFailed || o.Unstarted):
		return "failed in an apply that did not end well"
	}
	return ""
}

// amiss tells why member i, observed as o, is not as it was put in force, or returns "".
func (d Decision) amiss(i int, o *domain.Observed) string {
	switch {
	case drifted(o):
		return d.describeDrift(i, o)
	case d.inform[o.Role] && !o.State.Ended():
		return "placement or update changed"
	}
	return ""
}

// atRest returns the decision with regard to what an apply would do, not the controller.
func (d Decision) atRest() Decision {
	d.retryFailed = d.Document.Applying
	if !d.Document.Applying {
		d.Document.MinRun = 0 // the controller is about to restart the group as a whole, which is no drift
	}
	return d
}

// upToDate returns the names of the decision's members that have not to be changed.
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
