package sweep

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// occupancy returns what the sweep's runs occupy, including those that are about to end.
func (q Queue) occupancy() domain.GroupDocument {
	doc := Occupancy(q.Spec, q.Runs)
	for key, at := range q.Leaving {
		if at.Host != "" {
			doc.Assignments[domain.RunName(q.Spec.Name, key)] = at
			doc = withRoles(doc, q.Spec, []string{key})
		}
	}
	return doc
}

// LeavingAt returns what a member occupies that belongs to no active run: nothing if it has ended.
func LeavingAt(o domain.Observed, run domain.Run) domain.Assignment {
	switch {
	case o.State.Ended():
		return domain.Assignment{}
	case run.Assignment != nil:
		return *run.Assignment
	}
	return domain.Assignment{Host: o.Host}
}

// Waits reports whether any run of the sweep waits to be started.
func (q Queue) Waits() bool {
	for _, key := range q.Keys {
		if q.queued(key, q.Runs[key]) {
			return true
		}
	}
	return false
}

// queued reports whether a run waits to be started, even if that means starting over.
func (q Queue) queued(key string, run domain.Run) bool {
	switch run.State {
	case "", domain.RunQueued:
		return true
	case domain.RunRunning, domain.RunPaused:
		return false
	}
	return Stale(q.Document, q.Spec.Run(key), run)
}
