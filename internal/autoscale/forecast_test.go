package autoscale

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// midnight is the beginning of a Monday.
var midnight = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func ahead(lead time.Duration) domain.Forecast { return domain.Forecast{Lead: domain.Duration(lead)} }

func daily(lead time.Duration) domain.Forecast {
	day := domain.Duration(24 * time.Hour)
	return domain.Forecast{Lead: domain.Duration(lead), Season: &day}
}

// observe passes a value to a trend, and returns what it expects, and why.
func (t *Trend) observe(f domain.Forecast, now time.Time, value float64) (float64, string) {
	expected, more := t.expect(f, now, value)
	return expected, t.why(f, expected, more)
}

func TestForecastOfARamp(t *testing.T) {
	const perSecond = 0.5
	for name, test := range map[string]struct {
		step, lead time.Duration
		jitter     float64
	}{
		"a value every 5 s":        {5 * time.Second, 5 * time.Minute, 0},
		"a value every 15 s":       {15 * time.Second, 5 * time.Minute, 0},
		"at irregular times":       {15 * time.Second, 10 * time.Minute, 0.8},
		"as many steps as leads":   {time.Minute, time.Minute, 0},
		"a lead of less than that": {time.Minute, 20 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var trend Trend
			random := rand.New(rand.NewPCG(1, 1))
			forecast, now := ahead(test.lead), midnight
			var value, got float64
			for range 500 {
				now = now.Add(time.Duration(float64(test.step) * (1 + test.jitter*(2*random.Float64()-1))))
				value = 100 + perSecond*now.Sub(midnight).Seconds()
				got, _ = trend.observe(forecast, now, value)
			}
			// In the steady state, the slope is that of the ramp except for the damping, and the level lags by what it
			// misses of the slope within its time constant. This is solved here for values at equal intervals.
			level, step := max(levelLeads*test.lead.Seconds(), levelSteps*trend.Step), test.step.Seconds()
			levelWeight, slopeWeight := 1-math.Exp(-step/level), 1-math.Exp(-step/(slopeLevels*level))
			slope := perSecond * slopeWeight / (1 - (1-slopeWeight)*math.Exp(-step/(dampedLevels*level)))
			behind := (1 - levelWeight) / levelWeight * (perSecond*step - slope*damped(step, dampedLevels*level))
			want := value - behind + slope*damped(test.lead.Seconds(), dampedLevels*level)
			rise := perSecond * test.lead.Seconds()
			if math.Abs(got-want) > max(1e-6, 0.03*test.jitter)*rise {
				t.Errorf("%.4f is expected, want %.4f", got, want)
			}
			// A lead of few steps is too short for such rare values.
			if miss := math.Abs(value + rise - got); miss > 0.15*max(rise, perSecond*level/levelLeads) {
				t.Errorf("the forecast misses a rise of %.2f by %.2f", rise, miss)
			}
		})
	}
}

func TestForecastOfADay(t *testing.T) {
	const step, lead = 15 * time.Second, 15 * time.Minute
	for name, test := range map[string]struct {
		noise, growth float64
		// better is by which factor the error at the lead has to be smaller than that of using the present value.
		better float64
	}{
		"a sine":                {0, 0, 100},
		"with noise":            {1, 0, 5},
		"that grows by the day": {0, 20, 15},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(2, 2))
			load := func(now time.Time) float64 {
				days := now.Sub(midnight).Hours() / 24
				return 100 + test.growth*days - 80*math.Cos(2*math.Pi*days)
			}
			var trend Trend
			var missed, naive float64
			for now := midnight; now.Before(midnight.Add(4 * 24 * time.Hour)); now = now.Add(step) {
				value := load(now) + test.noise*random.NormFloat64()
				got, _ := trend.observe(daily(lead), now, value)
				// The expected value is never below the current one, so only rising loads show a difference.
				if then := load(now.Add(lead)); now.After(midnight.Add(24*time.Hour)) && then > load(now) {
					missed += math.Abs(got - then)
					naive += math.Abs(value - then)
				}
			}
			t.Logf("%.1f times as good", naive/missed)
			if missed*test.better > naive {
				t.Errorf("from the second day on the forecast is %.2f times as good as the present value, want %v times",
					naive/missed, test.better)
			}
		})
	}
}

// TestForecastOfAJump checks that a daily jump, which a trend can't foresee, is foreseen with a season.
func TestForecastOfAJump(t *testing.T) {
	const step, lead = 15 * time.Second, 15 * time.Minute
	load := func(now time.Time) float64 {
		if hour := now.Hour(); hour >= 8 && hour < 18 {
			return 100
		}
		return 10
	}
	var trend Trend
	for now := midnight; now.Before(midnight.Add(33 * time.Hour)); now = now.Add(step) {
		got, why := trend.observe(daily(lead), now, load(now))
		if at := now.Sub(midnight); at == 31*time.Hour+50*time.Minute && got < 90 {
			t.Errorf("10 minutes before the jump of the second day %.1f is expected (%s), want 100", got, why)
		} else if at == 31*time.Hour+30*time.Minute && got > 20 {
			t.Errorf("half an hour before the jump %.1f is expected (%s), want 10", got, why)
		}
	}
}

func TestForecastOfNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var trend Trend
	var above float64
	const values = 5000
	for i := range values {
		value := 100 + 5*random.NormFloat64()
		got, _ := trend.observe(ahead(5*time.Minute), midnight.Add(time.Duration(i)*5*time.Second), value)
		above += got - value
		if got > 160 {
			t.Fatalf("%.1f is expected of %.1f in noise of 5 around 100", got, value)
		}
	}
	if mean := above / values; mean > 8 {
		t.Errorf("forecasts of noise of 5 are %.2f above the value in the mean, want 8 at most", mean)
	}
}

func TestForecastOfWhatDoesNotChange(t *testing.T) {
	for _, forecast := range []domain.Forecast{ahead(time.Minute), daily(time.Minute)} {
		for _, value := range []float64{0, 1e-9, 42, 1e20} {
			var trend Trend
			for now := midnight; now.Before(midnight.Add(50 * time.Hour)); now = now.Add(time.Minute) {
				if got, why := trend.observe(forecast, now, value); math.Abs(got-value) > 1e-6*value {
					t.Fatalf("after %v %v is expected where it has always been %v (%s)", now.Sub(midnight), got, value,
						why)
				}
			}
		}
	}
}

func TestForecastIsNeverBelowTheValue(t *testing.T) {
	var trend Trend
	for i := range 100 {
		value := float64(1000 - 10*i)
		got, why := trend.observe(ahead(5*time.Minute), midnight.Add(time.Duration(i)*15*time.Second), value)
		if got != value || why != "no increase expected in 5m0s" {
			t.Fatalf("%v is expected where it falls to %v (%s)", got, value, why)
		}
	}
}

func TestForecastAfterAGap(t *testing.T) {
	const step, lead = 15 * time.Second, 15 * time.Minute
	load := func(now time.Time) float64 { return 100 - 80*math.Cos(2*math.Pi*now.Sub(midnight).Hours()/24) }
	var trend Trend
	run := func(from, to time.Duration) (got float64) {
		for at := from; at <= to; at += step {
			got, _ = trend.observe(daily(lead), midnight.Add(at), load(midnight.Add(at)))
		}
		return got
	}
	run(0, 31*time.Hour)
	if trend.Slope == 0 || !trend.Seasonal {
		t.Fatalf("before the gap there is no trend: %+v", trend)
	}
	resumed := 34 * time.Hour
	got := run(resumed, resumed)
	if trend.Slope != 0 {
		t.Errorf("the slope outlives a gap: %v", trend.Slope)
	}
	if want := load(midnight.Add(resumed + lead)); math.Abs(got-want) > 1 {
		t.Errorf("after the gap %.2f is expected, want %.2f by the season, which is kept", got, want)
	}
	if hole, known := trend.Season.at(midnight.Add(33 * time.Hour)); !known ||
		math.Abs(hole-load(midnight.Add(33*time.Hour))) > 1 {
		t.Errorf("the season in the gap is %v, want that of the first day", hole)
	}
}

// TestForecastOfRarerValues checks that values as rare as gaps used to be form a trend again after some of them.
func TestForecastOfRarerValues(t *testing.T) {
	var trend Trend
	now, value := midnight, 0.0
	for _, step := range []time.Duration{time.Second, time.Minute} {
		for range 1000 {
			now = now.Add(step)
			value += step.Seconds()
			trend.observe(ahead(5*time.Minute), now, value)
		}
		if math.Abs(trend.Slope-1) > 0.1 {
			t.Errorf("with a value every %v the slope is %v, want 1", step, trend.Slope)
		}
	}
}

// TestForecastInAHoleOfTheSeason checks that a gap in the first day has no season, so that only the trend counts there
// until the next one.
func TestForecastInAHoleOfTheSeason(t *testing.T) {
	var trend Trend
	load := func(at time.Duration) float64 { return 100 + 10*math.Sin(2*math.Pi*at.Hours()/24) }
	for at := time.Duration(0); at < 48*time.Hour; at += time.Minute {
		if at > 10*time.Hour && at < 14*time.Hour {
			continue
		}
		if got, why := trend.observe(daily(10*time.Minute), midnight.Add(at), load(at)); got > 125 {
			t.Fatalf("at %v %.1f is expected of %.1f (%s)", at, got, load(at), why)
		}
		if at > 25*time.Hour && at < 33*time.Hour && !trend.Seasonal {
			t.Fatalf("at %v the season is not used", at)
		}
	}
}

func TestForecastOfNonsense(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	values := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, math.MaxFloat64, math.SmallestNonzeroFloat64, 1, 1e30,
	}
	for _, forecast := range []domain.Forecast{
		{}, ahead(1), ahead(time.Minute), ahead(1e6 * time.Hour), daily(time.Hour),
	} {
		var trend Trend
		now := midnight
		for range 20_000 {
			now = now.Add(time.Duration(math.Exp(random.Float64()*40)) - 1000)
			if random.IntN(100) == 0 || now.Year() > 2200 {
				now = midnight
			}
			value := values[random.IntN(len(values))]
			got, why := trend.observe(forecast, now, value)
			if !(got >= 0 && got <= largest) || got < min(value, largest) {
				t.Fatalf("%v is expected of %v (%s)", got, value, why)
			}
		}
		if _, err := json.Marshal(trend); err != nil {
			t.Error(err)
		}
	}
}

func TestForecastTakesAValueOnce(t *testing.T) {
	var once, twice Trend
	for i := range 100 {
		now, value := midnight.Add(time.Duration(i)*15*time.Second), float64(i*i)
		want, _ := once.observe(daily(time.Minute), now, value)
		twice.observe(daily(time.Minute), now, value)
		if got, _ := twice.observe(daily(time.Minute), now, value); got != want {
			t.Fatalf("%v is expected of a value that is seen twice, want %v", got, want)
		}
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("after values that were seen twice (-once +twice):\n%s", diff)
	}
}

func TestTrendOutlivesJSON(t *testing.T) {
	for name, forecast := range map[string]domain.Forecast{
		"without a season": ahead(5 * time.Minute), "with a season": daily(5 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			var kept, read Trend
			random := rand.New(rand.NewPCG(5, 5))
			for i := range 4000 {
				now, value := midnight.Add(time.Duration(i)*time.Minute), 100*random.Float64()
				want, _ := kept.observe(forecast, now, value)
				if i%500 == 0 {
					text, err := json.Marshal(read)
					if err != nil {
						t.Fatal(err)
					}
					if most := 6000; len(text) > most {
						t.Errorf("%d bytes are remembered, want %d at most", len(text), most)
					}
					read = Trend{}
					if err := json.Unmarshal(text, &read); err != nil {
						t.Fatal(err)
					}
				}
				if got, _ := read.observe(forecast, now, value); got != want {
					t.Fatalf("value %d: %v is expected after the trend was stored, and %v without", i, got, want)
				}
			}
		})
	}
}

func TestForecastSaysWhy(t *testing.T) {
	var trend Trend
	var why string
	for i := range 100 {
		_, why = trend.observe(ahead(5*time.Minute), midnight.Add(time.Duration(i)*15*time.Second), float64(i))
	}
	if !strings.HasSuffix(why, " expected in 5m0s by the trend") {
		t.Errorf("a rise is explained with %q", why)
	}
}

func BenchmarkExpect(b *testing.B) {
	for name, forecast := range map[string]domain.Forecast{
		"trend": ahead(5 * time.Minute), "season": daily(5 * time.Minute),
	} {
		b.Run(name, func(b *testing.B) {
			var trend Trend
			now := midnight
			for b.Loop() {
				now = now.Add(15 * time.Second)
				trend.observe(forecast, now, float64(now.Unix()%86_400))
			}
		})
	}
}
