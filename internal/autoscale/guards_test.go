package autoscale

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestGuards checks that nothing is done that a guard forbids, whatever the metrics ask for, and that the decision
// names the guard.
func TestGuards(t *testing.T) {
	guarded := func(name string, m Measurement, pauses domain.ScalingPause) func(*domain.AutoscalingPolicy, *Seen) {
		return func(p *domain.AutoscalingPolicy, s *Seen) {
			s.Guards = map[string]Measurement{name: m}
			if name == domain.GuardAtLeast {
				p.Guards.AtLeast = &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://data", Path: "replicas"}}
				return
			}
			p.Guards.Busy = &domain.BusyGuard{
				GuardSource: domain.GuardSource{
					HTTP: &domain.HTTPQueue{URL: "http://spark/json/", Path: "activeapps.#"},
				},
				Pauses: pauses,
			}
		}
	}
	busy := func(value float64, pauses domain.ScalingPause) func(*domain.AutoscalingPolicy, *Seen) {
		return guarded(domain.GuardBusyHTTP, Measurement{Value: value, At: noon}, pauses)
	}
	atLeast := func(value float64) func(*domain.AutoscalingPolicy, *Seen) {
		return guarded(domain.GuardAtLeast, Measurement{Value: value, At: noon}, "")
	}
	for name, test := range map[string]struct {
		guard func(p *domain.AutoscalingPolicy, s *Seen)
		count int
		value float64
		want  int
		says  string
	}{
		"paused": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseAll }, 4, 100, 4,
			"8 wanted, but the policy is paused",
		},
		"paused, out of bounds": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseAll }, 12, 100, 12,
			"10 wanted, but the policy is paused",
		},
		"not paused": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseNone }, 4, 100, 8, "cpu: ",
		},
		"out paused": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseOut }, 4, 100, 4,
			"8 wanted, but scaling out is paused",
		},
		"out paused, and in": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseOut }, 4, 25, 2, "cpu: ",
		},
		"in paused": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseIn }, 4, 25, 4,
			"2 wanted, but scaling in is paused",
		},
		"in paused, and out": {
			func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseIn }, 4, 100, 8, "cpu: ",
		},
		"held": {
			func(_ *domain.AutoscalingPolicy, s *Seen) { s.Held = "an apply is under way" }, 4, 100, 4,
			"8 wanted, but an apply is under way",
		},
		"held, out of bounds": {
			func(_ *domain.AutoscalingPolicy, s *Seen) { s.Held = "host a is down" }, 12, 100, 12,
			"10 wanted, but host a is down",
		},
		"busy": {
			busy(1, ""), 4, 25, 4, "2 wanted, but the role is busy: activeapps.# of http://spark/json/ is 1",
		},
		"busy is no bar to out": {busy(1, ""), 4, 100, 8, "cpu: "},
		"a hook at work": {
			func(_ *domain.AutoscalingPolicy, s *Seen) { s.Busy = "a hook is at work" }, 4, 25, 4,
			"2 wanted, but a hook is at work",
		},
		"a hook at work, and out": {
			func(_ *domain.AutoscalingPolicy, s *Seen) { s.Busy = "a hook is at work" }, 4, 100, 8, "cpu: ",
		},
		"busy, out of bounds": {
			busy(1, domain.PauseIn), 12, 100, 12, "10 wanted, but the role is busy",
		},
		"idle": {busy(0, ""), 4, 25, 2, "cpu: "},
		"busy, all paused": {
			busy(2, domain.PauseAll), 4, 100, 4, "8 wanted, but the role is busy",
		},
		"busy, all paused, below": {
			busy(2, domain.PauseAll), 0, 100, 0, "1 wanted, but the role is busy",
		},
		"idle, all paused": {busy(0, domain.PauseAll), 4, 100, 8, "cpu: "},
		"unknown": {
			guarded(domain.GuardBusyHTTP, Measurement{Why: "HTTP 404"}, ""), 4, 25, 4,
			"2 wanted, but it is unknown whether the role is busy: HTTP 404",
		},
		"unknown, and out": {
			guarded(domain.GuardBusyHTTP, Measurement{Why: "HTTP 404"}, ""), 4, 100, 8, "cpu: ",
		},
		"unknown, all paused": {
			guarded(domain.GuardBusyHTTP, Measurement{Why: "HTTP 404"}, domain.PauseAll), 4, 100, 4,
			"8 wanted, but it is unknown whether the role is busy",
		},
		"too old": {
			guarded(domain.GuardBusyHTTP, Measurement{At: noon.Add(-2 * time.Minute)}, ""), 4, 25, 4,
			"stale: its last value is 2m0s old",
		},
		"not asked": {
			guarded("another", Measurement{At: noon}, ""), 4, 25, 4, "it was not asked",
		},
		"no number": {busy(math.NaN(), ""), 4, 25, 4, notANumber},
		"at least 3": {
			atLeast(2.5), 4, 25, 3, "2 wanted, but guards.at_least requires 2.5: replicas of http://data",
		},
		"at least as many":             {atLeast(4), 4, 25, 4, "2 wanted, but guards.at_least requires 4"},
		"at least more":                {atLeast(6), 4, 50, 6, "4 wanted, but guards.at_least requires 6"},
		"at least more than asked for": {atLeast(6), 4, 60, 6, "5 wanted, but guards.at_least requires 6"},
		"at least less than asked for": {atLeast(6), 4, 100, 8, "cpu: "},
		"at least more than max": {
			atLeast(1e6), 4, 25, 8, "2 wanted, but guards.at_least requires 1000000",
		},
		"at least more than max, out of bounds": {
			atLeast(11), 12, 25, 11, "10 wanted, but guards.at_least requires 11",
		},
		"at least few": {atLeast(1), 4, 25, 2, "cpu: "},
		"at least what, unknown": {
			guarded(domain.GuardAtLeast, Measurement{Why: "HTTP 503"}, ""), 4, 25, 4,
			"2 wanted, but it is unknown how many are needed: HTTP 503",
		},
		"at least what, and out": {guarded(domain.GuardAtLeast, Measurement{Why: "HTTP 503"}, ""), 4, 100, 8, "cpu: "},
		"at least, over budget": {
			func(p *domain.AutoscalingPolicy, s *Seen) { atLeast(3)(p, s); p.Guards.MemberHoursPerDay = 1e-9 }, 4, 25,
			3, "guards.at_least requires 3",
		},
		"a guard without a cause": {
			func(p *domain.AutoscalingPolicy, s *Seen) { busy(1, "")(p, s); s.Held = "an apply" }, 4, 50, 4, "cpu: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
			seen := Seen{
				Now: noon, Count: test.count, Ready: test.count,
				Metrics: map[string]Measurement{"cpu": {Value: test.value, At: noon}},
			}
			test.guard(&policy, &seen)
			d := scalerOf(t, policy).Decide(&State{}, seen)
			if d.To != test.want || !strings.Contains(d.Why(), test.says) {
				t.Errorf("→ %d, %q, want %d, %q", d.To, d.Why(), test.want, test.says)
			}
		})
	}
}

// TestBudget checks that the daily budget counts all member-hours since midnight, including time without decisions.
func TestBudget(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.Guards.MemberHoursPerDay = 20
	scaler, state, count := scalerOf(t, policy), State{}, 4
	for _, step := range []struct {
		at    time.Duration
		value float64
		want  int
		says  string
	}{
		{0, 50, 4, "cpu: "},
		{4 * time.Hour, 50, 4, "cpu: "}, // 16 hours
		{5 * time.Hour, 50, 1, "the daily budget of 20 member-hours is used up"},
		{6 * time.Hour, 100, 1, "the daily budget of 20 member-hours is used up"},
		{11 * time.Hour, 100, 1, "the daily budget of 20 member-hours is used up"},
		{12*time.Hour + time.Minute, 100, 2, "cpu: "}, // the next day
	} {
		now := noon.Add(step.at)
		d := scaler.Decide(&state, Seen{
			Now: now, Count: count, Ready: count, Metrics: map[string]Measurement{"cpu": {Value: step.value, At: now}},
		})
		if d.To != step.want || !strings.Contains(d.Why(), step.says) {
			t.Errorf("after %s: → %d, %q, want %d, %q", step.at, d.To, d.Why(), step.want, step.says)
		}
		count = d.To
	}
}

// TestStartupIsLearnt checks that the start time of members is learned from starts, and that a forecast without a lead
// looks that far ahead.
func TestStartupIsLearnt(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	scaler, state := scalerOf(t, policy), State{}
	see := func(after time.Duration, count, ready int) {
		now := noon.Add(after)
		scaler.Decide(&state,
			Seen{Now: now, Count: count, Ready: ready, Metrics: map[string]Measurement{"cpu": {Value: 50, At: now}}})
	}
	see(0, 2, 2)
	scaler.Changed(&state, noon, 2, 4)
	see(20*time.Second, 4, 3)
	if state.Startup != 0 {
		t.Errorf("before all are ready, they took %s to start", state.Startup)
	}
	see(40*time.Second, 4, 4)
	see(90*time.Second, 4, 4)
	if state.Startup != 40*time.Second {
		t.Errorf("they took %s to start", state.Startup)
	}
	scaler.Changed(&state, noon.Add(100*time.Second), 4, 5)
	see(120*time.Second, 5, 5)
	scaler.Changed(&state, noon.Add(130*time.Second), 5, 6)
	scaler.Changed(&state, noon.Add(140*time.Second), 6, 4) // they never became ready
	see(150*time.Second, 4, 4)
	if state.Startup != 30*time.Second {
		t.Errorf("after a faster start, it is %s", state.Startup)
	}
	for _, test := range []struct {
		forecast *domain.Forecast
		want     time.Duration
		known    bool
	}{
		{nil, 0, false},
		{&domain.Forecast{}, 30 * time.Second, true},
		{&domain.Forecast{Lead: domain.Duration(time.Minute)}, time.Minute, true},
	} {
		if f, known := lead(test.forecast, state.Startup); time.Duration(f.Lead) != test.want || known != test.known {
			t.Errorf("%+v looks %s ahead: %v", test.forecast, time.Duration(f.Lead), known)
		}
	}
	if _, known := lead(&domain.Forecast{}, 0); known {
		t.Error("a lead is known that was never learnt")
	}
}

// TestResume checks that a policy that continues after a time without decisions does not scale in at once.
func TestResume(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.ScaleIn.Stabilisation = nil
	scaler := scalerOf(t, policy)
	state := State{Since: noon.Add(-time.Hour), Asked: []At[int]{{noon.Add(-10 * time.Minute), 2}}}
	scaler.Resume(&state, noon, 8)
	for at := time.Duration(0); ; at += 5 * time.Second {
		now := noon.Add(at)
		d := scaler.Decide(&state,
			Seen{Now: now, Count: 8, Ready: 8, Metrics: map[string]Measurement{"cpu": {Value: 10, At: now}}})
		if d.To == 8 && at < time.Hour {
			continue
		}
		if at != domain.DefaultStabilisationIn {
			t.Errorf("it scaled in to %d after %s", d.To, at)
		}
		return
	}
}

// TestInitial checks that a policy begins with its initial count once it can, and never returns to it.
func TestInitial(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.Initial = new(6)
	scaler, state := scalerOf(t, policy), State{}
	for i, step := range []struct {
		count, want int
		held        string
	}{{2, 2, "an apply is under way"}, {2, 6, ""}, {6, 6, ""}, {4, 4, ""}} {
		now := noon.Add(time.Duration(i) * time.Minute)
		d := scaler.Decide(&state, Seen{
			Now: now, Count: step.count, Ready: step.count, Held: step.held,
			Metrics: map[string]Measurement{"cpu": {Value: 50, At: now}},
		})
		if d.To != step.want {
			t.Errorf("step %d: %d → %d: %s", i, d.From, d.To, d.Why())
		}
	}
}

// TestInitialFromOutsideTheBounds checks that a new policy goes to its initial count at once, not only to the nearest
// bound, and that one that has had its initial count goes to the nearest bound.
func TestInitialFromOutsideTheBounds(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.Min, policy.Initial = 2, new(6)
	scaler := scalerOf(t, policy)
	for _, test := range []struct{ count, initial, later int }{{0, 6, 2}, {1, 6, 2}, {12, 6, 10}} {
		var state State
		for i, want := range []int{test.initial, test.later} {
			now := noon.Add(time.Duration(i) * time.Minute)
			d := scaler.Decide(&state, Seen{Now: now, Count: test.count, Ready: test.count})
			if d.To != want {
				t.Errorf("decision %d: %d → %d, want %d: %s", i+1, test.count, d.To, want, d.Why())
			}
			scaler.Changed(&state, now, test.count, d.To)
		}
	}
}

// TestInitialOutOfReach checks that the metrics decide if the initial count can't be reached, or only in part.
func TestInitialOutOfReach(t *testing.T) {
	for name, test := range map[string]struct {
		initial int
		guard   func(p *domain.AutoscalingPolicy, s *Seen)
		value   float64
		want    int
	}{
		"scaling out is paused, and in wanted": {
			8, func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseOut }, 25, 2,
		},
		"it is busy, and more wanted": {2, func(p *domain.AutoscalingPolicy, s *Seen) {
			p.Guards.Busy = &domain.BusyGuard{
				GuardSource: domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://spark"}},
			}
			s.Guards = map[string]Measurement{domain.GuardBusyHTTP: {Value: 1, At: noon}}
		}, 100, 8},
		"it is paused": {8, func(p *domain.AutoscalingPolicy, _ *Seen) { p.Paused = domain.PauseAll }, 25, 4},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
			policy.Initial = &test.initial
			seen := Seen{
				Now: noon, Count: 4, Ready: 4, Metrics: map[string]Measurement{"cpu": {Value: test.value, At: noon}},
			}
			test.guard(&policy, &seen)
			if d := scalerOf(t, policy).Decide(&State{}, seen); d.To != test.want {
				t.Errorf("→ %d, %q, want %d", d.To, d.Why(), test.want)
			}
		})
	}
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	policy.Initial = new(8)
	scaler, state := scalerOf(t, policy), State{}
	scaler.Decide(&state, Seen{Now: noon, Count: 4, Ready: 4})
	scaler.Changed(&state, noon, 4, 6) // there is no place for more
	now := noon.Add(time.Minute)
	if d := scaler.Decide(&state,
		Seen{Now: now, Count: 6, Ready: 6, Metrics: map[string]Measurement{"cpu": {Value: 25, At: now}}}); d.To != 3 {
		t.Errorf("after a part of the way → %d, %q", d.To, d.Why())
	}
}

// TestGuardNeverAnswers checks that a guard that has never had a value reports since when, until it has one, and again
// if it asks something else.
func TestGuardNeverAnswers(t *testing.T) {
	policy := policyOf(map[string]domain.ScalingMetric{"cpu": targetOf(50)})
	var state State
	decide := func(now time.Time, path string, m Measurement) Guarded {
		policy.Guards.AtLeast = &domain.GuardSource{HTTP: &domain.HTTPQueue{URL: "http://data", Path: path}}
		stored, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		state = State{}
		if err := json.Unmarshal(stored, &state); err != nil {
			t.Fatal(err)
		}
		d := scalerOf(t, policy).Decide(&state,
			Seen{Now: now, Count: 4, Ready: 4, Guards: map[string]Measurement{domain.GuardAtLeast: m}})
		return d.Guards[0]
	}
	missing, value := Measurement{Why: "HTTP 404"}, Measurement{Value: 3, At: noon.Add(time.Minute)}
	for i, step := range []struct {
		minute int
		path   string
		m      Measurement
		since  int // the minute; -1 if it has had a value
	}{
		{0, "a", missing, 0}, {1, "a", missing, 0}, {2, "a", value, -1}, {3, "a", missing, -1}, {4, "b", missing, 4},
		{5, "b", missing, 4},
		{3, "b", missing, 3}, // the clock was set back
		{2, "b", value, -1},
	} {
		at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
		var want time.Time
		if step.since >= 0 {
			want = at(step.since)
		}
		if g := decide(at(step.minute), step.path, step.m); !g.NeverSince.Equal(want) ||
			(g.Value == nil) != (g.Why != "") {
			t.Errorf("step %d: %+v, want never since %s", i+1, g, want)
		}
	}
}
