package autoscale

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Trace is a load over time.
type Trace struct {
	// Start is when it begins, and Step the time between two values of Load.
	Start time.Time
	Step  time.Duration
	// Load is the work to do, in any unit: requests or samples per second, cores.
	Load []float64
	// Lost marks values that metrics missed although the load was there; nil if there are none.
	Lost []bool
}

// Model says how members handle a load, and what metrics show of it.
type Model struct {
	// Capacity is the load that one member can carry, above 0.
	Capacity float64
	// Startup is how long a member takes from the decision until it carries load.
	Startup time.Duration
	// Change is what a change of the count costs.
	Change ChangeCost
	// Signals say what each of the policy's metrics shows, by name. Metrics not listed show SignalUtilisation.
	Signals map[string]Signal
}

// ChangeCost is what a change of the count costs if data moves between members, as between brokers. A change lasts from
// the decision until the added members have started and the data has moved; only then do they carry load, and only then
// may another change begin.
type ChangeCost struct {
	// Takes is how long data moves; 0 if there is none to move.
	Takes time.Duration
	// Lost is the fraction of the working members' capacity that is lost while data moves, from 0 to below 1.
	Lost float64
}

// validate returns why the model is invalid.
func (m Model) validate() error {
	if !(m.Capacity > 0) || math.IsInf(m.Capacity, 0) || m.Startup < 0 {
		return fmt.Errorf("invalid model: a member with a capacity of %g and a startup of %s", m.Capacity, m.Startup)
	}
	if m.Change.Takes < 0 || !(m.Change.Lost >= 0 && m.Change.Lost < 1) {
		return fmt.Errorf("invalid model: a change that takes %s and costs %g of the capacity", m.Change.Takes,
			m.Change.Lost)
	}
	return nil
}

// Signal is what a metric shows of a load.
type Signal string

// What a metric can show.
const (
	// SignalUtilisation is the percentage of the ready members' capacity in use, at most 100. A role without ready
	// members has none.
	SignalUtilisation Signal = "utilisation"
	// SignalLoad is the load itself.
	SignalLoad Signal = "load"
	// SignalQueue is the work that has arrived and is not done yet, in units of load times seconds.
	SignalQueue Signal = "queue"
	// SignalLatency is how long new work waits in the queue, in seconds: the time that the ready members need to work
	// it off.
	SignalLatency Signal = "latency"
	// SignalChanging is 1 while members start or data moves between them, and 0 otherwise. SignalSkew is the fraction
	// by which a ready member carries more than the mean of all, as starting ones carry nothing.
	SignalChanging Signal = "changing"
	SignalSkew     Signal = "skew"
)

// Signals lists what a metric can show.
var Signals = []Signal{SignalUtilisation, SignalLoad, SignalQueue, SignalLatency, SignalChanging, SignalSkew}

// FeatureSignals are the signals that features of learned models are computed from, by feature.
var FeatureSignals = map[string]Signal{
	qmodel.Features[qmodel.CPU].Name: SignalUtilisation, qmodel.Features[qmodel.LagGrowth].Name: SignalQueue,
	qmodel.Features[qmodel.P99].Name:         SignalLatency,
	qmodel.Features[qmodel.Reassigning].Name: SignalChanging, qmodel.Features[qmodel.Skew].Name: SignalSkew,
}

// Moment is the state of a role that signals are computed from.
type Moment struct {
	// Load is the work to do. Backlog is what has arrived and is not done yet, in units of load times seconds.
	Load, Backlog float64
	// Count is the number of members ordered, and Ready of those at work.
	Count, Ready int
	// Moving means that data moves between members, or is about to. Lost is the fraction of the capacity lost to that.
	Moving bool
	Lost   float64
}

// Shows returns the value of a signal; false if there is none because no member is at work.
func (m Model) Shows(signal Signal, at Moment) (float64, bool) {
	capacity := float64(at.Ready) * m.Capacity * (1 - at.Lost)
	switch signal {
	case SignalLoad:
		return at.Load, true
	case SignalQueue:
		return at.Backlog, true
	case SignalChanging:
		return flag(at.Ready < at.Count || at.Moving), true
	case SignalLatency:
		return at.Backlog / capacity, at.Ready > 0
	case SignalSkew:
		return float64(at.Count)/float64(at.Ready) - 1, at.Ready > 0
	default:
		return 100 * min(at.Load/capacity, 1), at.Ready > 0
	}
}

// Course is the result of a policy over a trace.
type Course struct {
	// Steps are the latest changes of the count in order, at most [MaxSteps]. The very first is the initial count, with
	// From 0.
	Steps []Step
	// Changes is the number of all changes, without the initial count.
	Changes int
	// Counts and Ready are the numbers of members ordered and at work, at the times of the trace's values.
	Counts, Ready []int
	// Under is how long the load exceeded what the ready members can carry.
	Under time.Duration
	// MemberHours are the hours of all members ordered.
	MemberHours float64
	// ChangesPerHour is the number of changes per hour. Reversals is how often one went in the opposite direction of
	// the one before.
	ChangesPerHour float64
	Reversals      int
}

// MaxSteps limits the steps of a course, as an oscillating policy makes millions of them over a long trace.
const MaxSteps = 10_000

// Step is a change of the count.
type Step struct {
	At       time.Time
	From, To int
	Why      string
}
