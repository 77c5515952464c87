// Package autoscale decides how many members a role has, from what is measured.
//
// It is pure: a decision is a function of a policy, of what is seen at a moment ([Seen]) and of what is remembered
// ([State]), and includes its reasons. The controller and the simulator ([Backtest]) use the same functions.
package autoscale

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// Seen is what is known of a role at the moment of a decision.
type Seen struct {
	Now time.Time
	// Count is the number of members that the role should have so far, and Ready how many of them are working.
	Count, Ready int
	// Metrics are the policy's metrics by name. A metric not listed is missing.
	Metrics map[string]Measurement
	// Roles are the counts of the group's other roles.
	Roles map[string]int
	// Answers are those of the user's own algorithms, by metric name. One not listed has not answered.
	Answers map[string]Answer
	// Guards are the values of the guards' sources, by [domain.GuardQuestion].Name. One not listed was not asked.
	Guards map[string]Measurement
	// Room is the room for further members; nil if nobody asks for it, or no limit is known.
	Room *Room
	// Yield removes members for something more important; nil if nothing waits for their room.
	Yield *Yield
	// Used is what members use, for a policy that scales vertically.
	Used Used
	// Held says why nothing can be changed now, such as an apply in progress. Busy says why no member may be removed,
	// such as a hook at work. Both are "" if there is no reason.
	Held, Busy string
}

// Measurement is what is known of a metric.
type Measurement struct {
	// Value is the metric's value, and At the time of its newest sample.
	Value float64
	At    time.Time
	// Members are the values of single members by name, for metrics of members; nil if only Value, their mean, is
	// known.
	Members map[string]float64
	// Unready are the names of members that are not ready, and Missing of those that are ready but have no value.
	Unready, Missing []string
	// ReadyAfter is how long members run before they are ready by this metric; 0 if all running members are.
	ReadyAfter time.Duration
	// Why says why there is no value; "" if there is one.
	Why string
}

// of returns the measurement with another value, and scales the members' values in proportion.
func (m Measurement) of(value float64) Measurement {
	members := maps.Clone(m.Members)
	for name, own := range members {
		if members[name] = value; m.Value > 0 {
			members[name] = own * (value / m.Value)
		}
	}
	m.Value, m.Members = value, members
	return m
}

// State is what a policy remembers between two decisions. Its zero value is that of a new policy.
type State struct {
	// Since is when the policy made its first decision.
	Since time.Time `json:"since,omitzero"`
	// Initial is true until the policy has brought the role to its initial count.
	Initial bool `json:"initial,omitempty"`
	// Metrics are what the algorithms remember, by metric name.
	Metrics map[string]Memory `json:"metrics,omitempty"`
	// Asked are the counts asked for during the longest stabilisation window, oldest first. A metric that is pending
	// counts with what it will ask for.
	Asked []At[int] `json:"asked,omitempty"`
	// Changes are the changes of the count during the longest period of a rate, oldest first.
	Changes []At[int] `json:"changes,omitempty"`
	// LastChange is when the count last changed, in either direction.
	LastChange time.Time `json:"last_change,omitzero"`
	// Startup is how long members take from the decision until they are ready. Starting is the last raised count, until
	// that many are ready.
	Startup  time.Duration `json:"startup,omitempty"`
	Starting *At[int]      `json:"starting,omitempty"`
	// Answered are the guards that have had a value, by question. Silent is when the others were first asked.
	Answered map[string]bool      `json:"told,omitempty"`
	Silent   map[string]time.Time `json:"untold,omitempty"`
	// Spent is what the role has used of the day's member-hours.
	Spent *Spent `json:"spent,omitempty"`
	// Vertical is what is known of the members' usage.
	Vertical *Vertical `json:"vertical,omitempty"`
}

// At is a value at a time.
type At[T any] struct {
	At    time.Time `json:"at"`
	Value T         `json:"value"`
}

// Memory is what an algorithm remembers of one metric.
type Memory struct {
	// Of identifies what the metric measured; empty if nothing is remembered, or that was stored by an earlier build.
	Of string `json:"of,omitempty"`
	// Heat belongs to [domain.HeatAlgorithm].
	Heat int `json:"heat,omitempty"`
	// Above and Below count the decisions in a row that found the metric beyond a threshold of
	// [domain.ThresholdAlgorithm].
	Above int `json:"above,omitempty"`
	Below int `json:"below,omitempty"`
	// EmptySince is since when the queue of [domain.QueueAlgorithm] has been empty.
	EmptySince time.Time `json:"empty_since,omitzero"`
	// Gain belongs to [domain.MarginalGainAlgorithm].
	Gain *Gain `json:"gain,omitempty"`
	// Forecast belongs to [domain.Forecast].
	Forecast *Trend `json:"forecast,omitempty"`
	// Risk belongs to [domain.RiskAlgorithm].
	Risk *Risk `json:"risk,omitempty"`
	// Learned belongs to [domain.LearnedAlgorithm].
	Learned *LoadHistory `json:"learned,omitempty"`
}

// asking is the input of an algorithm.
type asking struct {
	now time.Time
	// count and ready are as in Seen.
	count, ready int
	metric       Measurement
	roles        map[string]int
	// startup is how long members take to start, as far as known.
	startup time.Duration
	// policy is the metric's policy, for its bounds and tolerances.
	policy *domain.AutoscalingPolicy
	// answer is that of the user's own algorithm, and room as in Seen.
	answer Answer
	room   *Room
	// model is that of a learned algorithm. observed returns the value of another metric, or why there is none.
	model    *qmodel.Model
	observed func(name string) (value float64, missing string)
	// chooses chooses an action in place of the model; nil if the model does.
	chooses Chooser
	// lastChange is as in State, and busy as in Seen. needed is the value of guards.at_least; nil if there is no such
	// guard.
	lastChange time.Time
	busy       string
	needed     *Guarded
	// requested means that the metric is a percentage of what members request, and quiet that no reasons are needed.
	requested, quiet bool
}

// active returns the number of members that the metric covers: the ready ones that have a value, if that is known.
func (in asking) active() int {
	if in.metric.Members == nil {
		return in.ready
	}
	active := 0
	for name, value := range in.metric.Members {
		if finite(value) && !slices.Contains(in.metric.Unready, name) {
			active++
		}
	}
	return active
}

// proposal is the count that a metric asks for, before any bounds, and why.
type proposal struct {
	count int
	// abstains means that the metric does not ask for a change by itself, but others must not go below its count.
	abstains bool
	// pending is what the metric will ask for if it stays beyond a threshold for as many decisions as it takes; nil if
	// it is not beyond one, or acts already.
	pending *int
	why     string
}
