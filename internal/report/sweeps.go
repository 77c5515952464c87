package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// mostRuns is the maximum number of runs shown of a sweep. Beyond it only the best and the failed ones are of interest,
// and the file has to stay small.
const mostRuns = 1000

// sweepTable is a sweep with its runs.
type sweepTable struct {
	Name, By, Summary, Left string
	// Waits says why no run starts, Parallelism how many run in parallel and why.
	Waits, Parallelism string
	Segments           []segment
	// Value is the heading of the column of values; empty without an objective.
	Value  string
	Runs   []run
	Hidden int // runs beyond [mostRuns]
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
	domain.RunQueued: faint, domain.RunRunning: good, domain.RunPaused: warning, domain.RunSucceeded: good, domain.RunFailed: bad, domain.RunOutOfMemory: bad,
	domain.RunCancelled: faint,
}

func (r reading) sweepTable(name string) sweepTable {
	found := r.sweeps[name]
	summary := sweep.Summarise(found.Document, found.Spec, found.Runs)
	t := sweepTable{
		Name: name, By: found.Document.By, Summary: summary.String(), Parallelism: sweep.ParallelismReason(found.Document, found.Parallelism),
	}
	if !summary.Ended() {
		t.Waits = r.waits[name]
	}
	if left, known := summary.Left(); known {
		t.Left = "about " + left.Round(time.Second).String() + " left"
	}
	for _, state := range domain.RunStates {
		if n := summary.Counts[state]; n > 0 {
			t.Segments = append(t.Segments, segment{string(state), n, 100 * float64(n) / float64(summary.Total), toneOfRun[state]})
		}
	}
	if found.Spec.Objective != nil {
		t.Value = "value"
	}
	current := map[string]domain.Run{}
	for key := range found.Spec.Runs {
		current[key] = sweep.Now(found.Document, found.Spec.Run(key), found.Runs[key])
	}
	keys := sweep.Order(found.Spec, current)
	t.Hidden = max(len(keys)-mostRuns, 0)
	for _, key := range keys[:len(keys)-t.Hidden] {
		t.Runs = append(t.Runs, r.run(key, current[key], found.Spec.Retry, t.Waits))
	}
	return t
}

func (r reading) run(key string, of domain.Run, retry domain.Retry, waits string) run {
	shown := run{
		Key: key, State: strings.ReplaceAll(string(of.State), "_", " "), Tone: toneOfRun[of.State], Value: unknown, Attempt: strconv.Itoa(of.Attempts), Host: unknown, Took: unknown,
		Reason: sweep.Reason(retry, of, waits, r.At),
	}
	if of.Value != nil {
		shown.Value = strconv.FormatFloat(*of.Value, 'g', -1, 64)
	}
	if of.Assignment != nil {
		shown.Host = of.Assignment.Host
		var gpus []string
		for _, uuid := range of.Assignment.GPUs.UUIDs() {
			gpus = append(gpus, r.GPUName(uuid))
		}
		if len(gpus) > 0 {
			shown.Host = strings.Join(gpus, ", ")
		}
	}
	if of.StartedAt != nil {
		end := r.At
		if of.FinishedAt != nil {
			end = *of.FinishedAt
		}
		shown.Took = fmt.Sprint(end.Sub(*of.StartedAt).Round(time.Second))
	}
	return shown
}
