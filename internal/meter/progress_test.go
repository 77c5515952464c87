package meter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// steps returns lines that report these steps.
func steps(numbers ...int) []string {
	var lines []string
	for _, n := range numbers {
		lines = append(lines, fmt.Sprintf("step %d loss 0.5", n), "saving…")
	}
	return lines
}

func TestRateOf(t *testing.T) {
	repeated := func(line string, n int) []string { return slices.Repeat([]string{line}, n) }
	for name, test := range map[string]struct {
		pattern string
		lines   []string
		elapsed time.Duration
		want    float64
		why     string
	}{
		"lines": {
			"done", append(repeated("batch done", 15), "saving"), 30 * time.Second, 0.5, "",
		},
		"one line": {"done", []string{"done"}, 10 * time.Second, 0.1, ""},
		"no line": {
			"done", []string{"saving"}, 10 * time.Second, 0, "no line of its log in the last 10s matches",
		},
		"nothing":          {"done", nil, 10 * time.Second, 0, "no line of its log in the last 10s matches"},
		"steps":            {`step (?P<step>\d+)`, steps(1, 2, 3, 4, 5), 10 * time.Second, 0.5, ""},
		"every tenth step": {`step (?P<step>\d+)`, steps(110, 120, 130), 30 * time.Second, 1, ""},
		"one step": {
			`step (?P<step>\d+)`, steps(7), 30 * time.Second, 0,
			"has only one step in the last 30s: set a longer window",
		},
		"the same step":            {`step (?P<step>\d+)`, steps(7, 7, 7), 30 * time.Second, 0, ""},
		"from the beginning again": {`step (?P<step>\d+)`, steps(98, 99, 100, 1, 2, 3), 6 * time.Second, 1, ""},
		"each epoch anew":          {`step (?P<step>\d+)`, steps(1, 2, 3, 1, 2, 3, 1, 2, 3), 9 * time.Second, 1, ""},
		"once more from a checkpoint": {
			`step (?P<step>\d+)`, steps(99, 100, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101), 13 * time.Second,
			2.0 / 12, "",
		},
		"printed by two processes": {
			`step (?P<step>\d+)`, steps(100, 99, 101, 100, 102, 101), 3 * time.Second, 2.0 / 5 * 2, "",
		},
		"only beginnings": {
			`step (?P<step>\d+)`, steps(8, 4, 2, 1), 4 * time.Second, 0, "has only one step",
		},
		"parts of steps": {
			`epoch (?P<step>[\d.]+)`, []string{"epoch 0.25", "epoch 0.5"}, time.Second, 0.5, "",
		},
		"two kinds of lines": {
			`it (?P<step>\d+)|step (?P<step>\d+)`, []string{"it 1", "step 2", "it 3"}, 3 * time.Second, 1, "",
		},
		"no numbers": {
			`step (?P<step>\S+)`, []string{"step one", "step two", "step NaN", "step -3", "step Inf"}, 3 * time.Second,
			0, "no line of its log in the last 3s matches",
		},
		"a step that may be left out": {
			`step( (?P<step>\d+))?`, []string{"step", "step 1", "step", "step 3"}, 2 * time.Second, 2, "",
		},
		"too large":      {`(?P<step>\S+)`, []string{"0", "1.7e308"}, time.Second, 0, "too large"},
		"too many lines": {"done", repeated("done", maxLines), 30 * time.Second, 0, "at least 20000 lines in 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := rateOf(test.lines, regexp.MustCompile(test.pattern), test.elapsed)
			if math.Abs(got-test.want) > 1e-9 || !strings.Contains(why, test.why) || (why == "") != (test.why == "") {
				t.Errorf("the rate is %v (%s), want %v (%s)", got, why, test.want, test.why)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	two := jobOf(running("worker", 0), running("worker", 1), running("ps", 0),
		in(domain.StatePending, running("worker", 2)))
	both := map[string][]string{
		"job-worker-0": slices.Repeat([]string{"done"}, 30), "job-worker-1": slices.Repeat([]string{"done"}, 60),
		"job-ps-0": slices.Repeat([]string{"done"}, 90),
	}
	one := map[string][]string{"job-worker-0": both["job-worker-0"], "job-worker-1": {"waiting"}}
	for name, test := range map[string]struct {
		observation Observation
		lines       map[string][]string
		source      domain.ProgressSource
		want        autoscale.Measurement
	}{
		"of all": {two, both, domain.ProgressSource{Pattern: "done"}, autoscale.Measurement{
			Value: 3, At: noon, Members: map[string]float64{"job-worker-0": 1, "job-worker-1": 2},
		}},
		"of the fastest": {
			two, both, domain.ProgressSource{Pattern: "done", Combine: domain.CombineMax},
			autoscale.Measurement{Value: 2, At: noon},
		},
		"of all that report the same": {
			two, both, domain.ProgressSource{Pattern: "done", Combine: domain.CombineMean},
			autoscale.Measurement{Value: 1.5, At: noon},
		},
		"of the same, of which one is silent": {two, one,
			domain.ProgressSource{Pattern: "done", Combine: domain.CombineMean}, autoscale.Measurement{
				Why: "unknown for 1 of 2 members, such as job-worker-1: no line of its log in the last 30s matches",
			}},
		"of another role": {
			two, both, domain.ProgressSource{Pattern: "done", Role: "ps"},
			autoscale.Measurement{Value: 3, At: noon, Members: map[string]float64{"job-ps-0": 3}},
		},
		"of all, one of which is silent": {two, one, domain.ProgressSource{Pattern: "done"}, autoscale.Measurement{
			Why: "unknown for 1 of 2 members, such as job-worker-1: no line of its log in the last 30s matches",
		}},
		"of the one that writes": {
			two, one, domain.ProgressSource{Pattern: "done", Combine: domain.CombineMax},
			autoscale.Measurement{Value: 1, At: noon},
		},
		"of nobody who writes": {
			two, one, domain.ProgressSource{Pattern: "gone", Combine: domain.CombineMax},
			autoscale.Measurement{Why: "unknown for 2 of 2 members, such as job-worker-0: no line"},
		},
		"of one whose log can't be read": {
			two, nil, domain.ProgressSource{Pattern: "done"},
			autoscale.Measurement{Why: `such as job-worker-0: member "job-worker-0": not found`},
		},
		"of nobody": {
			jobOf(), both, domain.ProgressSource{Pattern: "done"},
			autoscale.Measurement{Why: "no member of role worker is running"},
		},
		"of no group": {
			Observation{}, both, domain.ProgressSource{Pattern: "done"},
			autoscale.Measurement{Why: "there is no group"},
		},
		"by what is no pattern, whyever so": {
			two, both, domain.ProgressSource{Pattern: "("}, autoscale.Measurement{Why: "invalid pattern"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, patient(writes(test.lines)), test.observation,
				Question{Source: domain.ScalingSource{Progress: &test.source}})
			if test.want.Why != "" {
				missed(t, got, test.want.Why)
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the measurement differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A log is read for the window, but not from before the member's last start.
func TestProgressOfAWindow(t *testing.T) {
	young := running("worker", 1)
	young.StartedAt = new(noon.Add(-20 * time.Second))
	e := writes(map[string][]string{"job-worker-0": steps(10, 20), "job-worker-1": steps(10, 20)})
	got := read(t, patient(e), jobOf(running("worker", 0), young), Question{
		Source: domain.ScalingSource{Progress: &domain.ProgressSource{Pattern: `step (?P<step>\d+)`}},
		Window: new(domain.Duration(40 * time.Second)),
	})
	if diff := cmp.Diff(autoscale.Measurement{
		Value: 1.5, At: noon, Members: map[string]float64{"job-worker-0": 0.5, "job-worker-1": 1},
	}, got); diff != "" {
		t.Errorf("the measurement differs (-want +got):\n%s", diff)
	}
	if calls, want := fmt.Sprint(
		e.calls(),
	), "[log of job-worker-0 since 11:59:20 log of job-worker-1 since 11:59:40]"; calls != want {
		t.Errorf("%s, want %s", calls, want)
	}
}

// A host whose logs hang does not affect those of others.
func TestProgressOfAHostThatHangs(t *testing.T) {
	t.Parallel()
	var members []domain.Observed
	for i := range 3 * logsAtOnce {
		o := running("worker", i)
		if i > 0 {
			o.Host = "gpu2"
		}
		members = append(members, o)
	}
	e := &fake{logs: func(ctx context.Context, member string, options engine.LogOptions) ([]string, error) {
		if options.Tail != maxLines {
			t.Errorf("%d lines are asked for", options.Tail)
		}
		if member == "job-worker-0" {
			return slices.Repeat([]string{"done"}, 30), nil
		}
		<-ctx.Done()
		return nil, errors.New("the host does not answer")
	}}
	var got autoscale.Measurement
	inTime(func(limit time.Duration) (late bool) {
		m := New(e)
		m.Limit = limit
		got = read(t, m, jobOf(members...), Question{
			Source: domain.ScalingSource{Progress: &domain.ProgressSource{Pattern: "done", Combine: domain.CombineMax}},
		})
		return got.Why != ""
	}, time.Second)
	if got.Value != 1 || got.Why != "" {
		t.Errorf("the progress is %+v", got)
	}
}

// Whatever a pattern matches in any log, the rate is a number, or there is a reason why there is none.
func FuzzRateOf(f *testing.F) {
	for _, log := range []string{
		"step 1\nstep 2", "step 9\nstep 1\n\nstep x", "step 1e308\nstep 0\nstep 1e308", "step \xff\nstep ١",
	} {
		f.Add(`step (?P<step>\S+)`, log)
		f.Add(`s(?P<step>.*)|(?P<step>\d)`, log)
		f.Add("step", log)
	}
	f.Fuzz(func(t *testing.T, pattern, log string) {
		compiled, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 {
			t.Skip()
		}
		rate, why := rateOf(strings.Split(log, "\n"), compiled, 30*time.Second)
		if !(rate >= 0) || math.IsInf(rate, 0) || why != "" && rate != 0 {
			t.Errorf("the rate is %v (%s)", rate, why)
		}
	})
}
