package autoscale

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Job models a job that ends: training by a number of members together. It consists of times measured with constant
// counts, and of what a change of the count costs.
//
// The speed of n members is 1/T(n), where T is how long the whole job takes with them. Between two neighbours in the
// table it is interpolated linearly in n; beyond the ends it is that of the nearest entry, so that nothing is made up.
// Without members, there is no progress.
//
// A change that takes effect, because members have become ready or are gone, stops the job for the pause, in which
// executors register and partitions are redistributed. One that takes effect during a pause restarts the pause. Ordered
// members take the startup to be ready, as in [Model]; removed ones are gone at once.
//
// Members are only busy with the work, which is the same whatever their number: their mean utilisation is proportional
// to their speed divided by their number, and 0 during a pause.
type Job struct {
	// Times are how long the whole job takes, by the number of members.
	Times map[int]time.Duration
	// Startup is how long a member takes from the decision until it is ready. Pause is how long there is no progress
	// after a change took effect.
	Startup, Pause time.Duration
	// Busy is the utilisation in percent of a member at the smallest count in the table, while the job progresses.
	Busy float64
	// Signals say what each of the policy's metrics shows, by name: SignalProgress, or SignalUtilisation, which is the
	// default.
	Signals map[string]Signal
}

// SignalProgress is the fraction of a job done per second; 0 during a pause. Only a [Job] shows it, so it is not among
// [Signals].
const SignalProgress Signal = "progress"

// JobRun is the result of a policy over a run of a job.
type JobRun struct {
	// Took is how long it took.
	Took time.Duration
	// MemberSeconds are the seconds of all members, from when they were ordered until the end of the job.
	MemberSeconds float64
	// Steps are the changes of the count in order. The first is the count at the beginning, with From 0. Times are
	// counted from 1970.
	Steps []Step
}

// Changes returns the number of changes of the count in the run.
func (r JobRun) Changes() int { return len(r.Steps) - 1 }

// Last returns the count at the end of the run.
func (r JobRun) Last() int { return r.Steps[len(r.Steps)-1].To }

// RunJob simulates a run of a job with a policy that has learned nothing yet. See [RunJobs].
func RunJob(policy domain.AutoscalingPolicy, job Job) (JobRun, error) {
	runs, err := RunJobs(policy, job, 1)
	if err != nil {
		return JobRun{}, err
	}
	return runs[0], nil
}

// RunJobs simulates runs of a job one after another, with a role that keeps running in between: each begins with the
// count that the one before ended with, and the policy remembers what it has learned. Between two runs there are
// neither metrics nor decisions, for long enough that all ordered members become ready. It has no side effects.
func RunJobs(policy domain.AutoscalingPolicy, job Job, runs int) ([]JobRun, error) {
	if err := job.validate(policy); err != nil {
		return nil, err
	}
	scaler, err := New(policy)
	if err != nil {
		return nil, err
	}
	s := jobSimulation{
		scaler: scaler, job: job, counts: slices.Sorted(maps.Keys(job.Times)), now: time.Unix(0, 0).UTC(),
		crew: crew{count: policy.First()},
	}
	var all []JobRun
	for range runs {
		run, err := s.run()
		if err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// validate returns why the job is invalid.
func (j Job) validate(policy domain.AutoscalingPolicy) error {
	if len(j.Times) == 0 || j.Startup < 0 || j.Pause < 0 || !(j.Busy >= 0) || j.Busy > 100 {
		return fmt.Errorf("invalid job: %d times, a startup of %s, a pause of %s and members that are %g %% busy",
			len(j.Times), j.Startup, j.Pause, j.Busy)
	}
	for _, count := range slices.Sorted(maps.Keys(j.Times)) {
		if count < 1 || j.Times[count] <= 0 {
			return fmt.Errorf("invalid job: %d members take %s", count, j.Times[count])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(policy.Metrics)) {
		if shown := j.Signals[name]; shown != "" && shown != SignalUtilisation && shown != SignalProgress {
			return fmt.Errorf("a job has no signal %q, which metric %q needs", shown, name)
		}
	}
	return nil
}

// jobSimulation is a simulation of runs in progress.
type jobSimulation struct {
	crew

	scaler   *Autoscaler
	job      Job
	counts   []int // those of the job's table, smallest first
	now      time.Time
	state    State
	decision Decision
}

// maxSlowdown is by which factor a run may take longer than the slowest one in the table. One that does is being
// stopped again and again.
const maxSlowdown = 100

func (s *jobSimulation) run() (JobRun, error) {
	begin := s.now
	s.allReady()
	run := JobRun{Steps: []Step{{At: begin, To: s.count, Why: "initial"}}}
	end := begin.Add(maxSlowdown * slices.Max(slices.Collect(maps.Values(s.job.Times))))
	var paused time.Time // until when
	every := s.scaler.policy.Every()
	next := begin // the next decision
	for left := 1.0; ; {
		if s.grow(s.now) {
			paused = s.now.Add(s.job.Pause)
		}
		if !s.now.Before(next) {
			before := s.ready
			s.decide(&run, s.now.Before(paused))
			s.grow(s.now) // without a startup, they are ready at once
			if s.ready != before {
				paused = s.now.Add(s.job.Pause)
			}
			next = s.now.Add(every)
		}
		until, speed := next, s.speed(s.ready)
		if len(s.starting) > 0 && s.starting[0].At.Before(until) {
			until = s.starting[0].At
		}
		if s.now.Before(paused) {
			speed = 0
			if paused.Before(until) {
				until = paused
			}
		}
		took := until.Sub(s.now)
		finished := left-speed*took.Seconds() <= rounding
		if finished {
			took = time.Duration(left / speed * float64(time.Second))
		}
		left -= speed * took.Seconds()
		run.MemberSeconds += float64(s.count) * took.Seconds()
		s.now = s.now.Add(took)
		switch {
		case finished:
			run.Took = s.now.Sub(begin).Round(time.Millisecond) // sums of float64 are not more exact
			s.now = s.now.Add(s.job.Startup)
			return run, nil
		case s.now.After(end):
			return run, errors.New("with this policy, the job does not end")
		}
	}
}

// decide makes a decision, and orders and removes members.
func (s *jobSimulation) decide(run *JobRun, paused bool) {
	speed := s.speed(s.ready)
	if paused {
		speed = 0
	}
	metrics := make(map[string]Measurement, len(s.scaler.metrics))
	for _, name := range s.scaler.metrics {
		m := Measurement{At: s.now}
		switch {
		case s.job.Signals[name] == SignalProgress:
			m.Value = speed
		case s.ready == 0:
			m.Why = "there are no members"
		default:
			least := s.counts[0]
			m.Value = min(s.job.Busy*speed/float64(s.ready)/(s.speed(least)/float64(least)), 100)
		}
		metrics[name] = m
	}
	d := &s.decision
	s.scaler.decide(d, &s.state, &Seen{Now: s.now, Count: s.count, Ready: s.ready, Metrics: metrics})
	if d.To != d.From {
		s.scaler.Changed(&s.state, s.now, d.From, d.To)
		run.Steps = append(run.Steps, Step{At: s.now, From: d.From, To: d.To, Why: d.Why()})
		s.order(d.To, s.now.Add(s.job.Startup))
	}
}

// speed returns the fraction of the job that a number of ready members does per second.
func (s *jobSimulation) speed(members int) float64 {
	if members <= 0 {
		return 0
	}
	at := func(i int) float64 { return 1 / s.job.Times[s.counts[i]].Seconds() }
	i, found := slices.BinarySearch(s.counts, members)
	switch {
	case found || i == 0:
		return at(i)
	case i == len(s.counts):
		return at(i - 1)
	}
	share := float64(members-s.counts[i-1]) / float64(s.counts[i]-s.counts[i-1])
	return (1-share)*at(i-1) + share*at(i)
}

// TimeWith returns how long the job takes with a constant number of members, at least 1, all ready from the beginning.
func (j Job) TimeWith(members int) time.Duration {
	if took, there := j.Times[members]; there {
		return took
	}
	s := jobSimulation{job: j, counts: slices.Sorted(maps.Keys(j.Times))}
	return time.Duration(math.Round(1000/s.speed(members))) * time.Millisecond
}
