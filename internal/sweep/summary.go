package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Summary is how a sweep stands.
type Summary struct {
	Total  int
	Counts map[domain.RunState]int
	// Unsuccessful names runs that have ended and did not succeed, with their reasons, as far as there is room for
	// some.
	Unsuccessful string
	// MeanRuntime is how long a run that succeeded took, in the mean; 0 where none did.
	MeanRuntime time.Duration
}

// Ended reports whether no run is to come any more.
func (s Summary) Ended() bool {
	return s.Counts[domain.RunQueued]+s.Counts[domain.RunRunning]+s.Counts[domain.RunPaused] == 0
}

// String counts the runs by their states, such as "2 running, 48 succeeded".
func (s Summary) String() string {
	var parts []string
	for _, state := range domain.RunStates {
		if n := s.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// Now returns a run as it counts by what its sweep's document says: one of which nothing is remembered, or that starts
// anew, is queued.
func Now(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) domain.Run {
	if run.State == "" || Stale(doc, own, run) {
		return domain.Run{State: domain.RunQueued}
	}
	return run
}

// Summarise returns how a sweep stands.
func Summarise(doc domain.SweepDocument, s domain.Sweep, runs map[string]domain.Run) Summary {
	summary := Summary{Total: len(s.Runs), Counts: map[domain.RunState]int{}}
	var bad []string
	var took time.Duration
	timed := 0
	for _, key := range s.Keys() {
		run := Now(doc, s.Run(key), runs[key])
		summary.Counts[run.State]++
		switch {
		case run.State == domain.RunSucceeded && run.StartedAt != nil && run.FinishedAt != nil:
			took += max(run.FinishedAt.Sub(*run.StartedAt), 0)
			timed++
		case run.State.Ended() && run.State != domain.RunSucceeded:
			bad = append(bad, key+": "+cmp.Or(run.Reason, string(run.State)))
		}
	}
	if timed > 0 {
		summary.MeanRuntime = took / time.Duration(timed)
	}
	const shown = 5
	summary.Unsuccessful = strings.Join(bad[:min(len(bad), shown)], "; ")
	if len(bad) > shown {
		summary.Unsuccessful += fmt.Sprintf("; and %d more", len(bad)-shown)
	}
	return summary
}

// Left returns about how long the sweep takes from now on, and false where that can't be told: as many runs as now go
// on side by side, each for as long as those took that succeeded.
func (s Summary) Left() (time.Duration, bool) {
	running, waiting := s.Counts[domain.RunRunning], s.Counts[domain.RunQueued]
	if s.Ended() {
		return 0, true
	}
	if s.MeanRuntime == 0 || running == 0 || s.Counts[domain.RunPaused] > 0 {
		return 0, false
	}
	// Those that run have half of their time before them, in the mean.
	return s.MeanRuntime/2 + time.Duration(float64(s.MeanRuntime)*float64(waiting)/float64(running)), true
}

// Ranked returns the keys of the runs that succeeded and have a value, the best first; of equals the first key.
func Ranked(o domain.Objective, runs map[string]domain.Run) []string {
	var keys []string
	for key, run := range runs {
		if run.Value != nil && run.State == domain.RunSucceeded {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, y := *runs[a].Value, *runs[b].Value
		switch {
		case o.Better(x, y):
			return -1
		case o.Better(y, x):
			return 1
		}
		return cmp.Compare(a, b)
	})
	return keys
}

// Order returns the keys of all runs as people are shown them: ranked if the sweep has an objective, then the others by
// key.
func Order(s domain.Sweep, runs map[string]domain.Run) []string {
	var keys []string
	if s.Objective != nil {
		keys = Ranked(*s.Objective, runs)
	}
	ranked := map[string]bool{}
	for _, key := range keys {
		ranked[key] = true
	}
	return append(keys, slices.DeleteFunc(s.Keys(), func(key string) bool { return ranked[key] })...)
}

// Reason says why a run is in its state; of one that waits also when its next attempt is due, or else why no run of its
// sweep starts.
func Reason(r domain.Retry, run domain.Run, waits string, now time.Time) string {
	if run.State != domain.RunQueued {
		return run.Reason
	}
	if due := dueAt(r, run, now); due.After(now) {
		waits = "the next attempt is due at " + due.UTC().Format(time.RFC3339)
	}
	if run.Reason == "" || waits == "" {
		return run.Reason + waits
	}
	return run.Reason + "; " + waits
}
