package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// runNoise is the expected relative variation of a run's rate.
	runNoise = 0.03
	// nearlyAll is the gain from which runs count as hardly slowing each other down.
	nearlyAll = 0.9
	// finest divides the best level: the search need not resolve smaller differences.
	finest = 8
	// longer is how many times the minimum time a level has to be measured before it can count as clearly too little.
	// After longest times, it is decided even if it is not clear.
	longer, longest = 6, 20
	// ratesKept limits the rates that are stored.
	ratesKept = 200
	// patienceInSettles is after how long without reported progress the search gives up, in settle times, and
	// shortPatience the same once endedSilent runs have ended without any.
	patienceInSettles, shortPatience, endedSilent = 10, 2, 3
)

// Decide decides whether to try another level, from what was measured, and reports whether it does.
func (s *Search) Decide(now time.Time) bool {
	if !s.Goes() {
		return false
	}
	rates, each, late := s.rates()
	kept := s.few(rates)
	enough := s.settle() / 3
	f := &s.found
	switch {
	case each < enough && f.Best == 0 && s.silent(now):
	case each < enough:
		return false
	case f.Best == 0:
		f.Throughput = map[int]float64{f.Level: float64(f.Level) * mean(slices.Collect(maps.Values(rates)))}
		f.Best, f.Base, f.Rates, f.Level = f.Level, f.Level, kept, f.Level+1
	default:
		faster, deviation := s.compare(rates, math.Hypot(runNoise*math.Sqrt(float64(enough)/float64(each)), late/2))
		makes := f.Throughput[f.Base] * float64(f.Level) / float64(f.Base) * math.Exp(faster)
		if !(makes > 0) || math.IsInf(makes, 0) {
			f.Unknown = "the step counts that runs report are too far apart to compare"
			break
		}
		gain, slope := s.gain(makes)
		pays := gain-2*deviation*slope > s.progress.Gain()
		not := gain+3*deviation*slope < s.progress.Gain() && each >= longer*enough
		if !pays && !not && each < longest*enough {
			return false
		}
		s.move(makes, gain > s.progress.Gain(), kept)
	}
	s.changed = true
	s.begin()
	return true
}

// gain returns the gain of the higher one of the present and the best level over the other, given the total throughput
// at the present one, and the derivative of the gain by the logarithm of that throughput.
func (s *Search) gain(makes float64) (gain, slope float64) {
	f := s.found
	switch best := f.Throughput[f.Best]; {
	case f.Level > f.Best:
		return gainOver(f.Best, f.Level, makes/best)
	case f.Level < f.Best:
		return gainOver(f.Level, f.Best, best/makes)
	}
	// The best level was measured once more, after one above it. Both measurements count.
	first, _ := gainOver(f.Best, f.Over, f.Throughput[f.Over]/f.Throughput[f.Best])
	second, slope := gainOver(f.Best, f.Over, f.Throughput[f.Over]/makes)
	return (first + second) / 2, slope / 2
}

// gainOver returns the gain of a higher level over a lower one, if the total throughput is times as high, and the
// derivative of the gain by the logarithm of times. See [Search].
func gainOver(lower, higher int, times float64) (gain, slope float64) {
	each := float64(lower) / float64(higher-lower)
	return (times - 1) * each, times * each
}

// move chooses the next level, given the total throughput at the present one, and whether the higher one of that and
// the best level pays.
func (s *Search) move(makes float64, pays bool, rates map[string]float64) {
	f := &s.found
	level := f.Level
	f.Throughput = maps.Clone(f.Throughput)
	again := level == f.Best
	switch {
	case again && !pays:
		f.Settled, f.Base, f.Rates = true, 0, nil
		return
	case again:
		f.Best, f.Over, f.Base, f.Rates = f.Over, 0, level, rates
	case level > f.Best && !pays:
		f.Over = level
	case level > f.Best:
		f.Best, f.Base, f.Rates = level, level, rates
	case !pays:
		f.Over, f.Best, f.Base, f.Rates = f.Best, level, level, rates
	}
	if !again {
		f.Throughput[level] = makes
	}
	under := 0
	for n := range f.Throughput {
		if n < f.Best {
			under = max(under, n)
		}
	}
	alike := false
	if under > 0 {
		gain, _ := gainOver(under, f.Best, f.Throughput[f.Best]/f.Throughput[under])
		alike = gain >= nearlyAll
	}
	fine := max(1, f.Best/finest)
	switch {
	case under > 0 && f.Best-under > fine && !alike: // the best may be between them
		f.Level = under + (f.Best-under)/2
	case f.Over == 0 && alike:
		f.Level = 2 * f.Best
	case f.Over == 0:
		f.Level = f.Best + 1
	case f.Over-f.Best > fine:
		f.Level = f.Best + (f.Over-f.Best)/2
	case level == f.Over:
		f.Level, f.Base, f.Rates = f.Best, f.Over, rates
	default:
		f.Level, f.Settled, f.Base, f.Rates = f.Best, true, 0, nil
	}
}

// silent reports whether no progress can be measured, and records why.
func (s *Search) silent(now time.Time) bool {
	waited := now.Sub(s.since)
	long, some := waited >= patienceInSettles*s.settle(), s.ended >= endedSilent
	switch {
	case s.since.IsZero() || !long && (!some || waited < shortPatience*s.settle()):
		return false
	case s.reported && long && some:
		s.found.Unknown = fmt.Sprintf("runs end before their progress can be measured; set progress.settle to "+
			"less than %s",
			s.settle())
	case !s.reported:
		s.found.Unknown = cmp.Or(s.trouble,
			fmt.Sprintf("no line that a run logged within %s matches progress.pattern", waited.Round(time.Second)))
	default:
		return false
	}
	return true
}

// rates returns the steps per second of the runs measured at the present level, by key, how long they were measured per
// active run, on average, and the relative error in time, as progress is only seen at the next read.
func (s *Search) rates() (rates map[string]float64, each time.Duration, late float64) {
	all := maps.Clone(s.measured)
	for a, w := range s.attempts {
		if m := w.measure(); m.took >= s.settle()/briefest {
			all[a.Key] = all[a.Key].add(m)
		}
	}
	rates = make(map[string]float64, len(all))
	var sum time.Duration
	for key, m := range all {
		rates[key] = m.steps / m.took.Seconds()
		sum += m.took
		pause := m.took / time.Duration(max(m.lines, 1))
		late += min(pause, s.Interval()).Seconds() / m.took.Seconds() / float64(len(all))
	}
	return rates, sum / time.Duration(max(1, min(len(s.attempts), readAtMost))), late
}

// few returns the rates to keep, those of active runs first.
func (s *Search) few(rates map[string]float64) map[string]float64 {
	if len(rates) <= ratesKept {
		return rates
	}
	on := map[string]bool{}
	for a := range s.attempts {
		on[a.Key] = true
	}
	keys := slices.SortedFunc(maps.Keys(rates), func(a, b string) int {
		switch {
		case on[a] && !on[b]:
			return -1
		case on[b] && !on[a]:
			return 1
		}
		return cmp.Compare(a, b)
	})
	some := make(map[string]float64, ratesKept)
	for _, key := range keys[:ratesKept] {
		some[key] = rates[key]
	}
	return some
}

// compare returns the logarithm of how much faster runs are at the present level than at the best one, and its standard
// deviation. least is the smallest deviation of a single run.
func (s *Search) compare(rates map[string]float64, least float64) (faster, deviation float64) {
	var same, before, now []float64
	for key, rate := range rates {
		now = append(now, math.Log(rate))
		if at, known := s.found.Rates[key]; known {
			same = append(same, math.Log(rate/at))
		}
	}
	for _, rate := range s.found.Rates {
		before = append(before, math.Log(rate))
	}
	if 4*len(same) >= len(now) {
		return middle(same), spread(same, least*math.Sqrt2)
	}
	return middle(now) - middle(before), math.Hypot(spread(now, least), spread(before, least))
}

// middle returns the mean without the lowest and the highest quarter of the values.
func middle(values []float64) float64 {
	slices.Sort(values)
	cut := len(values) / 4
	return mean(values[cut : len(values)-cut])
}

// spread returns the standard deviation of the mean of some values, each of which varies by at least least.
func spread(values []float64, least float64) float64 {
	var sum float64
	m := mean(values)
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	n := float64(len(values))
	return max(least, math.Sqrt(sum/max(n-1, 1))) / math.Sqrt(n)
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range slices.Sorted(slices.Values(values)) { // in a fixed order, as sums depend on it
		sum += v
	}
	return sum / float64(len(values))
}
