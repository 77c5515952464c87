package top

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// notes says why what is not known is not, and what is wrong. What has one reason is named together.
func (r reading) notes(width int) []line {
	about := map[string][]string{}
	note := func(subject, reason string) {
		if reason != "" {
			about[reason] = append(about[reason], subject)
		}
	}
	for name, u := range r.usage.Hosts {
		note("host "+name, u.Reason)
		if u.GPUsReason != u.Reason {
			note("GPUs of "+name, u.GPUsReason)
		}
	}
	for uuid, u := range r.usage.GPUs {
		note("GPU "+r.gpuName(uuid), u.Reason)
	}
	for _, o := range r.observed {
		switch o.State {
		case domain.StateRunning:
			note(o.Name, r.usage.Members[o.Name].Reason)
		case domain.StatePending, domain.StateRestarting, domain.StateFailed:
			note(o.Name, o.LastError) // that nothing is known of what it uses goes without saying
		}
		note(o.Name, o.HostTrouble)
	}
	for key, untold := range r.untold {
		for _, g := range untold.Guards {
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
	said := r.residents.Missing()
	for _, e := range entries {
		said = append(said, e.subjects+": "+e.reason)
	}
	if len(said) == 0 {
		return nil
	}
	lines := []line{text("NOTES", faint)}
	if width > 0 {
		width = max(width-len(indent), 1)
	}
	for _, sentence := range said {
		for i, l := range wrapped(sentence, width) {
			if i > 0 {
				l = indent + l
			}
			lines = append(lines, text(l, plain))
		}
	}
	return lines
}

// indent is before what goes on from the line above.
const indent = "  "
