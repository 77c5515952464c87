package sweep

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Search finds how many runs of a sweep side by side give the highest throughput. It needs runs that report progress.
//
// All places (GPUs if runs use them, otherwise hosts) take the same number of runs, the level, beginning with 1. It
// rises as long as one more run brings enough:
//
//	gain = ((p(n) − p(b)) / (n − b)) ÷ (p(b) / b)
//
// where p(n) is the total throughput of the n runs of a place, and b the best number so far. That is marginal_gain's
// measure for members, and the threshold means the same. As runs differ, and come and go, p(n) ÷ p(b) is not measured
// from totals: it is n ÷ b times how much faster or slower the very same runs are at n. If runs are too short for that,
// all runs measured at n are compared with all at b.
//
// If runs hardly slow each other down, the level doubles; if that goes too far, the levels in between are tried. A
// level rises as soon as it clearly pays. That it does not pay is believed only after a longer measurement, and after
// measuring the best level once more: a value that was high by chance is usually followed by a lower one, and what is
// given up is not tried again. A level falls by not replacing runs that end.
//
// The search never holds up runs. While nothing can be measured, the level stays as it is.
type Search struct {
	progress domain.SweepProgress
	onGPUs   bool
	found    domain.SweepParallelism
	changed  bool
	trial
}

// trial is what is known of the present level.
type trial struct {
	// since is when a place first had as many runs as the level.
	since  time.Time
	places map[string]crowding
	// attempts are those on places with that many runs. measured is the progress of runs whose attempts ended there, by
	// key.
	attempts map[Attempt]*watched
	measured map[string]measure
	// ended counts the attempts that have ended. reported is true once any reported progress. trouble says why a log
	// could not be used.
	ended    int
	reported bool
	trouble  string
}

// NewSearch returns the search for a sweep with progress. It continues from what is stored, if that is about the same
// runs.
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

// searched identifies what a search is about; "" if there is no search.
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

// Of reports whether the search is about the present form of a sweep.
func (s *Search) Of(doc domain.SweepDocument) bool {
	return s.found.ID == doc.ID && s.found.Of == searched(doc)
}

// Found returns what was found out so far.
func (s *Search) Found() domain.SweepParallelism { return s.found }

// Changed reports whether that has yet to be stored.
func (s *Search) Changed() bool { return s.changed }

// Stored records that what was found out is stored.
func (s *Search) Stored(found domain.SweepParallelism) { s.found, s.changed = found, false }

// Goes reports whether there is still anything to find out.
func (s *Search) Goes() bool { return !s.found.Settled && s.found.Unknown == "" }

// Interval returns how often to read progress.
func (s *Search) Interval() time.Duration { return max(s.settle()/looksPerSettle, shortestInterval) }

func (s *Search) settle() time.Duration { return s.progress.Settle.Or(domain.DefaultGainSettle) }

// begin starts the measurement of a level.
func (s *Search) begin() {
	s.trial = trial{places: map[string]crowding{}, attempts: map[Attempt]*watched{}, measured: map[string]measure{}}
}
