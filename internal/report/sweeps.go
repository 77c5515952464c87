package report

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// mostRuns is the maximum number of runs shown of a sweep. Beyond it only the best and the failed ones are of interest,
// and the file has to stay small.
const mostRuns = 1000

// shownRuns returns the runs to show, in the same order: all, or else the first ones of those that failed and of the
// others. Failed runs take at most half of the places if the others fill the rest.
func shownRuns(all []overview.Run) []overview.Run {
	if len(all) <= mostRuns {
		return all
	}
	places := map[bool]int{}
	for _, r := range all {
		places[failed(r)]++
	}
	places[true] = min(places[true], max(mostRuns/2, mostRuns-places[false]))
	places[false] = mostRuns - places[true]
	shown := make([]overview.Run, 0, mostRuns)
	for _, r := range all {
		if places[failed(r)]--; places[failed(r)] >= 0 {
			shown = append(shown, r)
		}
	}
	return shown
}

func failed(r overview.Run) bool {
	return r.State == domain.RunFailed || r.State == domain.RunOutOfMemory
}

// sweepTable is a sweep with its runs.
type sweepTable struct {
	overview.Sweep
	Segments []segment
	Runs     []run
	Hidden   int // runs beyond [mostRuns]
}

// segment is the share of a sweep's runs in one state.
type segment struct {
	State   string
	Count   int
	Percent float64
	Tone    tone
}

type run struct {
	Key, State           string
	Tone                 tone
	Value, Attempt, Host string
	Took, Reason         string
}

var toneOfRun = map[domain.RunState]tone{
	domain.RunQueued: faint, domain.RunRunning: good, domain.RunPaused: warning, domain.RunSucceeded: good,
	domain.RunFailed: bad, domain.RunOutOfMemory: bad, domain.RunCancelled: faint,
}

func (r reading) sweepTable(name string) sweepTable {
	t := sweepTable{Sweep: r.Sweep(r.sweeps, name)}
	for _, state := range domain.RunStates {
		if n := t.Summary.Counts[state]; n > 0 {
			percent := 100 * float64(n) / float64(t.Summary.Total)
			t.Segments = append(t.Segments, segment{string(state), n, percent, toneOfRun[state]})
		}
	}
	shown := shownRuns(t.Sweep.Runs)
	t.Hidden = len(t.Sweep.Runs) - len(shown)
	for _, found := range shown {
		t.Runs = append(t.Runs, run{
			Key: found.Key, State: strings.ReplaceAll(string(found.State), "_", " "), Tone: toneOfRun[found.State],
			Value: cmp.Or(found.Value, unknown), Attempt: strconv.Itoa(found.Attempts),
			Host: cmp.Or(found.Place, unknown),
			Took: cmp.Or(found.Took, unknown), Reason: found.Reason,
		})
	}
	return t
}
