package top

import (
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// logOptions limit how much of a log is read, each time anew.
var logOptions = engine.LogOptions{Tail: 1000, Most: 128 << 10}

// memberLog is the end of a member's log as read.
type memberLog struct {
	member string
	lines  []string
}

// logLines shows the log of the chosen member.
func (s state) logLines(width int) []line {
	switch {
	case s.query.member == "":
		return []line{text("No members.", faint)}
	case s.log.member != s.query.member:
		return []line{waiting}
	}
	var lines []line
	for _, logged := range s.log.lines {
		if !s.matches([]line{text(logged, plain)}) {
			continue
		}
		for _, part := range broken(strings.ReplaceAll(logged, "\t", "    "), width) {
			lines = append(lines, text(part, plain))
		}
	}
	if len(lines) == 0 {
		return []line{text("No output.", faint)}
	}
	return lines
}

// whose returns the member whose log to show: the one chosen before, or the one so many places further in the table of
// groups. If there is no such member, it is the first that failed, or else the first; "" if there are none.
func whose(r overview.Reading, chosen string, further int) string {
	groups := r.Members()
	var names []string
	failed := ""
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, name := range slices.SortedFunc(maps.Keys(groups[group]), overview.CompareMembers) {
			names = append(names, name)
			if state := groups[group][name].State; failed == "" &&
				(state == domain.StateFailed || state == domain.StateRestarting) {
				failed = name
			}
		}
	}
	at := slices.Index(names, chosen)
	switch {
	case len(names) == 0:
		return ""
	case at >= 0:
		return names[((at+further)%len(names)+len(names))%len(names)]
	case failed != "":
		return failed
	}
	return names[0]
}
