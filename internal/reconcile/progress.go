package reconcile

import (
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Progress returns the progress of a group with these observed members. A failed member of a group that restarts as a
// whole counts as restarting as long as its restart rule gives the group another attempt.
func Progress(d Decision, observed []domain.Observed) domain.Progress {
	return d.Rule().Progress(d.names(), d.Document.MinRun, regard(d, observed))
}

// Present returns the members of the present attempt that run what the document says, or have run it to an end.
func Present(d Decision, observed []domain.Observed) []domain.Observed {
	named := byName(observed)
	var present []domain.Observed
	for i, m := range d.Members {
		if o := named[m.Name]; o != nil && d.stale(i, o) == "" {
			present = append(present, *o)
		}
	}
	return present
}

// regard returns the members as they count for their group: one with another specification is still pending, and a
// failed one may be about to restart with the others.
func regard(d Decision, observed []domain.Observed) []domain.Observed {
	hashes := make(map[string]string, len(d.Members))
	for i, m := range d.Members {
		hashes[m.Name] = d.Layout.Hash(i)
	}
	seen := make([]domain.Observed, len(observed))
	for i, o := range observed {
		if o.Hash != hashes[o.Name] {
			o.State = domain.StatePending
		} else if verdict, judged := judgeForGroup(d.Document, o); judged && verdict.State == domain.StateRestarting {
			o.State = domain.StateRestarting
		}
		seen[i] = o
	}
	return seen
}

// judgeForGroup applies the restart rule of a failed member's role to its group.
func judgeForGroup(doc domain.GroupDocument, o domain.Observed) (domain.Verdict, bool) {
	if doc.Spec.RestartScope != domain.ScopeGroup || o.State != domain.StateFailed || o.ExitCode == nil ||
		o.Run < doc.MinRun {
		return domain.Verdict{}, false
	}
	return doc.Spec.Roles[o.Role].RestartRule().Judge(*o.ExitCode, doc.GroupRestarts), true
}
