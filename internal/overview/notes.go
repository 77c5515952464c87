package overview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Notes are sentences about what is wrong with the cluster, and why some values are unknown. Subjects with the same
// reason share a sentence.
func (r Reading) Notes() []string {
	about := map[string][]string{}
	note := func(subject, reason string) {
		if reason != "" {
			about[reason] = append(about[reason], subject)
		}
	}
	for name, u := range r.Usage.Hosts {
		note("host "+name, u.Reason)
		if u.GPUsReason != u.Reason {
			note("GPUs of "+name, u.GPUsReason)
		}
	}
	for uuid, u := range r.Usage.GPUs {
		note("GPU "+r.GPUName(uuid), u.Reason)
	}
	for _, o := range r.Observed {
		switch o.State {
		case domain.StateRunning:
			note(o.Name, r.Usage.Members[o.Name].Reason)
		case domain.StatePending, domain.StateRestarting, domain.StateFailed:
			note(o.Name, o.LastError) // its usage is unknown anyway
		}
		note(o.Name, o.HostTrouble)
	}
	for key, silent := range r.Silent {
		for _, g := range silent.Guards {
			note(fmt.Sprintf("guard %s of %s", g.Name, key), g.String())
		}
	}
	type entry struct{ subjects, reason string }
	entries := make([]entry, 0, len(about))
	for reason, subjects := range about {
		entries = append(entries, entry{domain.Enumerate(subjects), reason})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.subjects, b.subjects), cmp.Compare(a.reason, b.reason))
	})
	notes := r.Residents.Missing()
	for _, e := range entries {
		notes = append(notes, e.subjects+": "+e.reason)
	}
	return notes
}
