//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// off returns by which fraction the paper's autoscaler takes longer in a model than was published.
func (p publishedJob) off(t *testing.T, policy domain.AutoscalingPolicy, model autoscale.Job) float64 {
	t.Helper()
	run, err := autoscale.RunJob(policy, model)
	if err != nil {
		t.Fatal(err)
	}
	return run.Took.Seconds()/float64(p.autoscaled) - 1
}

// In the model, the reference's settings lose as they did in the paper, to within 6 %, and for as long as the
// note says.
func TestReproduction(t *testing.T) {
	for _, job := range publishedJobs {
		t.Run(job.name, func(t *testing.T) {
			r, err := job.run()
			if err != nil {
				t.Fatal(err)
			}
			if off := job.off(t, job.reference(), job.model()); math.Abs(off) > 0.06 {
				t.Errorf("heat is %+.1f %% off", 100*off)
			}
			if sooner, _, _ := job.bars(r.heat); sooner {
				t.Errorf("heat takes %s, which is sooner than two static workers", r.heat.Took)
			}
			for _, fit := range []struct {
				startup, pause time.Duration
			}{{50 * time.Second, 20 * time.Second}, {80 * time.Second, 40 * time.Second}} {
				model := job.model()
				model.Startup, model.Pause = fit.startup, fit.pause
				if off := job.off(t, job.reference(), model); math.Abs(off) > 0.09 {
					t.Errorf("with a startup of %s and a pause of %s, heat is %+.1f %% off", fit.startup, fit.pause,
						100*off)
				}
			}
			for _, busy := range []float64{25, 100} {
				model := job.model()
				model.Busy = busy
				run, err := autoscale.RunJob(job.reference(), model)
				if err != nil || run.Took != r.heat.Took {
					t.Errorf("a worker that is busy to %g %% makes %s, not %s: %v", busy, run.Took, r.heat.Took, err)
				}
			}
			if off := job.off(t, job.growing(), job.model()); off > -0.1 {
				t.Errorf("without scaling in, heat is only %+.1f %% off, and the note is wrong", 100*off)
			}
		})
	}
}

func TestOurPolicyHoldsTheBars(t *testing.T) {
	for name, test := range map[string]struct {
		job           publishedJob
		settled, knee int
		near          int // the first run from which on it is within 10 % of the best count
	}{
		"classification": {publishedJobs[0], 6, 15, 6},
		"regression":     {publishedJobs[1], 5, 9, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := test.job.run()
			if err != nil {
				t.Fatal(err)
			}
			if got := r.ours.settled() + 1; got != test.settled {
				t.Errorf("it has settled in run %d, want %d", got, test.settled)
			}
			for i, run := range r.ours {
				sooner, near, fewer := test.job.bars(run)
				if !sooner || !fewer || near != (i+1 >= test.near) {
					t.Errorf("run %d takes %s and %g member-seconds: sooner %t, near %t, fewer %t", i+1, run.Took,
						run.MemberSeconds, sooner, near, fewer)
				}
				if i+1 >= test.settled &&
					(run.Changes() != 0 || run.Last() != test.knee ||
						run.Took != test.job.model().TimeWith(test.knee)) {
					t.Errorf("run %d takes %s with %d members and %d changes", i+1, run.Took, run.Last(), run.Changes())
				}
			}
		})
	}
}

// The fitted values don't affect where our policy settles.
func TestOurPolicySettlesWhateverWasFitted(t *testing.T) {
	for _, job := range publishedJobs {
		for _, startup := range []time.Duration{0, 10 * time.Second, 2 * time.Minute} {
			for _, pause := range []time.Duration{0, 10 * time.Second, 40 * time.Second} {
				model := job.model()
				model.Startup, model.Pause = startup, pause
				runs, err := autoscale.RunJobs(ours(ourInitial, job.bound), model, 20)
				if err != nil {
					t.Fatal(err)
				}
				last := runs[len(runs)-1]
				if sooner, near, fewer := job.bars(last); last.Changes() != 0 || !sooner || !near || !fewer {
					t.Errorf("%s, startup %s, pause %s: the last run takes %s with %d members", job.name, startup,
						pause, last.Took, last.Last())
				}
			}
		}
	}
}

// Without a bound, the search for regression's knee finds the best static count.
func TestUnboundedRegression(t *testing.T) {
	r, err := publishedJobs[1].run()
	if err != nil {
		t.Fatal(err)
	}
	last := r.open[len(r.open)-1]
	if _, _, fewer := publishedJobs[1].bars(last); last.Last() != 10 || last.Took != 102*time.Second || fewer {
		t.Errorf("the last run takes %s with %d members", last.Took, last.Last())
	}
}

func TestFrom(t *testing.T) {
	runs := func(took ...int) (l learned) {
		for _, seconds := range took {
			l = append(l, autoscale.JobRun{Took: time.Duration(seconds) * time.Second})
		}
		return l
	}
	for want, l := range map[string]learned{
		"held from the first run on":        runs(1, 2, 3),
		"held from run 3 on, MISSED before": runs(1, 9, 1, 2),
		"MISSED":                            runs(1, 2, 9),
		"held from run 2 on, MISSED before": runs(9, 1),
	} {
		if got := l.from(func(run autoscale.JobRun) bool { return run.Took < 5*time.Second }); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}

// Every policy stays within its bounds on every load and under every condition, and the notes about the sums are true.
func TestPoliciesOnTraces(t *testing.T) {
	loads := generatedLoads()
	for _, condition := range conditions {
		sums := map[string]tally{}
		for _, l := range loads {
			for _, r := range rivals(l.capacity) {
				course, err := l.course(r.policy, condition.of)
				if err != nil {
					t.Fatal(err)
				}
				for i, count := range course.Counts {
					if ready := course.Ready[i]; count < leastMembers || count > mostMembers || ready < 0 ||
						ready > count {
						t.Fatalf("%s, %s, %s: %d members, %d ready", condition.name, l.name, r.name, count, ready)
					}
				}
				sum := sums[r.name]
				sum.add(tally{
					under: course.Under, memberHours: course.MemberHours, changes: course.Changes,
					reversals: course.Reversals,
				})
				sums[r.name] = sum
			}
		}
		load, foreseen := sums["target by load"], sums["target by load, forecast of 60 s"]
		target, forecast, heat, threshold := sums["target 50 %"], sums["target 50 %, forecast of 60 s"], sums["heat"],
			sums["threshold ±1 each 60 s"]
		if !slices.IsSorted(
			[]time.Duration{load.under, forecast.under, target.under, heat.under / 2, threshold.under / 2},
		) {
			t.Errorf("%s: under-provisioned for %s (by load), %s (forecast), %s (target), %s (heat) and %s (threshold)",
				condition.name, load.under, forecast.under, target.under, heat.under, threshold.under)
		}
		if load.under-foreseen.under > time.Minute {
			t.Errorf("%s: by load, a forecast saves %s", condition.name, load.under-foreseen.under)
		}
		if !slices.IsSorted(
			[]int{6 * heat.changes, 3 * load.changes, 3 * target.changes, 2 * forecast.changes, 2 * threshold.changes},
		) {
			t.Errorf("%s: %d (heat), %d (by load), %d (target), %d (forecast) and %d (threshold) changes",
				condition.name, heat.changes, load.changes, target.changes, forecast.changes, threshold.changes)
		}
		if 2*target.reversals > forecast.reversals {
			t.Errorf("%s: %d reversals, and %d with a forecast", condition.name, target.reversals, forecast.reversals)
		}
		for name, sum := range sums {
			if math.Abs(sum.memberHours/target.memberHours-1) > 0.05 {
				t.Errorf("%s, %s: %.0f member-hours, and target %.0f", condition.name, name, sum.memberHours,
					target.memberHours)
			}
		}
	}
}

// The output is deterministic.
func TestPoliciesAreDeterministic(t *testing.T) {
	show := func() string {
		var text strings.Builder
		for _, job := range publishedJobs {
			sections, err := job.sections()
			if err != nil {
				t.Fatal(err)
			}
			for _, section := range sections {
				text.WriteString(section.String())
			}
		}
		table, err := tracesTable(generatedLoads()[3:], conditions[2].of)
		if err != nil {
			t.Fatal(err)
		}
		return text.String() + table.String()
	}
	if diff := cmp.Diff(show(), show()); diff != "" {
		t.Errorf("it prints something else each time:\n%s", diff)
	}
}

func TestWorstMoment(t *testing.T) {
	shape := autoscale.Shape{
		Start: time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), Step: 5 * time.Second, Length: day, Base: 1,
		Peak: 10,
	}
	for name, test := range map[string]struct {
		trace autoscale.Trace
		want  time.Duration
	}{
		"a step":        {autoscale.StepLoad(shape, 13*time.Hour), 13 * time.Hour},
		"a crowd":       {autoscale.FlashCrowd(shape, 3*time.Hour, 0, time.Hour), 3 * time.Hour},
		"no load":       {autoscale.StepLoad(shape, 48*time.Hour), 0},
		"a short trace": {autoscale.Trace{Start: shape.Start, Step: time.Minute, Load: []float64{1, 9}}, 0},
		"a coarse trace": {
			autoscale.Trace{Start: shape.Start, Step: time.Hour, Load: []float64{1, 1, 9, 9}}, 2 * time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := worstMoment(test.trace, blindness).Sub(shape.Start); got != test.want {
				t.Errorf("it is after %s, want %s", got, test.want)
			}
		})
	}
}

// The part needs no built programs.
func TestPoliciesOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load.csv")
	if err := os.WriteFile(path, []byte("time,load\n0,10\n60,20\n120,80\n180,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	curves := t.TempDir()
	if err := run(t.Context(), []string{"-only", "policies", "-trace", path, "-curves", curves}, &out,
		io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the reference's autoscaler (published)", "\n  the file ", "run 6 and later",
		"held from run 4 on, MISSED before", "Default: target without a forecast",
		"\n  Risk, beside the best target in hindsight:",
		"member-hours   changes   unbeaten", "too few members, generated loads:", "too few members, recorded loads:",
		"the cheapest setting on each load",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
	for _, name := range []string{"generated", "jobs", "recorded"} {
		if _, err := os.Stat(filepath.Join(curves, name+".svg")); err != nil {
			t.Error(err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	empty, idle := filepath.Join(t.TempDir(), "empty.csv"), filepath.Join(t.TempDir(), "idle.csv")
	for path, content := range map[string]string{empty: "", idle: "0,0\n60,0\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"nothing built": {[]string{"-only", "policies,plan"}, "start it with internal/bench/run.sh"},
		"another part":  {[]string{"-only", "policy"}, "there is no part of this name"},
		"no such trace": {[]string{"-only", "policies", "-trace", empty + "x"}, "no such file"},
		"an empty trace": {
			[]string{"-only", "policies", "-trace", empty}, "empty.csv: a trace needs at least two rows",
		},
		"an idle trace":   {[]string{"-only", "policies", "-trace", idle}, "idle.csv: there is no load"},
		"an unknown flag": {[]string{"-traces"}, "not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), test.args, io.Discard, io.Discard); err == nil ||
				!strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
		})
	}
}

// A folder provides a load for each file, and the table of risks has a row for each share of each load.
func TestRisksOfAFolder(t *testing.T) {
	folder := t.TempDir()
	for name, peak := range map[string]float64{"a": 100, "b": 900} {
		var rows strings.Builder
		for i := range 3 * 24 * 60 {
			fmt.Fprintf(&rows, "%d,%g\n", 60*i, peak*(2+math.Sin(float64(i)/229)))
		}
		if err := os.WriteFile(filepath.Join(folder, name+".csv"), []byte(rows.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loads, err := readLoads(folder)
	if err != nil || len(loads) != 2 || loads[0].name != "a" || loads[1].name != "b" {
		t.Fatalf("the loads are %v: %v", loads, err)
	}
	table, err := risksTable(loads)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(loads)*(1+len(riskPercents)) + 1; len(table.rows) != want {
		t.Errorf("it has %d rows, want %d:\n%s", len(table.rows), want, table)
	}
	// The same load in a different unit gives the same rows.
	for i := range 1 + len(riskPercents) {
		if diff := cmp.Diff(table.rows[i][1:], table.rows[1+len(riskPercents)+i][1:]); diff != "" {
			t.Errorf("row %d differs:\n%s", i, diff)
		}
	}
	if _, err := readLoads(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no file *.csv in it") {
		t.Errorf("of an empty folder the error is %v", err)
	}
}

func TestRiskBars(t *testing.T) {
	best := fate{percent: 1, memberHours: 100, changes: 10}
	for want, got := range map[string]fate{
		"": {percent: 1.25, memberHours: 105, changes: 10}, "share": {percent: 1.26, memberHours: 1},
		"hours":   {memberHours: 106},
		"changes": {changes: 11}, "share, hours, changes": {percent: 2, memberHours: 200, changes: 20},
	} {
		if bars := missed(1, got, best); bars != want {
			t.Errorf("%+v misses %q, want %q", got, bars, want)
		}
	}
	all := []fate{{percent: 0.5, memberHours: 9}, {percent: 1, memberHours: 8}, {percent: 2, memberHours: 1}}
	if found, there := asGood(all, 1); !there || found.memberHours != 8 {
		t.Errorf("the best is %+v", found)
	}
	if _, there := asGood(all, 0.1); there {
		t.Error("none is as good, and one was found")
	}
}
