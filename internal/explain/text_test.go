package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// now is a moment after midnight in local time, an hour ahead of UTC.
var now = time.Date(2026, 11, 21, 0, 0, 30, 0, time.FixedZone("", 3600))

// decisions returns some decisions of a policy, newest last.
func decisions() []autoscale.Entry {
	cpu := func(value float64, count int, why string) autoscale.EntryMetric {
		return autoscale.EntryMetric{Name: "cpu", Value: &value, Age: 0.84, Count: &count, Why: why}
	}
	at := func(ago time.Duration) time.Time { return now.Add(-ago).UTC() }
	return []autoscale.Entry{
		{
			Policy: "job/worker", At: at(10 * time.Minute), Until: at(3 * time.Minute), Decisions: 85, From: 4, To: 4,
			Ready: 4, Outcome: autoscale.OutcomeUnchanged,
			Metrics: []autoscale.EntryMetric{
				cpu(62.34567, 4, "62.35 of 60 is within the tolerance of 10 %"),
				{Name: "jobs waiting", Age: 75.2, Why: "stale: its last value is 1m15s old"},
				{Name: "night", Count: new(2), Why: "2 until 2026-11-21 06:00 UTC"},
			},
		},
		{
			Policy: "job/worker", At: at(2 * time.Minute), Until: at(2 * time.Minute), Decisions: 1, From: 4, To: 6,
			Ready: 4, Outcome: autoscale.OutcomeDone,
			Metrics: []autoscale.EntryMetric{cpu(93, 7, "93 of 60: 4 ready members × 1.55 = 7")},
			Changed: []string{"7 wanted, but at most 2 members per step: 6"},
			Vertical: []autoscale.EntryVertical{
				{
					Name: "cpus", Requested: new(4.0), Target: new(2.31), Lower: new(1.15), Upper: new(3.5),
					Why: "90 % of the time",
				}, {Name: "memory_mib", Why: "not measured yet"},
			},
		},
		{
			Policy: "job/worker", At: at(40 * time.Second), Until: at(20 * time.Second), Decisions: 5, From: 6, To: 8,
			Ready: 5, Outcome: autoscale.OutcomeHeld,
			OutcomeWhy: "an apply holds\nthe \x1b[31mgroup",
			Metrics:    []autoscale.EntryMetric{cpu(120345.6, 8, "the bus is full")},
		},
		{
			Policy: "job/worker", At: at(10 * time.Second), Until: at(10 * time.Second), Decisions: 1, From: 6, To: 8,
			Ready: 6, Outcome: autoscale.OutcomeDryRun,
		},
		{
			Policy: "job/worker", At: at(5 * time.Second), Until: at(5 * time.Second), Decisions: 1, From: 6, To: 8,
			Ready: 6, Outcome: autoscale.OutcomeFailed,
			OutcomeWhy: "no member can be placed",
		},
	}
}

func policy() *domain.AutoscalingPolicyDocument {
	return &domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{
		Group: "job", Role: "worker", Min: 2, Max: 8, Interval: new(domain.Duration(7 * time.Second)),
	}}
}

func text(t *testing.T, r reading) string {
	t.Helper()
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	entries := decisions()
	r := reading{
		cluster: "lab", key: "job/worker", at: now, policy: policy(), count: new(6), entries: entries,
		last: &entries[len(entries)-1],
	}
	want := `
2026-11-20 23:50:30 to 23:57:30  stays 4, decided 85 times
  cpu           62.35  800ms old  asks for 4        62.35 of 60 is within the tolerance of 10 %
  jobs waiting  –      1m15s old  asks for nothing  stale: its last value is 1m15s old
  night         –                 asks for 2        2 until 2026-11-21 06:00 UTC

2026-11-20 23:58:30  4 → 6
  cpu                  93  800ms old  asks for 7                     93 of 60: 4 ready members × 1.55 = 7
  vertical cpus        4              recommends 2.31 (1.15 to 3.5)  90 % of the time
  vertical memory_mib  –              recommends nothing             not measured yet
  limited: 7 wanted, but at most 2 members per step: 6

2026-11-20 23:59:50 to 2026-11-21 00:00:10  6 → 8 (5 ready), held, decided 5 times: an apply holds the �[31mgroup
  cpu  120346  800ms old  asks for 8  the bus is full

2026-11-21 00:00:20  6 → 8, dry run

2026-11-21 00:00:25  6 → 8, failed: no member can be placed

policy  job/worker in cluster lab
count   6, of 2 to 8
next    a decision at 00:00:32, in 2s, and then every 7s
`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split("\n"+text(t, r), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWriteNow checks that the end says what the policy may do at the moment.
func TestWriteNow(t *testing.T) {
	ago := func(d time.Duration) *autoscale.Entry { return &autoscale.Entry{Until: now.Add(-d)} }
	for name, c := range map[string]struct {
		change func(r *reading)
		want   []string
	}{
		"a policy": {func(*reading) {}, []string{
			"policy  job/worker in cluster lab", "count   6, of 2 to 8",
			"next    a decision at 00:00:36, in 6s, and then every 7s",
		}},
		"not recorded yet": {
			func(r *reading) { r.last = ago(100 * time.Second) }, []string{"next    a decision at 00:00:35, in 5s"},
		},
		"due now": {
			func(r *reading) { r.last = ago(7 * time.Second) }, []string{"next    a decision at 00:00:30, in 0s"},
		},
		"a controller that is away": {func(r *reading) { r.last = ago(10 * time.Minute) }, []string{
			"next    a decision is overdue, at 7s intervals since 2026-11-20 23:50:30: is the controller running?",
		}},
		"one that decides once a hour": {func(r *reading) {
			r.policy.Spec.Interval = new(domain.Duration(time.Hour))
			r.last = ago(50 * time.Minute)
		}, []string{"next    a decision at 00:10:30, in 10m0s, and then every 1h0m0s"}},
		"no decision yet": {
			func(r *reading) { r.last = nil },
			[]string{"No decisions recorded yet.\n\npolicy  job/worker", "next    the first decision, once"},
		},
		"none in this time": {func(*reading) {}, []string{"No decisions recorded in this period.\n\n"}},
		"paused": {
			func(r *reading) { r.policy.Spec.Paused = domain.PauseAll }, []string{"paused  all: the count stays"},
		},
		"paused out": {
			func(r *reading) { r.policy.Spec.Paused = domain.PauseOut }, []string{"paused  out: no members are added"},
		},
		"paused in": {
			func(r *reading) { r.policy.Spec.Paused = domain.PauseIn }, []string{"paused  in: no members are removed"},
		},
		"a dry run": {
			func(r *reading) { r.policy.Spec.DryRun = true },
			[]string{"dry run  decisions are recorded, but not carried out", "count    6, of 2 to 8"},
		},
		"hooks": {func(r *reading) {
			r.policy.Spec.Hooks = domain.ScalingHooks{
				BeforeRemoval: &domain.ScalingHook{Timeout: new(domain.Duration(2 * time.Hour))},
			}
			r.hooks = []domain.HookCall{
				{
					ID: "7k2", Moment: domain.BeforeRemoval, From: 6, To: 4, Called: now.Add(-20 * time.Second),
					Progress: "62 %\x1b",
				}, {ID: "8a3", Moment: domain.AfterAddition, From: 4, To: 6},
			}
		}, []string{
			"hook    before_removal is running for change 7k2, 6 → 4: 62 %\uFFFD; since 00:00:10, until 02:00:10 at the latest\n",
			"hook    after_addition is yet to be called for change 8a3, 4 → 6\n",
		}},
		"its end": {
			func(r *reading) { r.policy.Ending = true }, []string{"next    no decision: the policy is being destroyed"},
		},
		"no role": {func(r *reading) { r.count = nil }, []string{"count   –, of 2 to 8"}},
		"no policy any more": {
			func(r *reading) { r.policy = nil },
			[]string{"policy  job/worker in cluster lab\ncount   6; its policy no longer exists\n"},
		},
	} {
		r := reading{
			cluster: "lab", key: "job/worker", at: now, policy: policy(), count: new(6), last: ago(time.Second),
		}
		c.change(&r)
		got := text(t, r)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, got)
			}
		}
		if strings.Contains(got, "paused") != strings.HasPrefix(name, "paused") ||
			strings.Contains(got, "dry run") != (name == "a dry run") {
			t.Errorf("%s: it is said to be paused or a dry run:\n%s", name, got)
		}
	}
}
