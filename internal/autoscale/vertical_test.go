package autoscale

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// verticalPolicy returns a policy that leaves the count alone, and scales both resources between wide bounds.
func verticalPolicy() domain.AutoscalingPolicy {
	policy := policyOf(nil)
	policy.Interval = new(domain.Duration(time.Minute))
	policy.Vertical = &domain.VerticalScaling{
		CPUs: &domain.AmountBounds{Min: 0.01, Max: 1000}, MemoryMiB: &domain.AmountBounds{Min: 1, Max: 1e6},
	}
	return policy
}

// using returns what members use at a moment.
func using(now time.Time, cpus, mib []float64) Used {
	of := func(values []float64) Measurement {
		m := Measurement{At: now, Members: map[string]float64{}}
		for i, v := range values {
			m.Members[fmt.Sprint(i)] = v
		}
		return m
	}
	return Used{CPUs: of(cpus), MemoryMiB: of(mib)}
}

// advise makes a decision each minute, and returns the last recommendations.
func advise(
	tb testing.TB, policy domain.AutoscalingPolicy, state *State, start time.Time, minutes int,
	at func(minute int, now time.Time) Used,
) []Recommended {
	tb.Helper()
	scaler := scalerOf(tb, policy)
	var d Decision
	for i := range minutes {
		now := start.Add(time.Duration(i) * time.Minute)
		d = scaler.Decide(state, Seen{Now: now, Count: 2, Ready: 2, Used: at(i, now)})
		if d.To != 2 {
			tb.Fatalf("the count becomes %d: %s", d.To, d.Why())
		}
	}
	return d.Recommended
}

// near reports whether a recommendation exceeds the usage by the margin, and by no more than a bucket beyond it.
func near(target *float64, used, margin float64) bool {
	return target != nil && *target >= used*margin*(1-1e-6) && *target <= used*margin*bucketGrowth*1.01+0.02
}

func TestVerticalPercentiles(t *testing.T) {
	// Members are idle for 80 % of the time, use two CPUs for 16 %, and eight for 4 %.
	course := func(i int, now time.Time) Used {
		cpus := 0.2
		switch part := i % 50; {
		case part >= 48:
			cpus = 8
		case part >= 40:
			cpus = 2
		}
		return using(now, []float64{cpus, cpus}, []float64{1000, 3000})
	}
	with := func(change func(v *domain.VerticalScaling)) domain.AutoscalingPolicy {
		policy := verticalPolicy()
		change(policy.Vertical)
		return policy
	}
	for name, test := range map[string]struct {
		policy domain.AutoscalingPolicy
		cpus   float64
		lower  float64
		upper  float64
		mib    float64
		says   string
	}{
		"defaults": {
			verticalPolicy(), 2 * 1.15, 0.2 * 1.15, 2 * 1.15, 3000 * 1.15, "90 % of the time, members use at most 2.0",
		},
		"the most": {
			with(func(v *domain.VerticalScaling) { v.Percentile = new(99.0) }), 8 * 1.15, 0.2 * 1.15, 8 * 1.15,
			3000 * 1.15, "99 % of the time",
		},
		"below the middle": {
			with(func(v *domain.VerticalScaling) { v.Percentile = new(40.0) }), 0.2 * 1.15, 0.2 * 1.15, 2 * 1.15,
			3000 * 1.15, "40 % of the time",
		},
		"no margin": {
			with(func(v *domain.VerticalScaling) { v.MarginPercent = new(0.0) }), 2, 0.2, 2, 3000,
			"with a margin of 0 %",
		},
		"at most": {
			with(func(v *domain.VerticalScaling) { v.CPUs.Max = 1.5 }), 1.5, 0.23, 1.5, 3450,
			"which is above max (1.5); measured for 24h0m0s",
		},
		"at least": {with(func(v *domain.VerticalScaling) { v.CPUs.Min = 4 }), 4, 4, 4, 3450, "which is below min (4)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := advise(t, test.policy, &State{}, noon, 24*60, course)
			if len(got) != 2 || got[0].Resource != ResourceCPUs || got[1].Resource != ResourceMemoryMiB {
				t.Fatalf("%+v", got)
			}
			cpus, memory := got[0], got[1]
			if !near(cpus.Target, test.cpus, 1) || !near(cpus.Lower, test.lower, 1) ||
				!near(cpus.Upper, test.upper, 1) || !near(memory.Target, test.mib, 1) {
				t.Errorf("%v of %v to %v CPUs, and %v MiB", *cpus.Target, *cpus.Lower, *cpus.Upper, *memory.Target)
			}
			if !strings.Contains(cpus.Why, test.says) {
				t.Errorf("it says %q", cpus.Why)
			}
		})
	}
}

// TestVerticalForgetsAndLearns checks that what is a day old counts half, for memory as for CPUs, and that running out
// of memory asks for more than the limit was.
func TestVerticalForgetsAndLearns(t *testing.T) {
	policy, state := verticalPolicy(), State{}
	steady := func(cpus, mib float64) func(int, time.Time) Used {
		return func(_ int, now time.Time) Used { return using(now, []float64{cpus}, []float64{mib}) }
	}
	if got := advise(t, policy, &state, noon, 3*24*60, steady(8, 8000)); !near(got[0].Target, 8, 1.15) ||
		!near(got[1].Target, 8000, 1.15) {
		t.Fatalf("busy days: %v and %v", *got[0].Target, *got[1].Target)
	}
	if got := advise(t, policy, &state, noon.Add(3*24*time.Hour), 24*60,
		steady(1, 1000)); !near(got[0].Target, 8, 1.15) || !near(got[1].Target, 8000, 1.15) {
		t.Errorf("a quiet day after them: %v and %v", *got[0].Target, *got[1].Target)
	}
	got := advise(t, policy, &state, noon.Add(4*24*time.Hour), 6*24*60, steady(1, 1000))
	if !near(got[0].Target, 1, 1.15) || !near(got[1].Target, 1000, 1.15) {
		t.Errorf("a quiet week after them: %v and %v", *got[0].Target, *got[1].Target)
	}

	now := noon.Add(11 * 24 * time.Hour)
	killed := func(at time.Time, limit float64) func(int, time.Time) Used {
		return func(_ int, now time.Time) Used {
			used := using(now, []float64{1}, []float64{1000})
			used.Killed = &At[float64]{at, limit}
			return used
		}
	}
	if got := advise(t, policy, &state, now, 3, killed(noon.Add(-time.Hour), 1e5)); !near(got[1].Target, 1000, 1.15) {
		t.Errorf("one that ended before the policy: %v MiB", *got[1].Target)
	}
	if got := advise(t, policy, &state, now.Add(3*time.Minute), 3,
		killed(now.Add(time.Minute), 2000)); !near(got[1].Target, 2400, 1.15) {
		t.Errorf("out of 2000 MiB: %v MiB", *got[1].Target)
	}
	if got := advise(t, policy, &state, now.Add(6*time.Minute), 3,
		killed(now.Add(4*time.Minute), 100)); !near(got[1].Target, 2400, 1.15) {
		t.Errorf("out of less than that: %v MiB", *got[1].Target)
	}
}

// TestVerticalUnmeasured checks that nothing is recommended without measurements, and nothing is learned from stale
// ones.
func TestVerticalUnmeasured(t *testing.T) {
	policy := verticalPolicy()
	policy.Vertical.MemoryMiB = nil
	for name, used := range map[string]func(now time.Time) Used{
		"nothing": func(time.Time) Used { return Used{} },
		"missing": func(time.Time) Used {
			return Used{CPUs: Measurement{Why: "no member of role worker is running"}}
		},
		"stale":     func(now time.Time) Used { return using(now.Add(-2*time.Minute), []float64{4}, nil) },
		"no number": func(now time.Time) Used { return using(now, []float64{math.NaN(), math.Inf(1), -1}, nil) },
	} {
		state := State{}
		got := advise(t, policy, &state, noon, 10, func(_ int, now time.Time) Used { return used(now) })
		if len(got) != 1 || got[0].Target != nil || got[0].Why != "not measured yet" || state.Vertical.Measured != 0 {
			t.Errorf("%s: %+v after %s", name, got, state.Vertical.Measured)
		}
	}
	state := State{Vertical: &Vertical{Measured: time.Hour}}
	scalerOf(t, policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})).Decide(&state,
		Seen{Now: noon, Count: 2, Ready: 2})
	if state.Vertical != nil {
		t.Error("a policy that is not vertical remembers what it was")
	}
}

// TestVerticalProperties checks that, whatever members use, a recommendation is within its bounds and in order, at
// least the exact percentile and at most a bucket above it, and the same after the state was stored and read, which
// takes a few kB.
func TestVerticalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := verticalPolicy()
		policy.Vertical.Percentile = new(rapid.Float64Range(1, 100).Draw(t, "percentile"))
		policy.Vertical.MarginPercent = new(rapid.Float64Range(0, 100).Draw(t, "margin"))
		policy.Vertical.CPUs.Min = rapid.Float64Range(0.01, 10).Draw(t, "min")
		policy.Vertical.CPUs.Max = policy.Vertical.CPUs.Min * rapid.Float64Range(1, 100).Draw(t, "range")
		scaler, err := New(policy)
		if err != nil {
			t.Fatal(err)
		}
		samples := rapid.SliceOfN(rapid.Float64Range(0.02, 500), 1, 60).Draw(t, "samples")
		var state, stored State
		var d Decision
		for i, cpus := range samples {
			// With steps of milliseconds nothing decays, so the exact percentile is known.
			now := noon.Add(time.Duration(i) * time.Millisecond)
			policyEvery := Seen{Now: now, Count: 2, Ready: 2, Used: using(now, []float64{cpus}, []float64{cpus * 100})}
			d = scaler.Decide(&state, policyEvery)
			again := scaler.Decide(&stored, policyEvery)
			if diff := cmp.Diff(d.Recommended, again.Recommended); diff != "" {
				t.Fatalf("after a restart it recommends otherwise (-want +got)\n%s", diff)
			}
			text, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			if stored = (State{}); json.Unmarshal(text, &stored) != nil || len(text) > 4096 {
				t.Fatalf("%d bytes of %s", len(text), text)
			}
		}
		cpus, memory := d.Recommended[0], d.Recommended[1]
		bounds := policy.Vertical.CPUs
		const rounded = 1e-6 // to seven digits
		if *cpus.Lower > *cpus.Target || *cpus.Target > *cpus.Upper || *cpus.Lower < bounds.Min*(1-rounded) ||
			*cpus.Upper > bounds.Max*(1+rounded) {
			t.Fatalf("%v of %v to %v, of %+v", *cpus.Target, *cpus.Lower, *cpus.Upper, *bounds)
		}
		if most := slices.Max(samples) * 100; *memory.Target < most*policy.Vertical.Margin()*(1-rounded) &&
			*memory.Target < policy.Vertical.MemoryMiB.Max {
			t.Fatalf("%v MiB are recommended, and a member had %v", *memory.Target, most)
		}
	})
}

// TestHistogramPercentile checks that the percentile of a histogram is that of the values, or at most a bucket more.
func TestHistogramPercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 3000), 1, 100).Draw(t, "values")
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		var h histogram
		for _, v := range values {
			h.add(bucketOf(v, leastCPUs), 1)
		}
		slices.Sort(values)
		exact := values[int(math.Ceil(share*float64(len(values))*(1-rounding)))-1]
		bucket, known := h.percentile(share)
		if got := bucketEnd(bucket, leastCPUs); !known || !h.sound() || got < exact*(1-1e-9) ||
			got > exact*bucketGrowth+leastCPUs*1.001 {
			t.Fatalf("%v %% of %v: %v, and exactly %v", 100*share, values, got, exact)
		}
	})
}

// TestVerticalResize checks that a size is applied once enough was learned, if it differs by more than a tenth, and
// that more memory is given at once after running out of it.
func TestVerticalResize(t *testing.T) {
	const hour = time.Hour
	usage := func(now time.Time) Used { return using(now, []float64{2}, []float64{2000}) }
	has := func(requested, size domain.Resources) func(u *Used) {
		return func(u *Used) { u.Requested, u.Size = requested, size }
	}
	amounts := func(cpus float64, mib int64) domain.Resources { return domain.Resources{CPUs: cpus, MemoryMiB: mib} }
	for name, test := range map[string]struct {
		policy  func(p *domain.AutoscalingPolicy)
		seen    func(u *Used)
		minutes int
		// cpus and mib are the usage that the new size is for; 0 expects no change. none expects no new size at all.
		cpus, mib float64
		none      bool
		says      string
	}{
		"both":      {nil, has(amounts(1, 1000), amounts(0, 0)), 61, 2, 2000, false, "cpus 1 → 2.4"},
		"too early": {nil, has(amounts(1, 1000), amounts(0, 0)), 30, 0, 0, true, ""},
		"only recommended": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.Apply = domain.ApplyNever },
			has(amounts(1, 1000), amounts(0, 0)), 61, 0, 0, true, "",
		},
		"only recommended by now": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.Apply = "" }, has(amounts(3, 1000), amounts(3, 0)), 61, 0, 0,
			false, "the policy no longer applies recommendations",
		},
		"no longer vertical": {
			func(p *domain.AutoscalingPolicy) { p.Vertical = nil }, has(amounts(3, 1000), amounts(3, 0)), 61, 0, 0,
			false, "the policy no longer applies recommendations",
		},
		"near enough": {nil, has(amounts(2.3, 2400), amounts(0, 0)), 61, 0, 0, true, ""},
		"one that was moved": {
			nil, has(amounts(2.3, 1000), amounts(2.3, 0)), 61, 2.3 / 1.15, 2000, false, "memory_mib 1000 → ",
		},
		"less than there was": {
			nil, has(amounts(8, 16000), amounts(8, 16000)), 61, 2, 2000, false, "memory_mib 16000 → ",
		},
		"a dry run": {
			func(p *domain.AutoscalingPolicy) { p.DryRun = true }, has(amounts(1, 1000), amounts(0, 0)), 61, 0, 0, true,
			"",
		},
		"paused": {
			func(p *domain.AutoscalingPolicy) { p.Paused = domain.PauseAll }, has(amounts(1, 1000), amounts(0, 0)), 61,
			0, 0, true, "",
		},
		"nothing is requested": {nil, has(amounts(0, 0), amounts(0, 0)), 61, 0, 0, true, ""},
		"one is left alone by now": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.CPUs = nil }, has(amounts(2.3, 2400), amounts(2.3, 2400)),
			61, 0, 2400 / 1.15, false, "no longer manages a resource",
		},
		"at once by now": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.Apply = domain.ApplyInPlace },
			has(amounts(2.3, 2400), amounts(2.3, 2400)), 61, 2.3 / 1.15, 2400 / 1.15, false, "apply has changed",
		},
		"near enough, but above a new max": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.CPUs.Max = 2.2 }, has(amounts(2.3, 2400), amounts(2.3, 0)),
			61, 2.2 / 1.15, 0, false, "cpus 2.3 → 2.2: 2.3 is above max (2.2)",
		},
		"too early, but below a new min": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.MemoryMiB.Min = 4001 },
			has(amounts(1, 1000), amounts(0, 1000)), 1, 0, 4001 / 1.15, false,
			"memory_mib 1000 → 4001: 1000 is below min (4001)",
		},
		"at bounds that are rounded": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.CPUs.Max, p.Vertical.MemoryMiB.Max = 2.123456789, 2000.5 },
			has(amounts(2.123457, 2001), amounts(2.123457, 2001)), 61, 0, 0, true, "",
		},
		"declared outside the bounds, and too early": {
			func(p *domain.AutoscalingPolicy) { p.Vertical.CPUs.Max = 0.5 }, has(amounts(1, 1000), amounts(0, 0)), 1, 0,
			0, true, "",
		},
		"out of memory": {nil, func(u *Used) {
			u.Requested, u.Killed = amounts(1, 1000), &At[float64]{noon.Add(time.Minute), 2500}
		}, 3, 0, 3000, false, "memory_mib 1000 → 3"},
		"out of memory before": {nil, func(u *Used) {
			u.Requested, u.Size, u.Sized, u.Killed = amounts(1, 1000), amounts(0, 1000), noon.Add(90*time.Second),
				&At[float64]{noon.Add(time.Minute), 2500}
		}, 3, 0, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := verticalPolicy()
			policy.Vertical.Apply, policy.Vertical.LearnFor = domain.ApplyAtStart, new(domain.Duration(hour))
			if test.policy != nil {
				test.policy(&policy)
			}
			if policy.Vertical == nil {
				policy.Schedules = map[string]domain.ScalingSchedule{
					"always": {Start: "0 0 * * *", End: "59 23 * * *", Count: 2},
				}
			}
			scaler, state := scalerOf(t, policy), State{}
			var d Decision
			for i := range test.minutes {
				now := noon.Add(time.Duration(i) * time.Minute)
				used := usage(now)
				test.seen(&used)
				if used.Killed != nil && used.Killed.At.After(now) {
					used.Killed = nil
				}
				d = scaler.Decide(&state, Seen{Now: now, Count: 2, Ready: 2, Used: used})
			}
			if (d.Resize == nil) != test.none {
				t.Fatalf("another size: %+v", d.Resize)
			}
			if d.Resize == nil {
				return
			}
			of := func(v float64) *float64 { return &v }
			to := d.Resize.To
			if test.cpus == 0 && to.CPUs != 0 || test.cpus > 0 && !near(of(to.CPUs), test.cpus, 1.15) ||
				test.mib == 0 && to.MemoryMiB != 0 || test.mib > 0 && !near(of(float64(to.MemoryMiB)), test.mib, 1.15) {
				t.Errorf("they are to have %+v", to)
			}
			if !strings.Contains(d.Resize.Why, test.says) {
				t.Errorf("it says %q", d.Resize.Why)
			}
		})
	}
}
