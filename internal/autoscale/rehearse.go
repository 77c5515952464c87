package autoscale

import (
	"errors"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Chooser chooses one of the actions that are allowed, [qmodel.Up], [qmodel.Stay] or [qmodel.Down].
type Chooser func(state qmodel.State, allowed [qmodel.NumActions]bool) int

// Rehearsal is a backtest of a policy with a learned metric, in which the caller chooses in place of the model, a
// decision at a time, from any moment of the trace on. It is what models are trained in.
type Rehearsal struct{ s *simulation }

// Outlay is what a time took.
type Outlay struct {
	// MemberHours, Under and Changes are as in [Course].
	MemberHours float64
	Under       time.Duration
	Changes     int
}

// NewRehearsal returns the rehearsal of a backtest. Its initial count plays no part.
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

// Begin begins anew so long after the start of the trace, with so many members that are all ready, and nothing that is
// remembered.
func (r *Rehearsal) Begin(at time.Duration, count int) {
	s := r.s
	s.at, s.count, s.backlog, s.state = at, count, 0, State{}
	s.moves, s.moved = time.Time{}, time.Time{}
	s.allReady()
}

// Ended reports whether the trace is at its end.
func (r *Rehearsal) Ended() bool { return r.s.at >= r.s.length() }

// Now returns the load, and the count that was ordered.
func (r *Rehearsal) Now() (load float64, count int) {
	at := min(int(r.s.at/r.s.trace.Step), len(r.s.trace.Load)-1)
	return r.s.trace.Load[at], r.s.count
}

// Changing reports whether a change is under way.
func (r *Rehearsal) Changing() bool {
	now, starting := r.s.trace.Start.Add(r.s.at), r.s.starting
	return now.Before(r.s.moved) || len(starting) > 0 && starting[len(starting)-1].At.After(now)
}

// Next has one decision be made, and returns what the time up to the next one took. The policy may decide without
// asking, as where a metric is missing.
func (r *Rehearsal) Next(choose Chooser) Outlay {
	s := r.s
	s.scaler.chooses = choose
	s.course.MemberHours, s.course.Under, s.course.Steps = 0, 0, s.course.Steps[:0]
	s.next()
	return Outlay{MemberHours: s.course.MemberHours, Under: s.course.Under, Changes: len(s.course.Steps)}
}
