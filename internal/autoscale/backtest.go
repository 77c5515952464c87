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
	// Load is what there is to do, in any unit: requests or samples a second, cores.
	Load []float64
	// Lost tells of values that no metric has seen, though the load was there; nil where none was lost.
	Lost []bool
}

// Model says what members do with a load, and what metrics show of it.
type Model struct {
	// Capacity is the load that one member carries, above 0.
	Capacity float64
	// Startup is how long a member takes from the decision until it carries load.
	Startup time.Duration
	// Change is what a change of the count costs.
	Change ChangeCost
	// Signals say by the names of the policy's metrics what each shows; SignalUtilisation for those that are not there.
	Signals map[string]Signal
}

// ChangeCost is what a change of the count costs where data moves between members, as between brokers. A change is
// under way from the decision until members that were added have started and the data has moved: only then do these
// carry load, and may another change begin.
type ChangeCost struct {
	// Takes is how long data moves; 0 where there is none to move.
	Takes time.Duration
	// Lost is the share of the capacity of the members at work that is lost while it moves, from 0 to below 1.
	Lost float64
}

// validate returns why the model is none.
func (m Model) validate() error {
	if !(m.Capacity > 0) || math.IsInf(m.Capacity, 0) || m.Startup < 0 {
		return fmt.Errorf("a member that carries a load of %g after %s is no model", m.Capacity, m.Startup)
	}
	if m.Change.Takes < 0 || !(m.Change.Lost >= 0 && m.Change.Lost < 1) {
		return fmt.Errorf("a change that takes %s and a share of %g of the capacity is no model", m.Change.Takes, m.Change.Lost)
	}
	return nil
}

// Signal is what a metric shows of a load.
type Signal string

// What a metric may show.
const (
	// SignalUtilisation is the percentage of the ready members' capacity that is in use, 100 at most: a role without
	// ready members has none.
	SignalUtilisation Signal = "utilisation"
	// SignalLoad is the load itself.
	SignalLoad Signal = "load"
	// SignalQueue is what has come and was not done yet, in units of load times a second.
	SignalQueue Signal = "queue"
	// SignalLatency is how long what comes waits in the queue, in seconds: what the ready members need to work it off.
	SignalLatency Signal = "latency"
	// SignalChanging is 1 while members start or data moves between them, and 0 else, and SignalSkew by which share a
	// ready member carries more than the mean of all, as those that start carry nothing.
	SignalChanging Signal = "changing"
	SignalSkew     Signal = "skew"
)

// Signals lists what a metric may show.
var Signals = []Signal{SignalUtilisation, SignalLoad, SignalQueue, SignalLatency, SignalChanging, SignalSkew}

// FeatureSignals are what metrics show by the features that learned algorithms make of them.
var FeatureSignals = map[string]Signal{
	qmodel.Features[qmodel.CPU].Name: SignalUtilisation, qmodel.Features[qmodel.LagGrowth].Name: SignalQueue, qmodel.Features[qmodel.P99].Name: SignalLatency,
	qmodel.Features[qmodel.Reassigning].Name: SignalChanging, qmodel.Features[qmodel.Skew].Name: SignalSkew,
}

// Moment is what there is to be shown of a role.
type Moment struct {
	// Load is what there is to do, and Backlog what has come and was not done yet, in units of load times a second.
	Load, Backlog float64
	// Count and Ready are the members that were ordered, and those at work.
	Count, Ready int
	// Moving tells that data moves between members, or is about to, and Lost the share of the capacity that is lost by
	// it.
	Moving bool
	Lost   float64
}

// Shows returns the value of a signal; false where it has none, as no member is at work.
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

// Course is what a policy makes of a trace.
type Course struct {
	// Steps are the newest changes of the count, [MaxSteps] at most, in their order; the first of all is the initial
	// count, From 0.
	Steps []Step
	// Changes is the number of all changes, without the initial count.
	Changes int
	// Counts and Ready are the number of members ordered and at work, at the times of the trace's values.
	Counts, Ready []int
	// Under is the time in which the load was more than the ready members carry.
	Under time.Duration
	// MemberHours are the hours of all members that were ordered.
	MemberHours float64
	// ChangesPerHour is the number of changes an hour, and Reversals how often one went into the other direction than
	// the one before.
	ChangesPerHour float64
	Reversals      int
}

// MaxSteps bounds the steps that a course has: a policy that goes back and forth makes millions of them in a long
// trace.
const MaxSteps = 10_000

// Step is a change of the count.
type Step struct {
	At       time.Time
	From, To int
	Why      string
}
