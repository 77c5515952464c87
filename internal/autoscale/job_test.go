package autoscale

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// jobOf returns a job from the seconds that some counts take.
func jobOf(seconds map[int]int) Job {
	j := Job{Times: map[int]time.Duration{}, Busy: 100, Signals: map[string]Signal{"progress": SignalProgress}}
	for members, took := range seconds {
		j.Times[members] = time.Duration(took) * time.Second
	}
	return j
}

// stepping returns a policy with counts from 1 that adds a member while they are busy and removes one while they are
// not, if the thresholds are given.
func stepping(initial, most int, lower, upper *float64) domain.AutoscalingPolicy {
	policy := policyOf(map[string]domain.ScalingMetric{
		"cpu": {Algorithm: domain.ScalingAlgorithm{Threshold: &domain.ThresholdAlgorithm{Lower: lower, Upper: upper}}},
	})
	policy.Initial, policy.Max = &initial, most
	return policy
}

func TestJobTimeWith(t *testing.T) {
	j := jobOf(map[int]int{2: 100, 4: 50, 8: 200})
	for members, want := range map[int]time.Duration{
		1: 100 * time.Second, 2: 100 * time.Second,
		3: 66667 * time.Millisecond, // half way from 1 % to 2 % per second
		4: 50 * time.Second,
		5: 61538 * time.Millisecond, // a quarter of the way from 2 % to 0.5 %
		8: 200 * time.Second, 9: 200 * time.Second, 1000: 200 * time.Second,
	} {
		if got := j.TimeWith(members); got != want {
			t.Errorf("%d members take %s, want %s", members, got, want)
		}
	}
}

// TestRunJobWithAConstantCount checks that with a constant count a job takes what its table says, whatever a change
// would cost, and however often decisions are made.
func TestRunJobWithAConstantCount(t *testing.T) {
	j := jobOf(map[int]int{1: 1740, 2: 828, 5: 535, 10: 295, 15: 263, 20: 281, 35: 258})
	j.Startup, j.Pause = 61*time.Second, 17*time.Second
	for _, every := range []float64{1, 5, 3600} {
		for members, want := range j.Times {
			policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
			policy.Min, policy.Max, policy.Interval = members, members, seconds(every)
			run, err := RunJob(policy, j)
			if err != nil {
				t.Fatal(err)
			}
			off := math.Abs(run.MemberSeconds - float64(members)*want.Seconds())
			if run.Took != want || run.Changes() != 0 || run.Last() != members || off > 1e-3 {
				t.Errorf("%d members, a decision every %g s: %s, %g member-seconds, %d changes", members, every,
					run.Took, run.MemberSeconds, run.Changes())
			}
		}
	}
}

func TestRunJob(t *testing.T) {
	three := map[int]int{1: 100, 2: 50, 3: 40}
	for name, test := range map[string]struct {
		policy         domain.AutoscalingPolicy
		startup, pause time.Duration
		busy           float64
		took           time.Duration
		memberSeconds  float64
		changes        int
	}{
		"a change costs nothing": {stepping(1, 2, nil, new(50.0)), 0, 0, 100, 50 * time.Second, 100, 1},
		// One member does a tenth in 10 s, nothing happens until 15 s, and two do the rest in 45 s.
		"out": {stepping(1, 2, nil, new(50.0)), 10 * time.Second, 5 * time.Second, 100, time.Minute, 120, 1},
		// The third member is ordered at 5 s and ready at 15 s, in the pause caused by the second one, which starts
		// over and lasts until 23 s.
		"out in a pause": {
			stepping(1, 3, nil, new(50.0)), 10 * time.Second, 8 * time.Second, 100, 59 * time.Second, 2*5 + 3*54, 2,
		},
		"in": {stepping(2, 2, new(50.0), nil), 10 * time.Second, 5 * time.Second, 40, 105 * time.Second, 105, 1},
		// It is paid for, and makes no difference.
		"ready when all is done": {
			stepping(1, 2, nil, new(50.0)), 100 * time.Second, time.Minute, 100, 100 * time.Second, 200, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := jobOf(three)
			j.Startup, j.Pause, j.Busy = test.startup, test.pause, test.busy
			run, err := RunJob(test.policy, j)
			if err != nil {
				t.Fatal(err)
			}
			if run.Took != test.took || run.Changes() != test.changes ||
				math.Abs(run.MemberSeconds-test.memberSeconds) > 1e-3 {
				t.Errorf("%s, %g member-seconds and %d changes, want %s, %g and %d",
					run.Took, run.MemberSeconds, run.Changes(), test.took, test.memberSeconds, test.changes)
			}
		})
	}
}

// TestJobUtilisation checks that utilisation comes from the work: members that each progress more slowly are less busy.
func TestJobUtilisation(t *testing.T) {
	j := jobOf(map[int]int{1: 100, 4: 50})
	j.Busy = 80
	policy := stepping(4, 4, nil, new(41.0))
	policy.Min = 4
	scaler := scalerOf(t, policy)
	s := jobSimulation{scaler: scaler, job: j, counts: []int{1, 4}, now: noon, crew: crew{count: 4, ready: 4}}
	var run JobRun
	for _, test := range []struct {
		paused bool
		want   float64
	}{{false, 40}, {true, 0}} {
		s.decide(&run, test.paused)
		if got := s.decision.Asked[0].Value; got != test.want {
			t.Errorf("the utilisation is %g %%, want %g %%", got, test.want)
		}
	}
	s.ready = 0
	if s.decide(&run, false); s.decision.Asked[0].Known {
		t.Error("without members there is a utilisation")
	}
}

// TestRunJobsGoOn checks that a policy remembers what it learned in earlier runs, and continues with the count.
func TestRunJobsGoOn(t *testing.T) {
	j := jobOf(map[int]int{1: 1000, 2: 500, 4: 250, 6: 240})
	j.Startup, j.Pause = 30*time.Second, 10*time.Second
	policy := policyOf(map[string]domain.ScalingMetric{
		"progress": {Algorithm: domain.ScalingAlgorithm{
			MarginalGain: &domain.MarginalGainAlgorithm{Threshold: 0.1, Settle: seconds(200)},
		}},
	})
	runs, err := RunJobs(policy, j, 8)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range runs {
		if first := run.Steps[0]; i > 0 && (first.To != runs[i-1].Last() || !first.At.After(runs[i-1].Steps[0].At)) {
			t.Errorf("run %d begins at %s with %d members, after %d", i+1, first.At, first.To, runs[i-1].Last())
		}
		for _, step := range run.Steps {
			if step.To < policy.Min || step.To > policy.Max {
				t.Errorf("run %d has %d members", i+1, step.To)
			}
		}
	}
	if last := runs[len(runs)-1]; last.Took != 250*time.Second || last.Last() != 4 || last.Changes() != 0 {
		t.Errorf("the last run takes %s with %d members and %d changes", last.Took, last.Last(), last.Changes())
	}
	again, err := RunJobs(policy, j, 8)
	if diff := cmp.Diff(runs, again); diff != "" || err != nil {
		t.Errorf("the same runs differ: %v\n%s", err, diff)
	}
	one, err := RunJob(policy, j)
	if diff := cmp.Diff(runs[0], one); diff != "" || err != nil {
		t.Errorf("one run is another one than the first of several: %v\n%s", err, diff)
	}
}

func TestRunJobRefuses(t *testing.T) {
	good, simple := stepping(1, 2, nil, new(50.0)), func(change func(*Job)) Job {
		j := jobOf(map[int]int{1: 100, 2: 50})
		change(&j)
		return j
	}
	// Each time that work resumes, a member is ordered, and it is removed in the pause that this causes.
	restless := stepping(1, 2, new(10.0), new(50.0))
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		job    Job
		says   string
	}{
		"no times":   {good, Job{}, "0 times"},
		"no members": {good, jobOf(map[int]int{0: 1}), "0 members"},
		"no time":    {good, jobOf(map[int]int{1: 0}), "1 members take 0s"},
		"no startup": {good, simple(func(j *Job) { j.Startup = -1 }), "a startup of -1ns"},
		"no pause":   {good, simple(func(j *Job) { j.Pause = -1 }), "a pause of -1ns"},
		"too busy":   {good, simple(func(j *Job) { j.Busy = 101 }), "101 % busy"},
		"another signal": {
			good, simple(func(j *Job) { j.Signals = map[string]Signal{"cpu": SignalQueue} }), `has no signal "queue"`,
		},
		"a bad policy":  {policyOf(nil), simple(func(*Job) {}), "metrics"},
		"never at work": {restless, simple(func(j *Job) { j.Pause = 10 * time.Second }), "does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := RunJob(test.policy, test.job); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}
