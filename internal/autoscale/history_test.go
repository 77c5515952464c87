package autoscale

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// entryOf returns a decision of a policy with two metrics, of which one is missing.
func entryOf(policy string, at time.Time, from, to int) Entry {
	e := Entry{
		Policy: policy, At: at, Until: at, Decisions: 1, From: from, To: to, Ready: from, Outcome: OutcomeUnchanged,
		Metrics: []EntryMetric{
			{Name: "cpu", Value: new(61.5), Age: 0.8, Count: &to, Why: "61.5 of 60 is within the tolerance of 10 %"},
			{Name: "queue", Why: "not measured"},
		},
	}
	if from != to {
		e.Outcome = OutcomeDone
	}
	return e
}

func TestNewEntry(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{
		"cpu": targetOf(50), "gpu": targetOf(50), "nan": targetOf(50), "old": targetOf(50),
	})
	policy.ScaleOut.MaxStep = 2
	policy.Schedules = map[string]domain.ScalingSchedule{"day": {Start: "0 8 * * *", End: "0 20 * * *", Count: 3}}
	scaler := scalerOf(t, policy)
	var state State
	d := scaler.Decide(&state, Seen{Now: noon, Count: 4, Ready: 3, Metrics: map[string]Measurement{
		"cpu": {Value: 100.00000001, At: noon.Add(-1500 * time.Millisecond)},
		"gpu": {Why: "no agent answers"},
		"nan": {Value: math.NaN(), At: noon},
		"old": {Value: 1, At: noon.Add(-2 * time.Minute)},
	}})
	var h History
	h.Add(NewEntry("job/worker", noon, 3, d))
	want := Entry{
		Policy: "job/worker", At: noon, Until: noon, Decisions: 1, From: 4, To: 6, Ready: 3, Outcome: OutcomeDone,
		Metrics: []EntryMetric{
			{Name: "cpu", Value: new(100.0), Age: 1.5, Count: new(6), Why: "100 of 50: 3 ready members × 2 = 6"},
			{Name: "gpu", Why: "no agent answers"},
			{Name: "nan", Why: "the value is not a number"},
			{Name: "old", Age: 120, Why: "stale: its last value is 2m0s old"},
			{Name: "day", Count: new(3), Why: "3 until 2026-11-22 20:00 UTC"},
		},
	}
	want.Metrics[4].Why = d.Asked[4].Why // the date is that of noon
	got := h.Entries(noon, Selection{})[0]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Why() != d.Why() {
		t.Errorf("the entry says %q, and the decision %q", got.Why(), d.Why())
	}

	d = scaler.Decide(&State{}, Seen{Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{
		"cpu": {Value: 200, At: noon}, "gpu": {Value: 50, At: noon}, "nan": {Value: 50, At: noon},
		"old": {Value: 50, At: noon},
	}})
	held := NewEntry("job/worker", noon, 4, d)
	if diff := cmp.Diff([]string{"16 is above max (10)", "10 wanted, but at most 2 members per step: 6"},
		held.Changed); diff != "" {
		t.Errorf("what changed the count (-want +got):\n%s", diff)
	}
	if unchanged := NewEntry("job/worker", noon, 4, Decision{From: 4, To: 4}); unchanged.Outcome != OutcomeUnchanged ||
		unchanged.Why() != "no other count requested" {
		t.Errorf("a decision for nothing: %+v, %q", unchanged, unchanged.Why())
	}
}

// TestEntryJSON checks that the JSON has everything, on one line.
func TestEntryJSON(t *testing.T) {
	e := entryOf("job/worker", noon, 4, 6)
	e.Changed = []string{"two\nlines"}
	line, err := e.JSON()
	if err != nil || strings.Count(string(line), "\n") != 1 || line[len(line)-1] != '\n' {
		t.Fatalf("%q (%v) is not one line", line, err)
	}
	var read map[string]any
	if err := json.Unmarshal(line, &read); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"policy": "job/worker", "at": noon.Format(time.RFC3339), "until": noon.Format(time.RFC3339), "decisions": 1.0,
		"from": 4.0, "to": 6.0, "ready": 4.0,
		"metrics": []any{
			map[string]any{
				"name": "cpu", "value": 61.5, "age_seconds": 0.8, "count": 6.0,
				"why": "61.5 of 60 is within the tolerance of 10 %",
			},
			map[string]any{"name": "queue", "why": "not measured"},
		},
		"changed": []any{"two\nlines"}, "outcome": "done",
		"why": "cpu: 61.5 of 60 is within the tolerance of 10 %; queue: not measured; two\nlines",
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHistoryMerges checks that repetitions become one entry, with the latest values and reasons.
func TestHistoryMerges(t *testing.T) {
	const gap = 5 * time.Second
	for name, test := range map[string]struct {
		first, second func(e *Entry)
		after         time.Duration
		merged        bool
	}{
		"the same": {merged: true},
		"another value and its reason": {
			second: func(e *Entry) { e.Metrics[0].Value, e.Metrics[0].Why = new(62.0), "62 of 60" }, merged: true,
		},
		"the limit a while later": {
			func(e *Entry) { e.Changed = []string{"in cooldown for 1m25s more"} },
			func(e *Entry) { e.Changed = []string{"in cooldown for 85s more"} }, gap, true,
		},
		"other members are ready": {second: func(e *Entry) { e.Ready = 2 }, merged: true},
		"held by another member": {
			func(e *Entry) { *e = held(*e, "job-worker-3 stays") },
			func(e *Entry) { *e = held(*e, "job-worker-12 stays") }, gap, true,
		},
		"failed again": {
			func(e *Entry) { e.To, e.Outcome = 5, OutcomeFailed },
			func(e *Entry) { e.To, e.Outcome = 5, OutcomeFailed }, gap, true,
		},
		"a dry run again": {
			func(e *Entry) { e.To, e.Outcome = 5, OutcomeDryRun },
			func(e *Entry) { e.To, e.Outcome = 5, OutcomeDryRun }, gap, true,
		},
		"after ten minutes":    {after: 10 * time.Minute, merged: true},
		"before, by the clock": {after: -time.Minute, merged: true},

		"after more":        {after: 10*time.Minute + time.Second},
		"another limit":     {second: func(e *Entry) { e.Changed = []string{"in cooldown"} }},
		"not asked for why": {second: func(e *Entry) { e.Metrics[1].Why = "stale" }},
		"held for more": {
			func(e *Entry) { *e = held(*e, "an apply") }, func(e *Entry) { *e = held(*e, "an apply of group") }, gap,
			false,
		},
		"another count is asked": {second: func(e *Entry) { e.Metrics[0].Count = new(5) }},
		"nothing is asked":       {second: func(e *Entry) { e.Metrics[0].Count = nil }},
		"something is asked":     {first: func(e *Entry) { e.Metrics[0].Count = nil }},
		"another metric":         {second: func(e *Entry) { e.Metrics[1].Name = "gpu" }},
		"a metric less":          {second: func(e *Entry) { e.Metrics = e.Metrics[:1] }},
		"another count":          {second: func(e *Entry) { e.From, e.To = 5, 5 }},
		"held for another reason": {
			func(e *Entry) { *e = held(*e, "an apply") }, func(e *Entry) { *e = held(*e, "a host is down") }, gap,
			false,
		},
		"another outcome": {
			func(e *Entry) { *e = held(*e, "an apply") }, func(e *Entry) { e.To, e.Outcome = 6, OutcomeDryRun }, gap,
			false,
		},
		"a change": {second: func(e *Entry) { e.To, e.Outcome = 6, OutcomeDone }},
		"the same change twice": {
			func(e *Entry) { e.To, e.Outcome = 6, OutcomeDone }, func(e *Entry) { e.To, e.Outcome = 6, OutcomeDone },
			gap, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.after == 0 {
				test.after = gap
			}
			start := noon.Add(-time.Hour)
			first, other, second := entryOf("job/worker", start, 4, 4), entryOf("job/ps", start, 1, 1),
				entryOf("job/worker", start.Add(test.after), 4, 4)
			for change, e := range map[*func(*Entry)]*Entry{&test.first: &first, &test.second: &second} {
				if *change != nil {
					(*change)(e)
				}
			}
			var h History
			for _, e := range []Entry{first, other, second} {
				h.Add(e)
			}
			want := []Entry{first, other, second}
			if test.merged {
				second.At, second.Decisions = first.At, 2
				if second.Until.Before(first.Until) {
					second.Until = first.Until
				}
				want = []Entry{second, other}
			}
			if diff := cmp.Diff(want, h.entries); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// held returns a decision for 6 members that something prevented.
func held(e Entry, why string) Entry {
	e.To, e.Outcome, e.OutcomeWhy = 6, OutcomeHeld, why
	return e
}

func TestHistoryEntries(t *testing.T) {
	var h History
	add := func(policy string, ago time.Duration, from, to int) { h.Add(entryOf(policy, noon.Add(-ago), from, to)) }
	add("a/worker", 31*24*time.Hour, 1, 2)
	add("a/worker", 2*time.Hour, 2, 2)
	add("b/worker", 90*time.Minute, 7, 8)
	add("a/ps", time.Hour, 3, 4)
	add("a/ps", 59*time.Minute, 4, 4)
	add("a/worker", 50*time.Minute, 2, 3)
	h.Add(func() Entry { e := entryOf("b/worker", noon.Add(-40*time.Minute), 8, 8); return held(e, "an apply") }())
	quiet := entryOf("c/worker", noon.Add(-3*time.Hour), 1, 1) // the oldest, but decided last
	for range 40 {
		h.Add(quiet)
		quiet.At = quiet.At.Add(5 * time.Minute)
		quiet.Until = quiet.At
		if quiet.At.After(noon) {
			break
		}
	}
	for name, test := range map[string]struct {
		s    Selection
		want string
	}{
		"all": {
			Selection{}, "a/worker 2→2, b/worker 7→8, a/ps 3→4, a/ps 4→4, a/worker 2→3, b/worker 8→6, c/worker 1→1",
		},
		"of a group": {
			Selection{Group: "a"}, "a/worker 2→2, a/ps 3→4, a/ps 4→4, a/worker 2→3",
		},
		"of a role": {
			Selection{Role: "worker"}, "a/worker 2→2, b/worker 7→8, a/worker 2→3, b/worker 8→6, c/worker 1→1",
		},
		"of one":     {Selection{Group: "a", Role: "ps"}, "a/ps 3→4, a/ps 4→4"},
		"of none":    {Selection{Group: "a", Role: "chief"}, ""},
		"the newest": {Selection{Limit: 2}, "b/worker 8→6, c/worker 1→1"},
		"of the last": {
			Selection{Since: noon.Add(-time.Hour)}, "a/ps 3→4, a/ps 4→4, a/worker 2→3, b/worker 8→6, c/worker 1→1",
		},
		"for other counts": {
			Selection{OnlyChanges: true}, "b/worker 7→8, a/ps 3→4, a/worker 2→3, b/worker 8→6",
		},
		"the newest of a group for other counts": {Selection{Group: "a", OnlyChanges: true, Limit: 1}, "a/worker 2→3"},
		"from before what is kept": {
			Selection{Group: "a", Role: "worker", Since: noon.Add(-1000 * time.Hour)}, "a/worker 2→2, a/worker 2→3",
		},
	} {
		var got []string
		for _, e := range h.Entries(noon, test.s) {
			got = append(got, fmt.Sprintf("%s %d→%d", e.Policy, e.From, e.To))
		}
		if got := strings.Join(got, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestHistoryIsBounded checks that the entries of an oscillating policy are limited, and all of another one are kept.
func TestHistoryIsBounded(t *testing.T) {
	var h History
	h.Add(entryOf("a/ps", noon.Add(-time.Hour), 1, 2))
	for i := range KeepEntries + 5 {
		h.Add(entryOf("a/worker", noon.Add(time.Duration(i-KeepEntries)*time.Millisecond), i, i+1))
	}
	kept := h.Entries(noon, Selection{})
	if len(kept) != KeepEntries+1 || kept[0].Policy != "a/ps" || kept[1].From != 5 {
		t.Errorf("%d entries are kept, from %+v, %+v", len(kept), kept[0], kept[1])
	}
}

// TestEntriesAreTidied checks that foreign texts are shortened if too long, and repaired if not valid UTF-8.
func TestEntriesAreTidied(t *testing.T) {
	e := entryOf("a/worker", noon.Add(123456789), 1, 2)
	e.OutcomeWhy = "the drain hook said \xff\"" + strings.Repeat("ä", 1000)
	e.Metrics[0].Value, e.Metrics[0].Age, e.Metrics[0].Why = new(1.0/3), 1.23456, ""
	e.Metrics[1].Value = new(math.Inf(1))
	e.Metrics[1].Why = strings.Repeat("x", longestText)
	var h History
	h.Add(e)
	got := h.entries[0]
	if !utf8.ValidString(got.OutcomeWhy) || len(got.OutcomeWhy) > longestText || len(got.OutcomeWhy) < longestText-3 ||
		!strings.HasSuffix(got.OutcomeWhy, "ä…") {
		t.Errorf("the outcome is %d bytes: %q", len(got.OutcomeWhy), got.OutcomeWhy)
	}
	if *got.Metrics[0].Value != 0.3333333 || got.Metrics[0].Age != 1.235 || got.Metrics[1].Value != nil ||
		got.Metrics[1].Why != e.Metrics[1].Why {
		t.Errorf("the metrics are %+v", got.Metrics)
	}
	if want := noon.Add(123 * time.Millisecond); got.At != want {
		t.Errorf("the time is %s, want %s", got.At, want)
	}
	if e.Metrics[0].Age != 1.23456 {
		t.Error("the entry of whoever added it was changed")
	}
}
