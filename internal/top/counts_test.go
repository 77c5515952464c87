package top

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// autoscaled returns the lab with policies for the roles of its group, and one for a group that does not exist.
func autoscaled() state {
	s := lab()
	job := s.reading.Groups["job"]
	job.Counts = map[string]int{"ps": 1, "worker": 4}
	s.reading.Groups["job"] = job
	s.reading.Policies = map[string]domain.AutoscalingPolicyDocument{}
	for _, p := range []domain.AutoscalingPolicy{
		{Group: "job", Role: "worker", Min: 2, Max: 8, Paused: domain.PauseNone},
		{Group: "job", Role: "ps", Min: 2, Max: 4, Paused: domain.PauseAll, DryRun: true},
		{Group: "other", Role: "worker", Min: 1, Max: 2},
	} {
		s.reading.Policies[p.Key()] = domain.AutoscalingPolicyDocument{Spec: p}
	}
	return s
}

func TestCounts(t *testing.T) {
	s := autoscaled()
	got := shown(s.frame(byName, 0))
	_, got, _ = strings.Cut(got, "\nGROUP")
	got, _, _ = strings.Cut(got, "\n\n")
	want := `
GROUP AND MEMBERS  STATE                           CPUS   MEMORY  GPU MEMORY  HOST  RESTARTS
job                2 running, 1 failed, 1 missing  7.75  4.2 GiB           –
  ps 1/2–4         paused, dry run
  worker 4/2–8     autoscaled
  job-ps-0         running                         0.50  200 MiB           –  gpu1
  job-worker-2     running                         7.25  4.0 GiB     9.0 GiB  gpu1
  job-worker-3     missing                            –        –           –  gpu2
  job-worker-10    failed                             –        –           –  gpu2         3`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split("\nGROUP"+got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHooksAtWork checks that hooks at work are shown with their progress.
func TestHooksAtWork(t *testing.T) {
	s, at := autoscaled(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s.reading.Hooks = map[string]domain.HookCallsDocument{
		"job/worker": {Calls: []domain.HookCall{
			{Moment: domain.BeforeRemoval, Called: at, Progress: "62 %"},
			{Moment: domain.AfterAddition, Called: at, Progress: "3 of 7 partitions are at \x1b[2Jtheir place"},
			{Moment: domain.AfterAddition},
		}},
		"job/ps": {Calls: []domain.HookCall{{Moment: domain.AfterAddition, Called: at}}},
	}
	got := shown(s.frame(byName, 0))
	for _, want := range []string{
		"  worker 4/2–8     autoscaled, before_removal: 62 %, after_addition: 3 of 7 partitions are a…",
		"  ps 1/2–4         paused, dry run, after_addition\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestSilentGuards checks that guards that have never had a value are shown, and that the notes say why.
func TestSilentGuards(t *testing.T) {
	s := autoscaled()
	s.reading.Silent = map[string]domain.SilentGuardsDocument{"job/worker": {Guards: []domain.SilentGuard{
		{
			Name: domain.GuardBusyHTTP, Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
			Why: "http://spark/json/: HTTP 404",
		},
	}}}
	got := shown(s.frame(byName, 0))
	for _, want := range []string{
		"  worker 4/2–8     autoscaled, no value for busy.http\n",
		"guard busy.http of job/worker: queried since 2026-11-20T12:00:00Z, it has never had a value, so no members are removed: http://spark/json/: HTTP 404. Check its URL and path\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestCount(t *testing.T) {
	four := line{{"  worker ", plain}, {"4", plain}, {"/2–8", plain}}
	for name, c := range map[string]struct {
		policy domain.AutoscalingPolicy
		count  line
		state  line
	}{
		"within the bounds": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8},
			line{{"  worker ", plain}, {"4", plain}, {"/2–8", plain}}, text("autoscaled", faint),
		},
		"too few": {
			domain.AutoscalingPolicy{Role: "worker", Min: 5, Max: 8},
			line{{"  worker ", plain}, {"4", warning}, {"/5–8", plain}}, text("autoscaled", faint),
		},
		"too many": {
			domain.AutoscalingPolicy{Role: "worker", Min: 0, Max: 3},
			line{{"  worker ", plain}, {"4", warning}, {"/0–3", plain}}, text("autoscaled", faint),
		},
		"no such role": {
			domain.AutoscalingPolicy{Role: "chief", Min: 1, Max: 2},
			line{{"  chief ", plain}, {"–", faint}, {"/1–2", plain}}, text("autoscaled", faint),
		},
		"paused": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8, Paused: domain.PauseAll}, four,
			text("paused", warning),
		},
		"paused out": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8, Paused: domain.PauseOut}, four,
			text("paused (out)", warning),
		},
		"not paused": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8, Paused: domain.PauseNone}, four,
			text("autoscaled", faint),
		},
		"a dry run": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8, DryRun: true}, four, text("dry run", warning),
		},
		"a paused dry run": {
			domain.AutoscalingPolicy{Role: "worker", Min: 2, Max: 8, Paused: domain.PauseIn, DryRun: true}, four,
			line{{"paused (in)", warning}, {", dry run", warning}},
		},
	} {
		c.policy.Group = "job"
		if diff := cmp.Diff([]line{c.count, c.state}, []line{count(autoscaled().reading, c.policy), steering(c.policy)},
			cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
