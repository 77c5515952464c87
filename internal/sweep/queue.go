package sweep

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// Occupancy returns what the sweep's runs occupy, including those that are about to end.
func (q Queue) Occupancy() domain.GroupDocument {
	doc := Occupancy(q.Spec, q.Runs)
	for key, at := range q.Leaving {
		if at.Host != "" {
			doc.Assignments[domain.RunName(q.Spec.Name, key)] = at
			doc = withRoles(doc, q.Spec, []string{key})
		}
	}
	return doc
}

// MayLeave reports whether a run that is no longer active may still have a member: none was seen to end.
func (q Queue) MayLeave() bool {
	for _, run := range q.Runs {
		unseen := run.ExitCode == nil && (run.State == domain.RunCancelled || !run.State.Ended())
		if unseen && run.Assignment != nil && !run.Active() {
			return true
		}
	}
	return false
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
