package autoscale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// someTime is the present of the tests.
var someTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago returns a value from that long ago.
func ago(d time.Duration, value int) At[int] { return At[int]{someTime.Add(-d), value} }

// duration returns a pointer to a duration.
func duration(d time.Duration) *domain.Duration { return new(domain.Duration(d)) }

// bounds returns the rates for a number of members and for a percentage, with periods in seconds; 0 means none. It
// corresponds to generateScalingRules in Kubernetes' horizontal_test.go.
func bounds(count, countPeriod int, percent float64, percentPeriod int) domain.ScalingBehaviour {
	var behaviour domain.ScalingBehaviour
	if count != 0 {
		behaviour.Rates = append(behaviour.Rates,
			domain.ScalingRate{Count: count, Period: domain.Duration(countPeriod) * domain.Duration(time.Second)})
	}
	if percent != 0 {
		behaviour.Rates = append(behaviour.Rates,
			domain.ScalingRate{Percent: percent, Period: domain.Duration(percentPeriod) * domain.Duration(time.Second)})
	}
	return behaviour
}

// spread returns changes in the middle of equal parts of the last two minutes, like generateEventsUniformDistribution
// in Kubernetes' horizontal_test.go.
func spread(values ...int) []At[int] {
	part := 2 * time.Minute / time.Duration(len(values))
	var changes []At[int]
	for i, value := range values {
		changes = append(changes, ago(2*time.Minute-time.Duration(i)*part-part/2, value))
	}
	return changes
}

func TestStabilise(t *testing.T) {
	out := func(d time.Duration) domain.AutoscalingPolicy {
		return domain.AutoscalingPolicy{ScaleOut: domain.ScalingBehaviour{Stabilisation: duration(d)}}
	}
	in := func(d time.Duration) domain.AutoscalingPolicy {
		return domain.AutoscalingPolicy{ScaleIn: domain.ScalingBehaviour{Stabilisation: duration(d)}}
	}
	both := func(out, in time.Duration) domain.AutoscalingPolicy {
		return domain.AutoscalingPolicy{
			ScaleOut: domain.ScalingBehaviour{Stabilisation: duration(out)},
			ScaleIn:  domain.ScalingBehaviour{Stabilisation: duration(in)},
		}
	}
	tests := map[string]struct {
		policy        domain.AutoscalingPolicy
		asked         []At[int]
		count, wanted int
		want          int
		why           string
	}{
		// The cases of TestNormalizeDesiredReplicas in Kubernetes' horizontal_test.go, for a role that is large enough
		// to be scaled in.
		"empty log": {domain.AutoscalingPolicy{}, nil, 9, 5, 5, ""},
		"stabilize": {
			domain.AutoscalingPolicy{}, []At[int]{ago(2*time.Minute, 4), ago(time.Minute, 5)}, 9, 3, 5,
			"3 wanted, but 5 was needed in the last 5m0s",
		},
		"no stabilize": {
			domain.AutoscalingPolicy{}, []At[int]{ago(2*time.Minute, 1), ago(time.Minute, 2)}, 9, 3, 3, "",
		},
		"no stabilize - old recommendations": {
			domain.AutoscalingPolicy{}, []At[int]{ago(10*time.Minute, 10), ago(9*time.Minute, 9)}, 11, 3, 3, "",
		},
		"stabilize - old recommendations": {
			domain.AutoscalingPolicy{},
			[]At[int]{ago(10*time.Minute, 10), ago(9*time.Minute, 9), ago(2*time.Minute, 5), ago(time.Minute, 4)},
			11, 3, 5, "3 wanted, but 5 was needed in the last 5m0s",
		},
		"in, not above the present count": {
			domain.AutoscalingPolicy{}, []At[int]{ago(time.Minute, 20)}, 9, 3, 9,
			"3 wanted, but 20 was needed in the last 5m0s",
		},
		"in, at once": {in(0), []At[int]{ago(time.Minute, 8)}, 9, 3, 3, ""},
		"in, a window of its own": {
			in(30 * time.Second), []At[int]{ago(time.Minute, 8), ago(29*time.Second, 5)}, 9, 3, 5,
			"3 wanted, but 5 was needed in the last 30s",
		},
		"in, exactly as old as the window": {in(time.Minute), []At[int]{ago(time.Minute, 8)}, 9, 3, 3, ""},
		"in, with the present one in it": {
			domain.AutoscalingPolicy{}, []At[int]{ago(time.Minute, 4), ago(0, 3)}, 9, 3, 4,
			"3 wanted, but 4 was needed in the last 5m0s",
		},
		"out, at once by default": {
			domain.AutoscalingPolicy{}, []At[int]{ago(time.Minute, 4), ago(time.Second, 4)}, 4, 9, 9, "",
		},
		"out, the smallest of the window": {
			out(time.Minute), []At[int]{ago(2*time.Minute, 5), ago(50*time.Second, 7), ago(10*time.Second, 8)}, 4, 9, 7,
			"9 wanted, but 7 was enough in the last 1m0s",
		},
		"out, not below the present count": {
			out(time.Minute), []At[int]{ago(30*time.Second, 2)}, 4, 9, 4, "9 wanted, but 2 was enough in the last 1m0s",
		},
		"out, exactly as old as the window": {
			out(time.Minute), []At[int]{ago(time.Minute, 5)}, 4, 9, 9, "",
		},
		"out, the window of scaling in aside": {
			out(time.Minute), []At[int]{ago(4*time.Minute, 5), ago(3*time.Minute, 20)}, 4, 9, 9, "",
		},
		"in, a window shorter than that of scaling out": {
			both(time.Hour, time.Minute), []At[int]{ago(2*time.Minute, 8)}, 9, 3, 3, "",
		},
		"as it is": {domain.AutoscalingPolicy{}, []At[int]{ago(time.Minute, 9)}, 4, 4, 4, ""},
		"in, though out was asked for": {
			out(time.Minute), []At[int]{ago(30*time.Second, 9)}, 5, 4, 5, "4 wanted, but 9 was needed in the last 5m0s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, why := stabilise(&test.policy, test.asked, someTime, test.count, test.wanted); got != test.want ||
				why != test.why {
				t.Errorf("%d because %q, not %d because %q", got, why, test.want, test.why)
			}
		})
	}
}

// TestLimit has the cases of TestScalingWithRules in Kubernetes' horizontal_test.go under the same names, except those
// about the bounds of the count, and some more. Negative changes are scale-down events there.
func TestLimit(t *testing.T) {
	out := func(b domain.ScalingBehaviour) domain.AutoscalingPolicy { return domain.AutoscalingPolicy{ScaleOut: b} }
	in := func(b domain.ScalingBehaviour) domain.AutoscalingPolicy { return domain.AutoscalingPolicy{ScaleIn: b} }
	with := func(b domain.ScalingBehaviour, selection domain.RateSelect, step int) domain.ScalingBehaviour {
		b.Select, b.MaxStep = selection, step
		return b
	}
	tests := map[string]struct {
		policy        domain.AutoscalingPolicy
		changes       []At[int]
		count, wanted int
		want          int
	}{
		"prenormalized desired replicas within range":          {domain.AutoscalingPolicy{}, nil, 5, 7, 7},
		"scaleUpLimit is the limit with user policies":         {out(bounds(0, 0, 1, 60)), nil, 3, 1000, 4},
		"scaleDownLimit is the limit with user policies":       {in(bounds(20, 60, 0, 0)), nil, 1000, 3, 980},
		"scaleUp with default behavior":                        {domain.AutoscalingPolicy{}, nil, 10, 50, 20},
		"scaleUp with pods policy larger than percent policy":  {out(bounds(100, 60, 100, 60)), nil, 10, 500, 110},
		"scaleUp with percent policy larger than pods policy":  {out(bounds(2, 60, 100, 60)), nil, 10, 500, 20},
		"scaleUp with large pod policy":                        {out(bounds(100, 60, 0, 0)), nil, 10, 50, 50},
		"scaleUp with pod policy limitation":                   {out(bounds(30, 60, 0, 0)), nil, 10, 50, 40},
		"scaleUp with percent policy limitation":               {out(bounds(0, 0, 200, 60)), nil, 10, 50, 30},
		"scaleDown with percent policy larger than pod policy": {in(bounds(20, 60, 1, 60)), nil, 100, 2, 80},
		"scaleDown with pod policy larger than percent policy": {in(bounds(2, 60, 1, 60)), nil, 100, 2, 98},
		"scaleDown with large pod policy":                      {in(bounds(100, 60, 0, 0)), nil, 10, 0, 0},
		"scaleDown with large percent policy":                  {in(bounds(0, 0, 100, 60)), nil, 10, 2, 2},
		"scaleDown with pod policy limitation":                 {in(bounds(5, 60, 0, 0)), nil, 10, 2, 5},
		"scaleDown with percent policy limitation":             {in(bounds(0, 0, 50, 60)), nil, 10, 5, 5},
		"scaleUp with a lot of recent scale up events": {
			out(bounds(5, 120, 0, 0)), spread(1, 5, 9), 100, 500, 100,
		},
		"scaleUp with pod policy and previous scale up events": {
			out(bounds(150, 120, 0, 0)), spread(1, 5, 9), 100, 500, 235,
		},
		"scaleUp with percent policy and previous events": {
			out(bounds(0, 0, 200, 120)), spread(1, 5, 9), 100, 500, 255,
		},
		"scaleUp with percent policy, up and down events": {out(bounds(0, 0, 300, 300)), spread(4, -2), 6, 24, 16},
		"scaleDown with default policy and previous events": {
			domain.AutoscalingPolicy{}, spread(-1, -5, -9), 10, 5, 5,
		},
		"scaleDown with large percent policy and events": {
			in(bounds(0, 0, 100, 120)), spread(-1, -5, -9), 100, 2, 2,
		},
		"scaleDown with pod policy limitation and events": {
			in(bounds(5, 120, 0, 0)), spread(-1, -5, -9), 100, 2, 100,
		},
		"scaleDown with percent policy limitation and events": {
			in(bounds(0, 0, 50, 120)), spread(-2, -4, -6), 100, 0, 56,
		},
		"scaleDown with percent policy, up and down events": {in(bounds(0, 0, 50, 180)), spread(2, -4), 10, 1, 6},
		"scaleDown with events preventing further scale down": {
			in(bounds(0, 0, 10, 120)), spread(-10, -10, -10), 100, 0, 100,
		},
		"scaleDown with events still allowing more scale down": {
			in(bounds(0, 0, 1000, 120)), spread(-10, -10, -10), 10, 5, 5,
		},
		"outdated events of one behavior for up": {
			out(bounds(1000, 60, 0, 0)), spread(8, 12, 9, 11), 100, 200, 200,
		},
		"outdated events of one behavior for down": {
			in(bounds(1000, 60, 0, 0)), spread(-8, -12, -9, -11), 100, 5, 5,
		},
		"TestCalculateScaleUpLimitWithScalingRules": {
			out(with(bounds(2, 60, 50, 60), domain.SelectMin, 0)), nil, 1, 9, 2,
		},
		"TestCalculateScaleDownLimitWithBehaviors": {
			in(with(bounds(2, 60, 50, 60), domain.SelectMin, 0)), nil, 5, 0, 3,
		},
		"documentation: 10 % of 80": {in(bounds(4, 60, 10, 60)), nil, 80, 10, 72},
		"documentation: 10 % of 72 are 8": {
			in(bounds(4, 60, 10, 60)), []At[int]{ago(time.Minute, -8)}, 72, 10, 64,
		},
		"documentation: 4 are more than 10 % below 40":   {in(bounds(4, 60, 10, 60)), nil, 30, 10, 26},
		"the documentation's default, 4 members for few": {domain.AutoscalingPolicy{}, nil, 1, 50, 5},
		"the documentation's default, 15 s after": {
			domain.AutoscalingPolicy{}, []At[int]{ago(15*time.Second, 10)}, 20, 50, 40,
		},
		"the documentation's default, less than 15 s after": {
			domain.AutoscalingPolicy{}, []At[int]{ago(14*time.Second, 10)}, 20, 50, 20,
		},
		"only the events of the period":  {out(bounds(20, 60, 0, 0)), spread(8, 12, 9, 11), 100, 200, 100},
		"only the events of each period": {out(bounds(30, 120, 25, 60)), spread(8, 12, 9, 11), 100, 200, 100},
		"as upstream rounds":             {out(bounds(0, 0, 10, 60)), nil, 100, 200, 111},
		"the default from zero":          {domain.AutoscalingPolicy{}, nil, 0, 9, 4},
		"a percentage from zero":         {out(bounds(0, 0, 100, 60)), nil, 0, 4, 1},
		"a percentage from zero, and the step was made": {
			out(bounds(0, 0, 100, 60)), []At[int]{ago(30*time.Second, 1)}, 1, 4, 1,
		},
		"the default from zero, the smallest": {
			out(with(bounds(0, 0, 0, 0), domain.SelectMin, 0)), nil, 0, 9, 1,
		},
		"the default, the smallest": {out(with(bounds(0, 0, 0, 0), domain.SelectMin, 0)), nil, 10, 50, 14},
		"no rates in, the smallest": {in(with(bounds(0, 0, 0, 0), domain.SelectMin, 0)), nil, 10, 1, 1},
		"the smallest, whichever is first": {
			in(with(bounds(7, 60, 50, 60), domain.SelectMin, 0)), nil, 10, 0, 5,
		},
		"no scaling out":                   {out(with(bounds(5, 60, 0, 0), domain.SelectDisabled, 0)), nil, 5, 9, 5},
		"no scaling in":                    {in(with(bounds(0, 0, 0, 0), domain.SelectDisabled, 0)), nil, 5, 1, 5},
		"no scaling in, but out":           {in(with(bounds(0, 0, 0, 0), domain.SelectDisabled, 0)), nil, 5, 9, 9},
		"a step out":                       {out(with(bounds(0, 0, 0, 0), "", 2)), nil, 10, 50, 12},
		"a step in":                        {in(with(bounds(0, 0, 0, 0), "", 2)), nil, 10, 1, 8},
		"a step beyond the rate":           {out(with(bounds(2, 60, 0, 0), "", 5)), nil, 10, 50, 12},
		"a step of exactly what is wanted": {in(with(bounds(0, 0, 0, 0), "", 2)), nil, 10, 8, 8},
		"a percentage beyond all bounds": {
			out(bounds(0, 0, 1e300, 60)), nil, 10, domain.MaxReplicas, domain.MaxReplicas,
		},
		"a count that others made smaller than its changes": {out(bounds(0, 0, 1e300, 60)), spread(0, 9), 5, 50, 5},
		"no change": {out(with(bounds(1, 60, 0, 0), domain.SelectDisabled, 1)), nil, 5, 5, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, why := limit(&test.policy, test.changes, someTime, test.count, test.wanted)
			if got != test.want {
				t.Errorf("%d (%s), not %d", got, why, test.want)
			}
			if (why != "") != (got != test.wanted) {
				t.Errorf("%d of %d wanted, because %q", got, test.wanted, why)
			}
		})
	}
}

func TestLimitSaysWhy(t *testing.T) {
	tests := map[string]struct {
		policy        domain.AutoscalingPolicy
		count, wanted int
		want          string
	}{
		"percentage": {domain.AutoscalingPolicy{}, 10, 50, "50 wanted, but at most 100 % in 15s: 20"},
		"count":      {domain.AutoscalingPolicy{}, 1, 50, "50 wanted, but at most 4 members in 15s: 5"},
		"one": {
			domain.AutoscalingPolicy{ScaleIn: bounds(1, 60, 0, 0)}, 9, 2, "2 wanted, but at most 1 member in 1m0s: 8",
		},
		"step": {
			domain.AutoscalingPolicy{ScaleIn: domain.ScalingBehaviour{MaxStep: 3}}, 9, 2,
			"2 wanted, but at most 3 members per step: 6",
		},
		"no out": {
			domain.AutoscalingPolicy{ScaleOut: domain.ScalingBehaviour{Select: domain.SelectDisabled}}, 9, 12,
			"scaling out is disabled",
		},
		"no in": {
			domain.AutoscalingPolicy{ScaleIn: domain.ScalingBehaviour{Select: domain.SelectDisabled}}, 9, 2,
			"scaling in is disabled",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, why := limit(&test.policy, nil, someTime, test.count, test.wanted); why != test.want {
				t.Errorf("%q, not %q", why, test.want)
			}
		})
	}
}

func TestLongest(t *testing.T) {
	tests := map[string]struct {
		policy                domain.AutoscalingPolicy
		stabilisation, period time.Duration
	}{
		"defaults": {domain.AutoscalingPolicy{}, 5 * time.Minute, 15 * time.Second},
		"out": {
			domain.AutoscalingPolicy{
				ScaleOut: domain.ScalingBehaviour{
					Stabilisation: duration(time.Hour), Rates: bounds(1, 120, 10, 60).Rates,
				},
			}, time.Hour, 2 * time.Minute,
		},
		"in": {
			domain.AutoscalingPolicy{
				ScaleIn: domain.ScalingBehaviour{
					Stabilisation: duration(time.Minute), Rates: bounds(1, 60, 10, 30).Rates,
				},
			}, time.Minute, time.Minute,
		},
		"shorter than the default": {
			domain.AutoscalingPolicy{ScaleOut: bounds(1, 5, 0, 0)}, 5 * time.Minute, 5 * time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := longestStabilisation(&test.policy); got != test.stabilisation {
				t.Errorf("stabilisation %s, not %s", got, test.stabilisation)
			}
			if got := longestPeriod(&test.policy); got != test.period {
				t.Errorf("period %s, not %s", got, test.period)
			}
		})
	}
}

func TestKeepRecent(t *testing.T) {
	tests := map[string]struct {
		list []At[int]
		want int
	}{
		"none":             {nil, 0},
		"all":              {[]At[int]{ago(time.Minute, 1), ago(time.Second, 2)}, 2},
		"what is as old":   {[]At[int]{ago(time.Minute+1, 1), ago(time.Minute, 2), ago(0, 3)}, 2},
		"nothing is newer": {[]At[int]{ago(3*time.Minute, 1), ago(2*time.Minute, 2)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := append([]At[int]{}, test.list...)
			got := keepRecent(test.list, someTime, time.Minute)
			if diff := cmp.Diff(before[len(before)-test.want:], append([]At[int]{}, got...)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, append([]At[int]{}, test.list...)); diff != "" {
				t.Errorf("the list itself has changed:\n%s", diff)
			}
			if allocations := testing.AllocsPerRun(10, func() {
				keepRecent(test.list, someTime, time.Minute)
			}); allocations != 0 {
				t.Errorf("%v allocations", allocations)
			}
		})
	}
}

func BenchmarkBehaviour(b *testing.B) {
	var asked, changes []At[int]
	for i := 60; i > 0; i-- {
		asked = append(asked, ago(time.Duration(i)*5*time.Second, i))
		changes = append(changes, ago(time.Duration(i)*5*time.Second, 1))
	}
	policy := domain.AutoscalingPolicy{ScaleIn: bounds(4, 300, 10, 300)}
	for b.Loop() {
		stable, _ := stabilise(&policy, asked, someTime, 100, 3)
		limit(&policy, changes, someTime, 100, stable)
	}
}
