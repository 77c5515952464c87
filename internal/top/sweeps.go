package top

import (
	"maps"
	"slices"
	"strconv"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

var toneOfRun = map[domain.RunState]tone{
	domain.RunRunning: good, domain.RunPaused: warning, domain.RunFailed: bad, domain.RunOutOfMemory: bad,
	domain.RunQueued: plain, domain.RunSucceeded: faint, domain.RunCancelled: faint,
}

// sweepTables shows each sweep with its runs, those with a value first, best first.
func (s state) sweepTables(width int) []line {
	switch {
	case s.sweeps == nil:
		return []line{waiting}
	case len(s.sweeps.Found) == 0:
		return []line{text("No sweeps.", faint)}
	}
	var lines []line
	for _, name := range slices.Sorted(maps.Keys(s.sweeps.Found)) {
		sweep := s.reading.Sweep(*s.sweeps, name)
		head := line{{name, strong}, {"  " + sweep.Summary.String(), plain}}
		if sweep.Left != "" {
			head = append(head, span{"  " + sweep.Left, faint})
		}
		lines = append(lines, line{}, head)
		for _, why := range []string{sweep.Waits, sweep.Parallelism} {
			if why != "" {
				lines = append(lines, indented(why, width)...)
			}
		}
		lines = append(lines, s.runTable(sweep, width)...)
	}
	return lines
}

// runTable shows the runs of a sweep, each followed by the reason for its state, unless all that wait have the same.
func (s state) runTable(sweep overview.Sweep, width int) []line {
	var rows [][]line
	var reasons []string
	for _, run := range sweep.Runs {
		row := []line{
			text(run.Key, plain), text(string(run.State), toneOfRun[run.State]), known(run.Value),
			text(strconv.Itoa(run.Attempts), plain),
			known(run.Place), known(run.Took),
		}
		if s.matches(append(row, text(run.Reason, plain))) {
			if run.Reason == sweep.Waits {
				run.Reason = ""
			}
			rows, reasons = append(rows, row), append(reasons, run.Reason)
		}
	}
	shown := table([]column{
		{title: "RUN"}, {title: "STATE"}, {title: "VALUE", right: true}, {title: "ATTEMPT", right: true, rank: 3},
		{title: "PLACE", rank: 2},
		{title: "TOOK", right: true, rank: 1},
	}, rows, width)
	lines := shown[:1:1]
	for i, reason := range reasons {
		lines = append(lines, shown[i+1])
		if reason != "" {
			lines = append(lines, indented(reason, width)...)
		}
	}
	return lines
}

// known shows a value, or that it is unknown if it is "".
func known(value string) line {
	if value == "" {
		return text(unknown, faint)
	}
	return text(value, plain)
}

// indented wraps an explanation below what it explains.
func indented(s string, width int) []line {
	if width > 0 {
		width = max(width-len(indent), 1)
	}
	var lines []line
	for _, l := range wrapped(s, width) {
		lines = append(lines, text(indent+l, faint))
	}
	return lines
}
