package sweep

import (
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
// make, but n ÷ b times how much faster or slower the very same runs are at n. Of runs too short for that, all that
// were measured at n are compared with all at b.
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
	// ended counts the attempts that have ended, told is true once any wrote of its progress, and trouble says why a
	// log was no use.
	ended   int
	told    bool
	trouble string
}

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
