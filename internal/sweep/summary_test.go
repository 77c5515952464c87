package sweep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// took returns a run that succeeded after some seconds.
func took(s float64) domain.Run {
	return domain.Run{State: domain.RunSucceeded, Attempts: 1, StartedAt: new(noon), FinishedAt: new(at(s))}
}

func TestSummarise(t *testing.T) {
	failed := domain.Run{State: domain.RunFailed, Reason: "exit code 3"}
	for name, test := range map[string]struct {
		runs     map[string]domain.Run
		text     string
		bad      string
		mean     time.Duration
		left     time.Duration
		knows    bool
		hasEnded bool
	}{
		"nothing is remembered": {nil, "10 queued", "", 0, 0, false, false},
		"some are on": {
			map[string]domain.Run{
				"r0": took(60), "r1": took(120), "r2": running("a", noon), "r3": running("a", noon), "r4": failed,
			},
			"5 queued, 2 running, 2 succeeded, 1 failed", "r4: exit code 3", 90 * time.Second,
			45*time.Second + 90*time.Second*5/2, true, false,
		},
		"one is paused": {
			map[string]domain.Run{"r0": {State: domain.RunPaused}, "r1": took(60), "r2": running("a", noon)},
			"7 queued, 1 running, 1 paused, 1 succeeded", "",
			time.Minute, 0, false, false,
		},
		"none is on": {
			map[string]domain.Run{"r0": took(60)}, "9 queued, 1 succeeded", "", time.Minute, 0, false, false,
		},
		// The times of two of them are unknown, or make no sense.
		"times that are not known": {
			map[string]domain.Run{
				"r0": took(60), "r1": {State: domain.RunSucceeded}, "r2": took(-60), "r3": running("a", noon),
			},
			"6 queued, 1 running, 3 succeeded", "", 30 * time.Second, 15*time.Second + 6*30*time.Second, true, false,
		},
		"many did not succeed": {
			map[string]domain.Run{
				"r0": failed, "r1": failed, "r2": failed, "r3": {State: domain.RunOutOfMemory},
				"r4": {State: domain.RunCancelled, Reason: "too many"}, "r5": failed,
				"r6": failed, "r7": took(1), "r8": took(1), "r9": took(1),
			},
			"3 succeeded, 5 failed, 1 out_of_memory, 1 cancelled",
			"r0: exit code 3; r1: exit code 3; r2: exit code 3; r3: out_of_memory; r4: too many; and 2 more",
			time.Second, 0, true, true,
		},
		"one of another environment": {
			map[string]domain.Run{
				"r0": {State: domain.RunSucceeded, Seal: "other", StartedAt: new(noon), FinishedAt: new(at(1))},
			}, "10 queued", "", 0, 0, false, false,
		},
		"one that the sweep does not have": {
			map[string]domain.Run{"gone": failed}, "10 queued", "", 0, 0, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(sweepOf("lr", 10)).with(test.runs)
			got := Summarise(q.Document, q.Spec, q.Runs)
			if got.Total != 10 || got.String() != test.text || got.Unsuccessful != test.bad ||
				got.MeanRuntime != test.mean || got.Ended() != test.hasEnded {
				t.Errorf("it is %+v, %s", got, got)
			}
			if left, known := got.Left(); known != test.knows || left.Round(time.Millisecond) != test.left {
				t.Errorf("%s are left, which is known: %v; want %s, %v", left, known, test.left, test.knows)
			}
		})
	}
}

func TestNow(t *testing.T) {
	q := queueOf(sweepOf("lr", 1))
	own := q.Spec.Run("r0")
	on := domain.Run{State: domain.RunRunning, Revision: 1, Seal: Seal(own), Attempts: 2}
	queued := domain.Run{State: domain.RunQueued}
	for name, test := range map[string]struct{ run, want domain.Run }{
		"nothing is remembered": {domain.Run{}, queued}, "it is on": {on, on},
		"of another environment": {domain.Run{State: domain.RunSucceeded, Revision: 1}, queued},
		"of before":              {domain.Run{State: domain.RunFailed, Seal: Seal(own)}, queued},
	} {
		if diff := cmp.Diff(test.want, Now(q.Document, own, test.run)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRanked(t *testing.T) {
	runs := map[string]domain.Run{"none": {}}
	for i, value := range []float64{0.5, -1, 0.75, 0.5, 0} {
		runs[fmt.Sprintf("r%d", i)] = domain.Run{State: domain.RunSucceeded, Value: &value}
	}
	for goal, want := range map[domain.Goal]string{
		"": "r2 r0 r3 r4 r1", domain.GoalMaximise: "r2 r0 r3 r4 r1", domain.GoalMinimise: "r1 r4 r0 r3 r2",
	} {
		if diff := cmp.Diff(strings.Fields(want), Ranked(domain.Objective{Goal: goal}, runs)); diff != "" {
			t.Errorf("%q: the best first (-want +got):\n%s", goal, diff)
		}
	}
	if got := Ranked(domain.Objective{}, nil); len(got) > 0 {
		t.Errorf("of none the best are %v", got)
	}
}

func TestReason(t *testing.T) {
	for name, test := range map[string]struct {
		run         domain.Run
		waits, want string
	}{
		"ended": {domain.Run{State: domain.RunFailed, Reason: "exit code 3"}, "no room", "exit code 3"},
		"waits": {domain.Run{State: domain.RunQueued}, "no room", "no room"},
		"waits again": {
			domain.Run{State: domain.RunQueued, Reason: "exit code 3"}, "no room", "exit code 3; no room",
		},
		"waits for its delay": {
			domain.Run{State: domain.RunQueued, Reason: "exit code 3", NotBefore: new(at(60))}, "no room",
			"exit code 3; the next attempt is due at 2026-11-24T12:01:00Z",
		},
		"is about to start": {domain.Run{State: domain.RunQueued, Reason: "exit code 3"}, "", "exit code 3"},
	} {
		if got := Reason(domain.Retry{}, test.run, test.waits, noon); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
