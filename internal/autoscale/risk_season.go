package autoscale

import (
	"math"
	"slices"
	"time"
)

// riskSeason is the repeating part of a load, as factors of its mean.
//
// Unlike [Season], nobody has to say whether there is one: if nothing repeats, another forecast is better.
type riskSeason struct {
	// Mean is the mean over about one season, and Level the smoothed load without the season.
	Mean  float64 `json:"mean"`
	Level float64 `json:"level"`
	// Profile are the factors of the parts, all equal at first.
	Profile []float32 `json:"profile"`
}

const (
	// hourParts and dayParts are the numbers of parts of a season: the minutes of an hour, and the quarter-hours of a
	// day.
	hourParts, dayParts = 60, 96
	// newestSeason is the weight of the newest season.
	newestSeason = 0.25
	// seasonLeads is the time constant of the level, in leads.
	seasonLeads = 3
	// Bounds for factors, as a part without any load shows nothing about the load without the season.
	leastFactor, mostFactor = 0.05, 20
)

func newRiskSeason(length time.Duration, load float64) riskSeason {
	s := riskSeason{Mean: load, Level: load, Profile: make([]float32, partsOf(length))}
	for i := range s.Profile {
		s.Profile[i] = 1
	}
	return s
}

func partsOf(length time.Duration) int {
	if length == time.Hour {
		return hourParts
	}
	return dayParts
}

// width returns how long a part lasts.
func (s *riskSeason) width() time.Duration {
	if len(s.Profile) == hourParts {
		return time.Hour / hourParts
	}
	return 24 * time.Hour / dayParts
}

// factor returns the factor of the part that a time is in.
func (s *riskSeason) factor(at time.Time) *float32 {
	parts := int64(len(s.Profile))
	part := at.Unix() / int64(s.width().Seconds()) % parts
	return &s.Profile[(part+parts)%parts]
}

// take learns from a load that held for some seconds. constant is the time constant of the level.
func (s *riskSeason) take(at time.Time, seconds, constant, load float64) {
	factor := s.factor(at)
	s.Mean -= math.Expm1(-seconds/s.width().Seconds()/float64(len(s.Profile))) * (load - s.Mean)
	s.Level = min(s.Level-math.Expm1(-seconds/constant)*(load/float64(*factor)-s.Level), mostLoad)
	weight := 1 - math.Pow(1-newestSeason, min(seconds/s.width().Seconds(), 1))
	moved := float64(*factor) + weight*(min(load/max(s.Mean, leastScaled), mostFactor)-float64(*factor))
	*factor = float32(max(moved, leastFactor))
}

// at returns the expected load at a time.
func (s *riskSeason) at(at time.Time) float64 { return s.Level * float64(*s.factor(at)) }

func (s *riskSeason) sound(length time.Duration) bool {
	return s.Mean >= 0 && s.Mean <= mostLoad && s.Level >= 0 && s.Level <= mostLoad &&
		len(s.Profile) == partsOf(length) &&
		!slices.ContainsFunc(s.Profile, func(factor float32) bool { return !(factor >= 0.01 && factor <= mostFactor) })
}
