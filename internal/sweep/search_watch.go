package sweep

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	// readAtMost limits how many logs of a sweep are read at a time.
	readAtMost = 64
	// looksPerSettle is how often progress is read per settle time.
	looksPerSettle   = 30
	shortestInterval = 200 * time.Millisecond
	// briefest divides the settle time: a run has to be measured for at least that long to count.
	briefest = 12
	// linesAtMost is how many lines of a log are read repeatedly.
	linesAtMost = 2000
	// stepsAtMost is the largest number of steps with full precision.
	stepsAtMost = 1e15
)

// crowding is how many runs are on a place, and since when.
type crowding struct {
	runs  int
	since time.Time
}

// Attempt identifies an attempt of a run.
type Attempt struct {
	Key   string
	Batch int
}

// watched is an attempt whose progress is measured, between two moments at which it was seen to have progressed.
type watched struct {
	// from is when its log begins to count.
	from        time.Time
	first, last mark
}

// mark is when an attempt was first seen with this progress.
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

// Watch records which runs are active. It returns when to read one next; zero if there is none.
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
	due := slices.DeleteFunc(slices.Collect(maps.Keys(s.attempts)),
		func(a Attempt) bool { return s.attempts[a].from.After(now) })
	// Those measured at the best level come first, as they can be compared with themselves.
	rank := func(a Attempt) int {
		if _, known := s.found.Rates[a.Key]; known {
			return 0
		}
		return 1
	}
	slices.SortFunc(due,
		func(a, b Attempt) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Key, b.Key)) })
	read := map[Attempt]time.Time{}
	for _, a := range due[:min(len(due), readAtMost)] {
		read[a] = s.attempts[a].from
	}
	return read
}

// Note records that an attempt has made this many steps in this many lines since a moment, as read at another one.
func (s *Search) Note(a Attempt, since, at time.Time, steps float64, lines int) {
	w := s.attempts[a]
	_, known := s.found.Rates[a.Key]
	s.reported = true
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

// Miss records that the log of an attempt could not be read at a moment, and why.
func (s *Search) Miss(a Attempt, at time.Time, why string) {
	s.trouble = why
	if s.attempts[a] != nil {
		s.again(a, at) // there may be too much of it
	}
}

// again restarts the reading of an attempt's log from a moment.
func (s *Search) again(a Attempt, from time.Time) {
	s.keep(a.Key, s.attempts[a])
	s.attempts[a] = &watched{from: from}
}
