package top

import "strconv"

// tab is what is shown of a cluster.
type tab int

const (
	tabCluster tab = iota
	tabSweeps
	tabLogs
	numTabs
)

var tabNames = [numTabs]string{"cluster", "sweeps", "logs"}

// query is what to read besides the overview: what a tab shows, of a member if it is about one.
type query struct {
	tab    tab
	member string
}

// tabLine shows the tabs with their keys, and whose log is shown.
func (s state) tabLine() line {
	var l line
	for t, name := range tabNames {
		rest := faint
		if tab(t) == s.query.tab {
			rest = good
			if s.query.member != "" {
				name += " of " + s.query.member
			}
		}
		l = append(l, span{strconv.Itoa(t + 1), strong}, span{" " + name + "  ", rest})
	}
	return l
}

// waiting is shown until the first answer.
var waiting = text("Waiting for the first answer.", faint)
