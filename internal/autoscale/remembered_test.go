package autoscale

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// FuzzRemembered checks that with any stored state and any measurement, a policy decides within its bounds, and its
// state can be stored again.
func FuzzRemembered(f *testing.F) {
	policy := policyOf(all())
	season := targetOf(50)
	season.Forecast = &domain.Forecast{Lead: domain.Duration(time.Minute), Season: new(domain.Duration(24 * time.Hour))}
	policy.Metrics["season"] = season
	policy.Guards.MemberHoursPerDay = 1000
	policy.Vertical = &domain.VerticalScaling{
		CPUs: &domain.AmountBounds{Min: 0.5, Max: 8}, MemoryMiB: &domain.AmountBounds{Min: 100, Max: 10_000},
	}
	policy.ScaleIn.Cooldown, policy.ScaleOut.Stabilisation = seconds(30), seconds(10)
	scaler := scalerOf(f, policy)

	for _, stored := range []string{
		"{}", "null", `{"metrics":null,"starting":{},"spent":{}}`,
		`{"since":"2026-03-02T12:00:00Z","initial":true,"asked":[{"at":"2026-03-02T12:00:00Z","value":9223372036854775807}],"changes":[{"at":"2026-03-02T12:00:00Z","value":-9223372036854775808}]}`,
		`{"since":"2026-03-02T12:00:00Z","startup":-9223372036854775808,"starting":{"at":"0001-01-01T00:00:00Z","value":-1},"spent":{"at":"2026-03-02T11:00:00Z","hours":1e308}}`,
		`{"metrics":{"heat":{"heat":9223372036854775807},"threshold":{"above":-3},"queue":{"empty_since":"9999-12-31T23:59:59Z"}}}`,
		`{"metrics":{"gain":{"gain":{"count":4,"next":4,"since":"2026-03-02T11:00:00Z","samples":1,"known":[{"count":9,"value":1},{"count":1,"value":2},{"count":9,"value":0}]}}}}`,
		`{"metrics":{"gain":{"gain":{"count":4,"next":4,"since":"2026-03-02T11:00:00Z","known":[{"count":4,"value":1},{"count":4,"value":1e-320}],"knee":4}}}}`,
		`{"metrics":{"gain":{"gain":{"count":4,"next":4,"since":"2026-03-02T11:59:20Z","sum":1.7e308,"samples":1}}}}`,
		`{"metrics":{"risk":{"risk":{"capacity":100}},"risky":{"risk":{"capacity":20,"at":"2026-03-02T11:59:00Z","price":1e308,"forecasts":[{},{},{},{},{}],"best":9}}}}`,
		riskRemembered(f, func(*Risk) {}),
		riskRemembered(f,
			func(r *Risk) { r.At, r.Step, r.Price, r.Total = noon.Add(-10*time.Second), 1e10, mostPrice, 1 }),
		riskRemembered(f,
			func(r *Risk) { r.Made = []At[[]float64]{{noon.Add(-time.Hour), make([]float64, riskForecasts)}, {}} }),
		`{"vertical":{"at":"2026-03-02T11:59:00Z","measured":60000000000,"cpus":{"first":190,"weights":[1,2,3e38]},"memory_mib":{"first":-1,"weights":[1]},"peak":{"at":"2026-03-01T11:00:00Z","value":3000}}}`,
		`{"vertical":{"at":"2026-03-02T11:59:00Z","measured":-1,"cpus":{"first":199,"weights":[1]},"peak":{"at":"2026-03-01T11:00:00Z","value":-1},"killed":"9999-12-31T23:59:59Z"}}`,
		`{"vertical":{"at":"2026-03-09T12:00:00Z","measured":9223372036854775807,"cpus":{"weights":[1e-40,1,1e15]},"peak":{"at":"2026-03-09T12:00:00Z","value":1e308}}}`,
		`{"vertical":{"at":"0001-01-01T00:00:00Z","cpus":{"weights":[1]},"memory_mib":{"first":3,"weights":[0,0]},"peak":{"at":"9999-12-31T23:59:59Z","value":0}}}`,
		`{"metrics":{"season":{"forecast":{"at":"2026-03-02T12:00:05Z","value":1,"step":5,"seasonal":true,"season":{"length":"0s","profile":[]}}}}}`,
		`{"metrics":{"season":{"forecast":{"at":"2026-03-02T11:59:55Z","step":5,"seasonal":true,"season":{"length":"24h","profile":[1],"count":1}}}}}`,
		`{"metrics":{"forecast":{"forecast":{"at":"2026-03-02T11:59:55Z","value":1e308,"step":1e308,"level":1e308,"slope":1e308,"level_weight":1e-320,"slope_weight":-1}}}}`,
	} {
		f.Add(stored, 75.0, int64(0), 4, 4)
		f.Add(stored, 1.7e308, int64(0), 4, 4)
		f.Add(stored, 0.0, int64(-time.Hour), 0, 0)
	}
	// A season whose present part is in the far past, or in the far future.
	for _, part := range []string{"-9223372036854775808", "9223372036854775807"} {
		parts, err := json.Marshal(make([]float32, seasonParts))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(`{"metrics":{"season":{"forecast":{"at":"2026-03-02T11:59:55Z","step":5,"season":{"length":"24h","profile":`+string(
			parts,
		)+`,"count":1,"part":`+part+`}}}}}`, 75.0, int64(0), 4, 4)
	}
	f.Fuzz(func(t *testing.T, stored string, value float64, after int64, count, ready int) {
		var state State
		if json.Unmarshal([]byte(stored), &state) != nil {
			t.Skip("it is not read")
		}
		if count < 0 || count > domain.MaxReplicas || ready < 0 || ready > count {
			t.Skip("no role has so many members")
		}
		now := noon.Add(time.Duration(after % int64(24*365*time.Hour)))
		for range 3 {
			used := Measurement{At: now, Members: map[string]float64{"a": value, "b": value / 2}}
			seen := Seen{
				Now: now, Count: count, Ready: ready, Metrics: map[string]Measurement{},
				Used: Used{CPUs: used, MemoryMiB: used, Killed: &At[float64]{now, value}},
			}
			for name := range policy.Metrics {
				seen.Metrics[name] = Measurement{Value: value, At: now}
			}
			d := scaler.Decide(&state, seen)
			if d.To < policy.Min || d.To > policy.Max {
				t.Fatalf("%d → %d is beyond %d and %d: %s", d.From, d.To, policy.Min, policy.Max, d.Why())
			}
			for _, r := range d.Recommended {
				bounds := map[string]*domain.AmountBounds{
					ResourceCPUs: policy.Vertical.CPUs, ResourceMemoryMiB: policy.Vertical.MemoryMiB,
				}[r.Resource]
				if r.Target != nil && !(*r.Target >= bounds.Min && *r.Lower <= *r.Target && *r.Target <= *r.Upper &&
					*r.Upper <= bounds.Max) {
					t.Fatalf("%s: %v of %v to %v is recommended: %s", r.Resource, *r.Target, *r.Lower, *r.Upper, r.Why)
				}
			}
			if _, err := json.Marshal(state); err != nil {
				t.Fatalf("what it remembers can't be stored: %v", err)
			}
			if d.To != d.From {
				scaler.Changed(&state, now, d.From, d.To)
			}
			count, ready, now = d.To, d.To, now.Add(policy.Every())
		}
	})
}

// riskRemembered returns the stored state of a policy with a risk, changed.
func riskRemembered(tb testing.TB, change func(*Risk)) string {
	tb.Helper()
	r := newRisk(domain.DefaultRiskCapacity, 3)
	change(r)
	stored, err := json.Marshal(State{Metrics: map[string]Memory{"risk": {Risk: r}}})
	if err != nil {
		tb.Fatal(err)
	}
	return string(stored)
}
