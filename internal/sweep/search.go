package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Search finds how many runs of a sweep side by side finish most. It is for runs that report progress.
//
// All places (GPUs where runs have some, else hosts) take the same number of runs, the level, from 1 up. It rises as
// long as one more brings enough:
//
//	gain = ((p(n) − p(b)) / (n − b)) ÷ (p(b) / b)
//
// where p(n) is what the n runs of a place make together, and b the best number so far. That is marginal_gain's measure
// of members, and its threshold means the same. As runs differ, and come and go, p(n) ÷ p(b) is not what all of them
// make, but n ÷ b times how much faster or slower the very same runs are at n. Of runs too short for that, all that were
// measured at n are compared with all at b.
//
// Where runs hardly slow one another, the level doubles, and where that went too far, those between are tried. A level
// rises as soon as it is clear that it pays. That it does not is believed only after a longer look, and after the best
// one was measured once more: a number that was high by chance is more often followed by a lower one, and what is given
// up is not tried again. A level falls by runs that end and are not replaced.
//
// Nothing of this holds up runs. Where nothing is measured, the level stays as it is.
type Search struct {
	progress domain.SweepProgress
	onGPUs   bool
	found    domain.SweepParallelism
	changed  bool
	trial
}

// trial is what is known of the present level.
type trial struct {
	// since is when a place first had as many runs as the level says.
	since  time.Time
	places map[string]crowding
	// attempts are those on places that have so many runs, and measured the runs whose attempts were, by key.
	attempts map[Attempt]*watched
	measured map[string]measure
	// ended counts the attempts that have ended, told is true once any wrote of its progress, and trouble says why a log
	// was no use.
	ended   int
	told    bool
	trouble string
}

// crowding is how many runs are on a place, and since when.
type crowding struct {
	runs  int
	since time.Time
}

// Attempt tells an attempt of a run from all others.
type Attempt struct {
	Key   string
	Batch int
}

// watched is an attempt whose progress is measured: the time between two moments at which it was seen to have gone on.
type watched struct {
	// from is since when its log counts.
	from        time.Time
	first, last mark
}

// mark is when an attempt was first seen to have come so far.
type mark struct {
	at    time.Time
	steps float64
	lines int
}

// measure is how many steps were made in a time.
type measure struct {
	steps float64
	took  time.Duration
	lines int
}

const (
	// runNoise is by how much the rate of a run is expected to vary, as a share.
	runNoise = 0.03
	// nearlyAll is the gain from which on runs are said to hardly slow one another.
	nearlyAll = 0.9
	// finest is the part of a level that the search need not tell apart.
	finest = 8
	// longer and longest are how many times as long it is measured at most until it is clear that a level brings too
	// little, and until it is decided though it is not clear.
	longer, longest = 6, 20
	// readAtMost bounds the logs that are read of a sweep at once.
	readAtMost = 64
	// ratesKept bounds the rates that are stored.
	ratesKept = 200
	// looksPerSettle is how often progress is read while it settles.
	looksPerSettle   = 30
	shortestInterval = 200 * time.Millisecond
	// briefest is the part of that time for which a run has to be measured to count.
	briefest = 12
	// linesAtMost is how many lines of a log are read again and again.
	linesAtMost = 2000
	// stepsAtMost are as many as can be told apart.
	stepsAtMost = 1e15
	// patienceInSettles is how long no run has to write of its progress until that is given up, and shortPatience that
	// where some have ended that did not.
	patienceInSettles, shortPatience, endedSilent = 10, 2, 3
)

// NewSearch returns the search for a sweep that has progress, which goes on from what is stored, if that is about the
// same.
func NewSearch(doc domain.SweepDocument, stored domain.SweepParallelism) *Search {
	s := &Search{progress: *doc.Spec.Progress, onGPUs: doc.Spec.GPUs != nil, found: Parallelism(doc, stored)}
	s.begin()
	return s
}

// Parallelism returns what was found out about a sweep, given what is stored under its name.
func Parallelism(doc domain.SweepDocument, stored domain.SweepParallelism) domain.SweepParallelism {
	of := searched(doc)
	if of != "" && stored.ID == doc.ID && stored.Of == of && stored.Level > 0 {
		return stored
	}
	return domain.SweepParallelism{Header: stored.Header, Sweep: doc.Spec.Name, ID: doc.ID, Of: of, Level: 1}
}

// searched identifies what a search is about; "" where there is none.
func searched(doc domain.SweepDocument) string {
	if doc.Spec.Progress == nil {
		return ""
	}
	pool := ""
	if doc.Spec.GPUs != nil {
		pool = doc.Spec.GPUs.Pool
	}
	return sealOf([]any{doc.MinRun, doc.Spec.Progress, pool})
}

// Of reports whether the search is that of a sweep as it is now.
func (s *Search) Of(doc domain.SweepDocument) bool {
	return s.found.ID == doc.ID && s.found.Of == searched(doc)
}

// Found returns what was found out so far.
func (s *Search) Found() domain.SweepParallelism { return s.found }

// Changed reports whether that has yet to be stored; Stored notes that it was.
func (s *Search) Changed() bool { return s.changed }

// Stored notes that what was found out is stored.
func (s *Search) Stored(found domain.SweepParallelism) { s.found, s.changed = found, false }

// Goes reports whether there is anything to be found out yet.
func (s *Search) Goes() bool { return !s.found.Settled && s.found.Unknown == "" }

// Interval is how often progress is to be read.
func (s *Search) Interval() time.Duration { return max(s.settle()/looksPerSettle, shortestInterval) }

func (s *Search) settle() time.Duration { return s.progress.Settle.Or(domain.DefaultGainSettle) }

// begin has the measurement of a level begin.
func (s *Search) begin() {
	s.trial = trial{places: map[string]crowding{}, attempts: map[Attempt]*watched{}, measured: map[string]measure{}}
}

// Watch notes which runs are on. It returns when one is to be read, the zero time where none is.
func (s *Search) Watch(runs map[string]domain.Run, now time.Time) (next time.Time) {
	if !s.Goes() {
		return next
	}
	on := map[string]int{}
	for _, run := range runs {
		for _, place := range s.placesOf(run) {
			on[place]++
		}
	}
	for place, known := range s.places {
		if on[place] != known.runs || known.since.After(now) {
			delete(s.places, place)
		}
	}
	for place, n := range on {
		if _, known := s.places[place]; !known {
			s.places[place] = crowding{n, now}
		}
	}
	here := map[Attempt]bool{}
	for key, run := range runs {
		most, warm := 0, now
		for _, place := range s.placesOf(run) {
			c := s.places[place]
			if c.runs > most {
				most = c.runs
			}
			if since := c.since.Add(s.settle() / 2); since.After(warm) {
				warm = since
			}
		}
		if most != s.found.Level {
			continue
		}
		a := Attempt{key, run.Batch}
		here[a] = true
		if s.attempts[a] == nil {
			s.attempts[a] = &watched{from: warm}
		}
		if s.since.IsZero() || s.since.After(now) {
			s.since = now
		}
		if from := s.attempts[a].from; next.IsZero() || from.Before(next) {
			next = from
		}
	}
	for a, w := range s.attempts {
		if !here[a] {
			s.keep(a.Key, w)
			delete(s.attempts, a)
			if run := runs[a.Key]; !run.Active() || run.Batch != a.Batch {
				s.ended++
			}
		}
	}
	return next
}

// placesOf returns the places on which a run makes progress.
func (s *Search) placesOf(run domain.Run) []string {
	switch {
	case !run.Active() || run.State != domain.RunRunning:
		return nil
	case s.onGPUs:
		return run.Assignment.GPUs.UUIDs()
	}
	return []string{run.Assignment.Host}
}

// keep keeps what was measured of an attempt.
func (s *Search) keep(key string, w *watched) {
	if m := w.measure(); m.took >= s.settle()/briefest {
		s.measured[key] = s.measured[key].add(m)
	}
}

func (w *watched) measure() measure {
	if w.first.at.IsZero() || w.last.at.IsZero() {
		return measure{}
	}
	return measure{w.last.steps - w.first.steps, w.last.at.Sub(w.first.at), w.last.lines - w.first.lines}
}

func (m measure) add(o measure) measure {
	return measure{m.steps + o.steps, m.took + o.took, m.lines + o.lines}
}

// Read returns the attempts whose logs are to be read, and since when.
func (s *Search) Read(now time.Time) map[Attempt]time.Time {
	due := slices.DeleteFunc(slices.Collect(maps.Keys(s.attempts)), func(a Attempt) bool { return s.attempts[a].from.After(now) })
	// Those that were measured at the best level come first: they can be compared with themselves.
	rank := func(a Attempt) int {
		if _, known := s.found.Rates[a.Key]; known {
			return 0
		}
		return 1
	}
	slices.SortFunc(due, func(a, b Attempt) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Key, b.Key)) })
	read := map[Attempt]time.Time{}
	for _, a := range due[:min(len(due), readAtMost)] {
		read[a] = s.attempts[a].from
	}
	return read
}

// Note notes by how many steps an attempt has gone on in so many lines that it wrote since a moment, as they were read
// at another one.
func (s *Search) Note(a Attempt, since, at time.Time, steps float64, lines int) {
	w := s.attempts[a]
	_, known := s.found.Rates[a.Key]
	s.told = true
	switch {
	case !(steps >= 0 && steps <= stepsAtMost):
	case w == nil || !w.from.Equal(since): // it has ended, or has other neighbours
	case lines < 2 && !known: // what a run does before its first line is more, or less, than a step
	case w.first.at.IsZero():
		w.first = mark{at, steps, lines}
	case steps > max(w.first.steps, w.last.steps):
		w.last = mark{at, steps, lines}
		if lines >= linesAtMost {
			s.again(a, at)
		}
	}
}

// Miss notes that the log of an attempt could not be read at a moment, and why.
func (s *Search) Miss(a Attempt, at time.Time, why string) {
	s.trouble = why
	if s.attempts[a] != nil {
		s.again(a, at) // there may be too much of it
	}
}

// again has the log of an attempt be read from a moment on.
func (s *Search) again(a Attempt, from time.Time) {
	s.keep(a.Key, s.attempts[a])
	s.attempts[a] = &watched{from: from}
}

// Decide decides by what was measured whether another level is tried, and reports whether it is.
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
			f.Unknown = "the numbers of steps that runs write of are too far apart to be compared"
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

// gain returns what the higher one of the present and the best level brings over the other, given what all runs make
// together at the present one, and by how much that is off where the logarithm of that is.
func (s *Search) gain(makes float64) (gain, slope float64) {
	f := s.found
	switch best := f.Throughput[f.Best]; {
	case f.Level > f.Best:
		return gainOver(f.Best, f.Level, makes/best)
	case f.Level < f.Best:
		return gainOver(f.Level, f.Best, best/makes)
	}
	// The best one was measured once more, after one above it: both measurements count.
	first, _ := gainOver(f.Best, f.Over, f.Throughput[f.Over]/f.Throughput[f.Best])
	second, slope := gainOver(f.Best, f.Over, f.Throughput[f.Over]/makes)
	return (first + second) / 2, slope / 2
}

// gainOver returns what each further run of a higher level brings, as a share of what one brings at a lower level, where
// all runs together make so many times as much, and the slope of that over the logarithm of the times. See [Search].
func gainOver(lower, higher int, times float64) (gain, slope float64) {
	each := float64(lower) / float64(higher-lower)
	return (times - 1) * each, times * each
}

// move chooses the next level, given what all runs make together at the present one, and whether the higher one of that
// and the best one pays.
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

// silent reports whether no progress can be measured, and notes why.
func (s *Search) silent(now time.Time) bool {
	waited := now.Sub(s.since)
	long, some := waited >= patienceInSettles*s.settle(), s.ended >= endedSilent
	switch {
	case s.since.IsZero() || !long && (!some || waited < shortPatience*s.settle()):
		return false
	case s.told && long && some:
		s.found.Unknown = fmt.Sprintf("runs end before their progress can be measured; set a shorter progress.settle than %s", s.settle())
	case !s.told:
		s.found.Unknown = cmp.Or(s.trouble, fmt.Sprintf("no line that a run wrote in %s matches progress.pattern", waited.Round(time.Second)))
	default:
		return false
	}
	return true
}

// rates returns how many steps a second the runs make that were measured at the present level, by key, for how long each
// of those was in the mean that are on, and by which share times are off as it is seen late that a run has gone on.
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

// few returns the rates that are kept: those of runs that are on come first.
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

// compare returns the logarithm of how much faster runs are at the present level than at the best one, and by how much
// that may be off: its standard deviation, given the least one of a single run.
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

// middle is the mean without the quarter of the values at each end.
func middle(values []float64) float64 {
	slices.Sort(values)
	cut := len(values) / 4
	return mean(values[cut : len(values)-cut])
}

// spread is the standard deviation of the mean of some values, each of which varies by some at least.
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
	for _, v := range slices.Sorted(slices.Values(values)) { // in one order, or else sums differ
		sum += v
	}
	return sum / float64(len(values))
}
