package autoscale

import (
	"errors"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Backtest simulates a policy over a trace, deciding once per interval, and returns the result. It has no side effects.
//
// It is a model: all members carry the same load, load that is too much for them is lost unless the policy follows a
// queue, removed members are gone at once, and only the policy limits their number. The cost of a change is in
// [ChangeCost].
func Backtest(policy domain.AutoscalingPolicy, trace Trace, model Model) (Course, error) {
	s, err := newSimulation(policy, trace, model)
	if err != nil {
		return Course{}, err
	}
	return s.run(), nil
}

// simulation is a backtest in progress.
type simulation struct {
	scaler *Autoscaler
	trace  Trace
	model  Model
	state  State
	// decision is the last one.
	decision Decision

	crew
	// at is the current time in the trace. Data moves for the last change from moves until moved.
	at           time.Duration
	moves, moved time.Time
	backlog      float64
	metrics      map[string]Measurement
	// lasting is the result of lasts. loud adds the reason to each decision. before is what the metrics remembered
	// before the last decision, in their order.
	lasting bool
	loud    bool
	before  []Memory
	course  Course
	last    int // the last change
	steps   int // all of them, whether the course has them or not
}

func newSimulation(policy domain.AutoscalingPolicy, trace Trace, model Model) (*simulation, error) {
	if len(trace.Load) == 0 || trace.Step <= 0 {
		return nil, errors.New("the trace has no values")
	}
	if err := model.validate(); err != nil {
		return nil, err
	}
	scaler, err := New(policy)
	if err != nil {
		return nil, err
	}
	return &simulation{
		scaler: scaler, trace: trace, model: model, metrics: make(map[string]Measurement, len(policy.Metrics)),
		lasting: lasts(policy, model),
	}, nil
}

func (s *simulation) run() Course {
	s.makeCourse()
	s.count = s.scaler.policy.First()
	s.allReady()
	s.note(Step{At: s.trace.Start, To: s.count, Why: "initial"})
	for s.at < s.length() {
		s.next()
	}
	s.course.Steps = newest(s.course.Steps)
	s.course.Changes = s.steps - 1
	if hours := s.length().Hours(); hours > 0 {
		s.course.ChangesPerHour = float64(s.course.Changes) / hours
	}
	return s.course
}

// makeCourse allocates the course. Each value is filled in when its time comes.
func (s *simulation) makeCourse() {
	n := len(s.trace.Load)
	s.course.Counts, s.course.Ready = make([]int, n), make([]int, n)
}

// length returns how long the trace is.
func (s *simulation) length() time.Duration { return time.Duration(len(s.trace.Load)) * s.trace.Step }

// next makes a decision, and lets time pass until the next one. Decisions that would be the same are skipped.
func (s *simulation) next() {
	i, every := int(s.at/s.trace.Step), s.scaler.policy.Every()
	now := s.trace.Start.Add(s.at)
	s.grow(now)
	s.measure(i, now)
	s.before = s.remembered(s.before[:0])
	s.decide(now)
	s.grow(now)
	took := every
	if again := (time.Duration(i+1)*s.trace.Step - s.at - 1).Truncate(every); again > 0 && s.settled(i) {
		took += again // all decisions up to the next value would be the same, as metrics show the same
		s.scaler.remember(&s.state, now.Add(again), s.count)
		s.measure(i, now.Add(again))
	}
	took = min(took, s.length()-s.at)
	s.pass(s.at, s.at+took)
	s.at += took
}

// note adds a step to the course.
func (s *simulation) note(step Step) {
	s.steps++
	if len(s.course.Steps) == 2*MaxSteps {
		s.course.Steps = newest(s.course.Steps) // rarely, as it moves all of them
	}
	s.course.Steps = append(s.course.Steps, step)
}

// newest returns the last [MaxSteps] steps, in place.
func newest(steps []Step) []Step {
	return slices.Delete(steps, 0, max(0, len(steps)-MaxSteps))
}

// settled reports whether the decision about a value of the trace holds for as long as the value does: it changed
// nothing, nothing held it back, no change is in progress, and no metric has changed its memory or depends on time.
func (s *simulation) settled(i int) bool {
	d, lost := &s.decision, i < len(s.trace.Lost) && s.trace.Lost[i]
	if !s.lasting || lost || d.To != d.From || len(d.limits) > 0 || len(s.starting) > 0 ||
		s.trace.Start.Add(s.at).Before(s.moved) {
		return false
	}
	for j, name := range s.scaler.metrics {
		if s.state.Metrics[name] != s.before[j] {
			return false
		}
	}
	return true
}

// remembered appends what the metrics remember, in their order. Forecasts are shared, as they take no value twice.
func (s *simulation) remembered(memories []Memory) []Memory {
	for _, name := range s.scaler.metrics {
		memories = append(memories, s.state.Metrics[name])
	}
	return memories
}

// lasts reports whether a policy depends only on metrics that show the present load, and on what their algorithms
// remember of them, which is no more than a count.
func lasts(policy domain.AutoscalingPolicy, model Model) bool {
	for name, metric := range policy.Metrics {
		a := metric.Algorithm
		if a.Target == nil && a.Heat == nil && a.Threshold == nil || metric.Forecast != nil || !model.momentary(name) {
			return false
		}
	}
	return len(policy.Schedules) == 0
}

// momentary reports whether a metric shows only the present load, and nothing from before.
func (m Model) momentary(name string) bool {
	switch m.Signals[name] {
	case SignalQueue, SignalLatency, SignalChanging, SignalSkew:
		return false
	}
	return true
}

// pass lets time pass from a decision to the next one, in parts during which neither the load nor the members at work
// change.
func (s *simulation) pass(from, to time.Duration) {
	for at := from; at < to; {
		i := int(at / s.trace.Step)
		value, next := time.Duration(i)*s.trace.Step, time.Duration(i+1)*s.trace.Step
		s.grow(s.trace.Start.Add(at))
		if at == value {
			s.course.Counts[i], s.course.Ready[i] = s.count, s.ready
		}
		until := min(to, next)
		if len(s.starting) > 0 {
			until = min(until, s.starting[0].At.Sub(s.trace.Start))
		}
		for _, edge := range [...]time.Time{s.moves, s.moved} {
			if since := edge.Sub(s.trace.Start); since > at {
				until = min(until, since)
			}
		}
		s.carry(s.trace.Load[i], float64(s.ready)*s.model.Capacity*(1-s.lost(s.trace.Start.Add(at))), until-at)
		at = until
	}
}

// lost returns the fraction of the ready members' capacity that the last change takes away.
func (s *simulation) lost(now time.Time) float64 {
	if now.Before(s.moves) || !now.Before(s.moved) {
		return 0
	}
	return s.model.Change.Lost
}

// carry accounts for a load, carried with a capacity, over a time.
func (s *simulation) carry(load, capacity float64, took time.Duration) {
	if load > capacity {
		s.course.Under += took
	}
	s.backlog = max(s.backlog+(load-capacity)*took.Seconds(), 0)
	s.course.MemberHours += float64(s.count) * took.Hours()
}

// measure updates the metrics at the time of a value of the trace. A lost value leaves them as they were.
func (s *simulation) measure(i int, now time.Time) {
	if i < len(s.trace.Lost) && s.trace.Lost[i] {
		return
	}
	moment := Moment{s.trace.Load[i], s.backlog, s.count, s.ready, now.Before(s.moved), s.lost(now)}
	for _, name := range s.scaler.metrics {
		m := Measurement{At: now}
		value, there := s.model.Shows(s.model.Signals[name], moment)
		if m.Value = value; !there {
			m.Value, m.Why = 0, "there are no members"
		}
		s.metrics[name] = m
	}
}

// decide makes a decision, and orders members or removes those ordered last. Its reason is only computed if it changes
// something.
func (s *simulation) decide(now time.Time) {
	d, seen, before := &s.decision, Seen{Now: now, Count: s.count, Ready: s.ready, Metrics: s.metrics}, s.state
	if now.Before(s.moved) {
		const why = "the last change is still in progress"
		seen.Held, seen.Busy = why, why
	}
	s.scaler.quiet = !s.loud
	if s.scaler.decide(d, &s.state, &seen); d.To != d.From && !s.loud && s.scaler.chooses == nil {
		s.state, s.scaler.quiet = before, false
		for i, name := range s.scaler.metrics {
			if s.state.Metrics != nil {
				s.state.Metrics[name] = s.before[i]
			}
		}
		s.scaler.decide(d, &s.state, &seen)
	}
	change := d.To - d.From
	if change == 0 {
		return
	}
	s.scaler.Changed(&s.state, now, d.From, d.To)
	s.note(Step{At: now, From: d.From, To: d.To, Why: d.Why()})
	if change > 0 == (s.last < 0) && s.last != 0 {
		s.course.Reversals++
	}
	s.last = change
	s.order(d.To, s.changes(now, change > 0))
}

// changes begins a change, and returns when the members that it adds carry load.
func (s *simulation) changes(now time.Time, adds bool) time.Time {
	begins := now
	if adds {
		begins = now.Add(s.model.Startup)
	}
	if s.model.Change.Takes > 0 {
		s.moves, s.moved = begins, begins.Add(s.model.Change.Takes)
		return s.moved
	}
	return begins
}
