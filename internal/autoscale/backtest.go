package autoscale

import (
	"time"
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
	// Signals say by the names of the policy's metrics what each shows; SignalUtilisation for those that are not there.
	Signals map[string]Signal
}

// Signal is what a metric shows of a load.
type Signal string

// What a metric may show.
const (
	// SignalUtilisation is the percentage of the ready members' capacity that is in use, 100 at most: a role without ready members has none.
	SignalUtilisation Signal = "utilisation"
	// SignalLoad is the load itself.
	SignalLoad Signal = "load"
	// SignalQueue is what has come and was not done yet, in units of load times a second.
	SignalQueue Signal = "queue"
)

// Signals lists what a metric may show.
var Signals = []Signal{SignalUtilisation, SignalLoad, SignalQueue}

// Course is what a policy makes of a trace.
type Course struct {
	// Steps are the newest changes of the count, [MaxSteps] at most, in their order; the first of all is the initial count, From 0.
	Steps []Step
	// Changes is the number of all changes, without the initial count.
	Changes int
	// Counts and Ready are the number of members ordered and at work, at the times of the trace's values.
	Counts, Ready []int
	// Under is the time in which the load was more than the ready members carry.
	Under time.Duration
	// MemberHours are the hours of all members that were ordered.
	MemberHours float64
	// ChangesPerHour is the number of changes an hour, and Reversals how often one went into the other direction than the one before.
	ChangesPerHour float64
	Reversals      int
}

// MaxSteps bounds the steps that a course has: a policy that goes back and forth makes millions of them in a long trace.
const MaxSteps = 10_000

// Step is a change of the count.
type Step struct {
	At       time.Time
	From, To int
	Why      string
}
