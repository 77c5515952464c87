package autoscale

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Trend is what a forecast remembers of a metric: some 5 KB of JSON with a season, and some hundred bytes without.
//
// Without a season it is Holt's linear trend, damped (Gardner and McKenzie, Forecasting trends in time series,
// Management Science 31, 1985), with weights for values at irregular times (Wright, Forecasting data published at
// irregular time intervals, Management Science 32, 1986). With a season it is that of Holt and Winters with an additive
// season (Winters, Forecasting sales by exponentially weighted moving averages, Management Science 6, 1960): the trend
// is that of the values less those of the same time in earlier seasons.
type Trend struct {
	// At and Value are the newest value. Step is the typical time between two values, in seconds; 0 before the second.
	At    time.Time `json:"at,omitzero"`
	Value float64   `json:"value"`
	Step  float64   `json:"step,omitempty"`
	// Level is the smoothed value, less the season's if Seasonal. Slope is its change per second.
	Level    float64 `json:"level"`
	Slope    float64 `json:"slope"`
	Seasonal bool    `json:"seasonal,omitempty"`
	// LevelWeight and SlopeWeight are the weights of the newest value, from 0 to 1: V and U in Wright.
	LevelWeight float64 `json:"level_weight"`
	SlopeWeight float64 `json:"slope_weight"`
	// Season is nil if the forecast has none.
	Season *Season `json:"season,omitempty"`
}

// Season is the repeating part of a metric. Its values include the level, as only their differences count.
type Season struct {
	// Length is the period. Profile is the metric's value in each part of it; unknown if not known yet.
	Length  domain.Duration `json:"length"`
	Profile []float32       `json:"profile"`
	// Part is the number of the part with the newest value, counted since 1970. Sum and Count are of the values in it.
	// Before is the mean of the previous part, which is not in the profile yet.
	Part   int64   `json:"part"`
	Sum    float64 `json:"sum"`
	Count  int     `json:"count"`
	Before float64 `json:"before"`
}

// UnmarshalJSON reads a stored trend. Impossible values are dropped, as they would keep the policy from deciding, or
// from storing anything.
func (t *Trend) UnmarshalJSON(text []byte) error {
	type plain Trend
	var stored plain
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	if *t = Trend(stored); !t.sound() {
		*t = Trend{}
	}
	if t.Season != nil && !t.Season.sound() {
		t.Season = nil
	}
	return nil
}

// Bounds for a stored trend, far beyond any real one, so that nothing computed from such values overflows.
const (
	mostStored = 1e20 * largest
	mostStep   = 1e10 // seconds, which are 300 years
)

func (t *Trend) sound() bool {
	return math.Abs(t.Value) <= largest && math.Abs(t.Level) <= mostStored && math.Abs(t.Slope) <= mostStored &&
		t.Step >= 0 && t.Step <= mostStep &&
		t.LevelWeight >= 0 && t.LevelWeight <= 1 && t.SlopeWeight >= 0 && t.SlopeWeight <= 1
}

func (s *Season) sound() bool {
	unbounded := func(value float32) bool { return math.Abs(float64(value)) > 2*largest }
	return s.Length >= seasonParts && len(s.Profile) == seasonParts && !slices.ContainsFunc(s.Profile, unbounded) &&
		s.Count >= 0 && math.Abs(s.Sum)/float64(max(s.Count, 1)) <= 2*largest && math.Abs(s.Before) <= 2*largest
}

const (
	// seasonParts is the number of parts of a season. For a day, each is 5 minutes.
	seasonParts = 288
	// seasonWeight is the weight of the newest season in the profile. An odd day, such as a holiday, must not become
	// the rule.
	seasonWeight = 0.3
	// unknown marks parts of a season without a value. Metrics are never negative.
	unknown = -1
	// gapSteps is the number of typical steps without a value after which a trend is discarded.
	gapSteps = 10
	// largest bounds values so that nothing computed from them overflows.
	largest = 1e30
)

// The time constants of the smoothing. The level's is a quarter of the lead, but at least some steps, as single values
// show no trend. The slope's and the damping's are multiples of it: with 2, the level follows a step of the metric with
// hardly any overshoot (a second-order system with a damping ratio of 0.7); with 32, the expected rise of a steady ramp
// is 87 % of the true one.
const (
	levelLeads   = 0.25
	levelSteps   = 3
	slopeLevels  = 2
	dampedLevels = 32
)

// expect takes the newest value of a metric at its time, and returns the value expected a lead ahead, and whether that
// is more. A value that is not newer than the last one changes nothing in the trend.
//
// The expected value is never below the current one, as a forecast serves to be ready in time. Members needed now are
// not removed because less is expected; scaling in follows the actual value.
func (t *Trend) expect(f domain.Forecast, now time.Time, value float64) (expected float64, more bool) {
	if math.IsNaN(value) {
		value = t.Value
	} else {
		value = min(max(value, 0), largest)
		t.take(f, now, value)
	}
	lead := time.Duration(f.Lead)
	ahead := t.Level + t.Slope*damped(lead.Seconds(), dampedLevels*t.smoothing(f))
	if t.Seasonal && t.Season != nil {
		season, _ := t.Season.at(now.Add(lead))
		ahead += season
	}
	if ahead = min(ahead, largest); !(ahead > value) {
		return value, false
	}
	return ahead, true
}

// why describes the expected value.
func (t *Trend) why(f domain.Forecast, expected float64, more bool) string {
	lead := time.Duration(f.Lead)
	if !more {
		return say("no increase expected in ", lead)
	}
	by := " by the trend"
	if t.Seasonal {
		by = " by the season and the trend"
	}
	return say(strconv.FormatFloat(expected, 'g', 4, 64), " expected in ", lead, by)
}

// take updates the trend and the season with a value.
func (t *Trend) take(f domain.Forecast, now time.Time, value float64) {
	first := t.At.IsZero()
	elapsed := now.Sub(t.At).Seconds()
	if !first && elapsed <= 0 && -elapsed <= gapSteps*t.Step {
		return
	}
	gap := first || elapsed <= 0 || t.Step > 0 && elapsed > gapSteps*t.Step
	switch {
	case first || elapsed <= 0:
	case t.Step == 0:
		t.Step = elapsed
	case gap:
		// If values become rarer, they look like gaps until the step has adapted.
		t.Step = min(2*t.Step, elapsed)
	default:
		t.Step += (elapsed - t.Step) / 10
	}
	t.At, t.Value = now, value

	seasonal, season := false, 0.0
	if f.Season == nil || *f.Season < seasonParts {
		t.Season = nil
	} else {
		if t.Season == nil || t.Season.Length != *f.Season {
			t.Season = newSeason(*f.Season)
		}
		t.Season.take(now, value, gap)
		var ahead bool
		season, seasonal = t.Season.at(now)
		_, ahead = t.Season.at(now.Add(time.Duration(f.Lead)))
		seasonal = seasonal && ahead
		if !seasonal {
			season = 0
		}
	}
	if gap || seasonal != t.Seasonal {
		t.Level, t.Slope, t.LevelWeight, t.SlopeWeight, t.Seasonal = value-season, 0, 1, 0, seasonal
		return
	}
	t.smooth(elapsed, t.smoothing(f), value-season)
}

// smooth updates the level and the slope with a value that came elapsed seconds after the one before. constant is the
// level's time constant in seconds.
func (t *Trend) smooth(elapsed, constant, value float64) {
	slopeKept := math.Exp(-elapsed / (slopeLevels * constant))
	levelKept := slopeKept * slopeKept // slopeLevels is 2
	if t.SlopeWeight == 0 {
		// The slope begins as 0, as two values are too few for another one.
		t.SlopeWeight = 1 - slopeKept
	}
	t.LevelWeight /= t.LevelWeight + levelKept
	t.SlopeWeight /= t.SlopeWeight + slopeKept
	before := t.Level
	faded := -math.Expm1(-elapsed / (dampedLevels * constant))
	t.Level += t.Slope * dampedLevels * constant * faded
	t.Level += t.LevelWeight * (value - t.Level)
	t.Slope *= 1 - faded
	t.Slope += t.SlopeWeight * ((t.Level-before)/elapsed - t.Slope)
}

// smoothing returns the time constant of the level in seconds.
func (t *Trend) smoothing(f domain.Forecast) float64 {
	return max(levelLeads*time.Duration(f.Lead).Seconds(), levelSteps*t.Step, 1e-3)
}

// damped returns for how many seconds a slope effectively counts over a time ahead, if it fades with a time constant.
func damped(seconds, constant float64) float64 { return -constant * math.Expm1(-seconds/constant) }

func newSeason(length domain.Duration) *Season {
	s := &Season{Length: length, Profile: make([]float32, seasonParts), Before: unknown}
	for i := range s.Profile {
		s.Profile[i] = unknown
	}
	return s
}

// take adds a value to its part. Skipped parts get it, too, unless there was a gap.
//
// A part enters the profile only after the next part. Until then it keeps the previous season's value, like the parts
// ahead that a forecast reads: if some of them were already of this season, a difference between seasons would look
// like one between parts.
func (s *Season) take(now time.Time, value float64, gap bool) {
	part, _ := s.part(now)
	if gap || s.Count == 0 || part < s.Part || part-seasonParts > s.Part {
		s.learn(s.Part-1, s.Before)
		if s.Count > 0 {
			s.learn(s.Part, s.Sum/float64(s.Count))
		}
		s.Part, s.Sum, s.Count, s.Before = part, value, 1, unknown
		return
	}
	if part == s.Part {
		s.Sum += value
		s.Count++
		return
	}
	for ; s.Part < part; s.Part++ {
		s.learn(s.Part-1, s.Before)
		s.Before, s.Sum, s.Count = s.Sum/float64(s.Count), value, 1
	}
}

// learn updates the profile of a part with its mean in this season.
func (s *Season) learn(part int64, mean float64) {
	if mean == unknown {
		return
	}
	if p := s.of(part); *p == unknown {
		*p = float32(mean)
	} else {
		*p += seasonWeight * (float32(mean) - *p)
	}
}

// at returns the profile at a time, interpolated between the middles of two parts, and whether it is known.
func (s *Season) at(now time.Time) (value float64, known bool) {
	part, share := s.part(now)
	other, weight := part+1, share-0.5
	if share < 0.5 {
		other, weight = part-1, 0.5-share
	}
	a, b := float64(*s.of(part)), float64(*s.of(other))
	switch {
	case a == unknown:
		return 0, false
	case b == unknown:
		return a, true
	}
	return a + weight*(b-a), true
}

// of returns the profile's value of a part counted since 1970.
func (s *Season) of(part int64) *float32 {
	return &s.Profile[(part%seasonParts+seasonParts)%seasonParts]
}

// part returns the number of the part that a time is in, counted since 1970, and the elapsed fraction of it. Seasons
// are counted in UTC, so a forecast for local days is an hour off for some days after a change of daylight-saving time.
func (s *Season) part(now time.Time) (part int64, share float64) {
	width, since := int64(s.Length)/seasonParts, now.UnixNano()
	return since / width, float64(since%width) / float64(width)
}
