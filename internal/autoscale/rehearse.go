package autoscale

import (
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Chooser chooses one of the allowed actions: [qmodel.Up], [qmodel.Stay] or [qmodel.Down].
type Chooser func(state qmodel.State, allowed [qmodel.NumActions]bool) int

// Rehearsal is a backtest of a policy with a learned metric, in which the caller chooses in place of the model, one
// decision at a time, from any moment of the trace. Models are trained in it.
type Rehearsal struct{ s *simulation }

// Outlay is what a period cost.
type Outlay struct {
	// MemberHours, Under and Changes are as in [Course].
	MemberHours float64
	Under       time.Duration
	Changes     int
}

// NewRehearsal returns the rehearsal of a backtest. The policy's initial count is ignored.
func NewRehearsal(policy domain.AutoscalingPolicy, trace Trace, model Model) (*Rehearsal, error) {
	policy.Initial = nil
	s, err := newSimulation(policy, trace, model)
	if err != nil {
		return nil, err
	}
	if len(s.scaler.models) != 1 {
		return nil, errors.New("a rehearsal needs a policy with one learned metric")
	}
	s.makeCourse()
	return &Rehearsal{s}, nil
}

// Begin starts over at this time after the start of the trace, with a number of members that are all ready, and without
// any memory.
func (r *Rehearsal) Begin(at time.Duration, count int) {
	s := r.s
	s.at, s.count, s.backlog, s.state = at, count, 0, State{}
	s.moves, s.moved = time.Time{}, time.Time{}
	s.allReady()
}

// Ended reports whether the trace is at its end.
func (r *Rehearsal) Ended() bool { return r.s.at >= r.s.length() }

// Now returns the load, and the count ordered.
func (r *Rehearsal) Now() (load float64, count int) {
	at := min(int(r.s.at/r.s.trace.Step), len(r.s.trace.Load)-1)
	return r.s.trace.Load[at], r.s.count
}

// Changing reports whether a change is in progress.
func (r *Rehearsal) Changing() bool {
	now, starting := r.s.trace.Start.Add(r.s.at), r.s.starting
	return now.Before(r.s.moved) || len(starting) > 0 && starting[len(starting)-1].At.After(now)
}

// Next makes one decision, and returns what the time up to the next one cost. The policy may decide without calling
// choose, for example if a metric is missing.
func (r *Rehearsal) Next(choose Chooser) Outlay {
	s := r.s
	s.scaler.chooses = choose
	s.course.MemberHours, s.course.Under, s.course.Steps = 0, 0, s.course.Steps[:0]
	s.next()
	return Outlay{MemberHours: s.course.MemberHours, Under: s.course.Under, Changes: len(s.course.Steps)}
}
