package domain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func completed(name string) Observed  { return Observed{Name: name, Run: 2, State: StateCompleted} }
func running(name string) Observed    { return Observed{Name: name, Run: 2, State: StateRunning} }
func pending(name string) Observed    { return Observed{Name: name, Run: 2, State: StatePending} }
func restarting(name string) Observed { return Observed{Name: name, Run: 2, State: StateRestarting} }

func failed(name string) Observed {
	return Observed{Name: name, Run: 2, State: StateFailed, LastError: "exit code 1 of " + name}
}

// at returns the member as ended at a second.
func at(o Observed, second int64) Observed {
	moment := time.Unix(second, 0)
	o.FinishedAt = &moment
	return o
}

func stopped(name string, reason StopReason) Observed {
	return Observed{Name: name, Run: 2, State: StateStopped, StopReason: reason}
}

// before returns the member as seen in a run before the present one.
func before(o Observed) Observed {
	o.Run = 1
	return o
}

// on returns the member with trouble on its host.
func on(o Observed, trouble string) Observed {
	o.HostTrouble = trouble
	return o
}

// using returns the member with trouble on one of its GPUs.
func using(o Observed, trouble string) Observed {
	o.GPUTrouble = trouble
	return o
}

// TestProgressOfNobody checks that a group that should have no members is running.
func TestProgressOfNobody(t *testing.T) {
	if got := (CompletionRule{When: WhenAll}).Progress(nil, 1, nil); got != (Progress{Phase: PhaseRunning}) {
		t.Errorf("the group is %+v", got)
	}
}

// TestProgress uses groups that should consist of ps, w0 and w1, started in run 2 or later.
func TestProgress(t *testing.T) {
	never := CompletionRule{When: WhenNever}
	chief := CompletionRule{When: WhenChief, Members: []string{"w0"}}
	all := CompletionRule{When: WhenAll, Members: []string{"w0", "w1"}}
	either := CompletionRule{When: WhenAny, Members: []string{"w0", "w1"}}
	timed := CompletionRule{When: WhenAll, Members: []string{"w0", "w1"}, Deadline: seconds(90)}
	degraded := func(reason string) Progress { return Progress{PhaseDegraded, reason} }

	for _, c := range []struct {
		name     string
		rule     CompletionRule
		observed []Observed
		want     Progress
	}{
		{"nothing there", all, nil, Progress{Phase: PhasePending}},
		{"all pending", all, []Observed{pending("ps"), pending("w0"), pending("w1")}, Progress{Phase: PhasePending}},
		{"one pending", all, []Observed{running("ps"), running("w0"), pending("w1")}, Progress{Phase: PhasePending}},
		{"all run", all, []Observed{running("ps"), running("w0"), running("w1")}, Progress{Phase: PhaseRunning}},
		{
			"one has completed", all, []Observed{running("ps"), running("w0"), completed("w1")},
			Progress{Phase: PhaseRunning},
		},
		{
			"members of no concern", all, []Observed{running("ps"), running("w0"), running("w1"), failed("w2")},
			Progress{Phase: PhaseRunning},
		},

		{"one missing", all, []Observed{running("ps"), running("w0")}, degraded("missing: w1")},
		{"one missing, one pending", all, []Observed{running("ps"), pending("w0")}, degraded("missing: w1")},
		{"one restarting", all, []Observed{running("ps"), restarting("w0"), running("w1")}, degraded("restarting: w0")},
		{"a server failed", all, []Observed{failed("ps"), running("w0"), running("w1")}, degraded("failed: ps")},
		{
			"one stopped", all, []Observed{stopped("ps", StopCompleted), running("w0"), running("w1")},
			degraded("stopped: ps"),
		},
		{
			"each in its own way", never,
			[]Observed{failed("w1"), restarting("ps")},
			degraded("missing: w0; failed: w1; restarting: ps"),
		},
		{
			"names are sorted", never, []Observed{failed("w1"), failed("w0"), failed("ps")},
			degraded("failed: ps, w0, w1"),
		},

		{
			"chief completed", chief, []Observed{running("ps"), completed("w0"), running("w1")},
			Progress{Phase: PhaseCompleted},
		},
		{
			"the other completed", chief, []Observed{running("ps"), running("w0"), completed("w1")},
			Progress{Phase: PhaseRunning},
		},
		{
			"chief failed", chief, []Observed{running("ps"), failed("w0"), completed("w1")},
			Progress{PhaseFailed, "failed: w0: exit code 1 of w0"},
		},
		{"the other failed", chief, []Observed{running("ps"), running("w0"), failed("w1")}, degraded("failed: w1")},
		{"chief missing", chief, []Observed{running("ps"), running("w1")}, degraded("missing: w0")},
		{"chief alone is left", chief, []Observed{completed("w0")}, Progress{Phase: PhaseCompleted}},

		{
			"all completed", all, []Observed{stopped("ps", StopCompleted), completed("w0"), completed("w1")},
			Progress{Phase: PhaseCompleted},
		},
		{
			"one of all failed", all, []Observed{running("ps"), completed("w0"), failed("w1")},
			Progress{PhaseFailed, "failed: w1: exit code 1 of w1"},
		},
		{
			"all failed", all, []Observed{running("ps"), failed("w1"), failed("w0")},
			Progress{PhaseFailed, "failed: w0, w1: exit code 1 of w0"},
		},
		{
			"all failed, the second first", all, []Observed{running("ps"), at(failed("w0"), 20), at(failed("w1"), 10)},
			Progress{PhaseFailed, "failed: w0, w1: exit code 1 of w1"},
		},
		{
			"all failed, one at an unknown time", all, []Observed{running("ps"), failed("w0"), at(failed("w1"), 10)},
			Progress{PhaseFailed, "failed: w0, w1: exit code 1 of w1"},
		},
		{
			"all but a stopped one", all, []Observed{running("ps"), completed("w0"), stopped("w1", StopFailed)},
			degraded("stopped: w1"),
		},

		{
			"any completed", either, []Observed{running("ps"), failed("w0"), completed("w1")},
			Progress{Phase: PhaseCompleted},
		},
		{"one of any failed", either, []Observed{running("ps"), failed("w0"), running("w1")}, degraded("failed: w0")},
		{
			"none of any is left", either, []Observed{running("ps"), failed("w0"), failed("w1")},
			Progress{PhaseFailed, "failed: w0, w1: exit code 1 of w0"},
		},

		{"never completes", never, []Observed{running("ps"), completed("w0"), running("w1")}, degraded("ended: w0")},
		{"never fails", never, []Observed{running("ps"), failed("w0"), running("w1")}, degraded("failed: w0")},
		{
			"a rule without members", CompletionRule{When: WhenAll},
			[]Observed{running("ps"), completed("w0"), completed("w1")}, Progress{Phase: PhaseRunning},
		},

		{
			"host down", all, []Observed{running("ps"), on(running("w0"), "host gpu1 is down"), running("w1")},
			degraded("host gpu1 is down: w0"),
		},
		{
			"hosts down and paused", all,
			[]Observed{
				on(restarting("ps"), "host gpu2 is paused"), on(pending("w1"), "host gpu1 is down"),
				on(running("w0"), "host gpu1 is down"),
			},
			degraded("host gpu1 is down: w0, w1; host gpu2 is paused: ps"),
		},
		{
			"host down, one missing", all, []Observed{on(running("ps"), "host gpu1 is down"), running("w0")},
			degraded("host gpu1 is down: ps; missing: w1"),
		},
		{
			"all wait for a host", all, []Observed{on(pending("ps"), "host a is down"), pending("w0"), pending("w1")},
			degraded("host a is down: ps"),
		},
		{
			"host down, member failed before", all,
			[]Observed{on(failed("ps"), "host a is down"), running("w0"), running("w1")}, degraded("failed: ps"),
		},
		{
			"host down, member completed before", all,
			[]Observed{running("ps"), on(completed("w0"), "host a is down"), running("w1")},
			Progress{Phase: PhaseRunning},
		},
		{
			"host down, group completed", all,
			[]Observed{on(running("ps"), "host a is down"), completed("w0"), completed("w1")},
			Progress{Phase: PhaseCompleted},
		},
		{
			"host down, group failed", all,
			[]Observed{on(running("ps"), "host a is down"), completed("w0"), failed("w1")},
			Progress{PhaseFailed, "failed: w1: exit code 1 of w1"},
		},
		{
			"host of a member of no concern", all,
			[]Observed{running("ps"), running("w0"), running("w1"), on(running("w2"), "host a is down")},
			Progress{Phase: PhaseRunning},
		},

		{
			"GPU in trouble", all,
			[]Observed{running("ps"), using(running("w0"), "GPU-1 of host a (fallen off the bus)"), running("w1")},
			degraded("GPU-1 of host a (fallen off the bus): w0"),
		},
		{
			"GPU in trouble on a host that is down", all,
			[]Observed{
				running("ps"), on(using(running("w0"), "GPU-1 of host a (fallen off the bus)"), "host a is down"),
				using(restarting("w1"), "GPU-1 of host a (fallen off the bus)"),
			},
			degraded("GPU-1 of host a (fallen off the bus): w1; host a is down: w0"),
		},
		{
			"GPU in trouble, member completed before", all,
			[]Observed{running("ps"), using(completed("w0"), "GPU-1 of host a (no longer found)"), running("w1")},
			Progress{Phase: PhaseRunning},
		},

		{
			"past the deadline", timed,
			[]Observed{running("ps"), stopped("w0", StopDeadline), stopped("w1", StopDeadline)},
			Progress{PhaseFailed, "not completed within its deadline of 1m30s"},
		},
		{
			"the deadline of an older run", timed,
			[]Observed{running("ps"), before(stopped("w0", StopDeadline)), running("w1")},
			Progress{Phase: PhasePending},
		},
		{
			"completion of an older run", chief, []Observed{running("ps"), before(completed("w0")), running("w1")},
			Progress{Phase: PhasePending},
		},
		{
			"failure of an older run", all, []Observed{running("ps"), before(failed("w0")), running("w1")},
			Progress{Phase: PhasePending},
		},
		{
			"running since an older run", all, []Observed{running("ps"), before(running("w0")), running("w1")},
			Progress{Phase: PhasePending},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.rule.Progress([]string{"ps", "w0", "w1"}, 2, c.observed)); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhaseEnded(t *testing.T) {
	for phase, want := range map[Phase]bool{
		PhasePending: false, PhaseRunning: false, PhaseDegraded: false, PhaseCompleted: true, PhaseFailed: true,
	} {
		if phase.Ended() != want {
			t.Errorf("%s has ended: %v", phase, phase.Ended())
		}
	}
}

func TestEnumerate(t *testing.T) {
	for want, names := range map[string]string{
		"":                          "",
		"a":                         "a",
		"a, b, c, d, e":             "e d c b a",
		"a, b, c, d, e and 1 more":  "f e d c b a",
		"a, b, c, d, e and 21 more": "a b c d e f g h i j k l m n o p q r s t u v w x y z",
	} {
		given := strings.Fields(names)
		if got := Enumerate(given); got != want {
			t.Errorf("%s is listed as %q, not %q", names, got, want)
		}
		if strings.Join(given, " ") != names {
			t.Errorf("listing changed the names to %v", given)
		}
	}
}

func TestEnumerateUsers(t *testing.T) {
	for want, users := range map[string][2][]string{
		"":                         {},
		"group mnist":              {{"mnist"}, nil},
		"sweeps lr, seeds":         {nil, {"seeds", "lr"}},
		"groups a, b and sweep lr": {{"b", "a"}, {"lr"}},
	} {
		if got := EnumerateUsers(users[0], users[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
