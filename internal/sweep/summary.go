package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Summary is the state of a sweep.
type Summary struct {
	Total  int
	Counts map[domain.RunState]int
	// Unsuccessful names some of the ended runs that did not succeed, with their reasons.
	Unsuccessful string
	// MeanRuntime is how long a successful run took on average; 0 if none succeeded.
	MeanRuntime time.Duration
}

// Ended reports whether all runs have ended.
func (s Summary) Ended() bool {
	return s.Counts[domain.RunQueued]+s.Counts[domain.RunRunning]+s.Counts[domain.RunPaused] == 0
}

// String counts the runs by state, such as "2 running, 48 succeeded".
func (s Summary) String() string {
	var parts []string
	for _, state := range domain.RunStates {
		if n := s.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// Now returns a run as it counts for its sweep's document: one without stored state, or one that starts over, is
// queued.
func Now(doc domain.SweepDocument, own domain.RunSpec, run domain.Run) domain.Run {
	if run.State == "" || Stale(doc, own, run) {
		return domain.Run{State: domain.RunQueued}
	}
	return run
}

// Summarise returns the state of a sweep.
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

// Left estimates how long the sweep still takes; false if that is unknown. It assumes that as many runs as now stay
// active, each for as long as successful ones took.
func (s Summary) Left() (time.Duration, bool) {
	running, waiting := s.Counts[domain.RunRunning], s.Counts[domain.RunQueued]
	if s.Ended() {
		return 0, true
	}
	if s.MeanRuntime == 0 || running == 0 || s.Counts[domain.RunPaused] > 0 {
		return 0, false
	}
	// Active runs are half done, on average.
	return s.MeanRuntime/2 + time.Duration(float64(s.MeanRuntime)*float64(waiting)/float64(running)), true
}

// Ranked returns the keys of the successful runs with a value, the best first; ties are ordered by key.
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

// Reason says why a run is in its state. For a waiting one, it adds when its next attempt is due, or else why no run of
// its sweep starts.
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
