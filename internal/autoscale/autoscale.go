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
	// Count is the number of members that the role is to have so far, and Ready how many of them do their work by now.
	Count, Ready int
	// Metrics are the metrics of the policy by name. One that is not there is missing.
	Metrics map[string]Measurement
	// Roles are the counts of the group's other roles.
	Roles map[string]int
	// Answers are those of algorithms of the user's, by the names of the metrics that have one. One that is not there
	// has not answered.
	Answers map[string]Answer
	// Guards are what the sources of the policy's guards tell, by [domain.GuardQuestion].Name. One that is not there
	// was not asked.
	Guards map[string]Measurement
	// Room is what there is for further members; nil where nobody asks for it, or knows of no bound.
	Room *Room
	// Yield has members go for somebody more important; nil where nobody waits for their room.
	Yield *Yield
	// Used is what members use, for a policy that scales vertically.
	Used Used
	// Held says why nothing can be changed at the moment, such as an apply that is under way, and Busy why no member
	// may go, such as a hook that is at work; "" where nothing does.
	Held, Busy string
}

// Measurement is what is known of a metric.
type Measurement struct {
	// Value is the metric's, and At the time of its newest sample.
	Value float64
	At    time.Time
	// Members are the values of single members by name, for metrics that members have; nil where only Value, their
	// mean, is known.
	Members map[string]float64
	// Unready are the names of the members that are not ready, and Missing of those that are and have no value.
	Unready, Missing []string
	// ReadyAfter is how long members run before they are ready by this metric; 0 where all that run are.
	ReadyAfter time.Duration
	// Why says why there is no value; "" where there is one.
	Why string
}

// of returns the measurement with another value, and with those of members as much larger.
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
	// Since is when the policy decided for the first time.
	Since time.Time `json:"since,omitzero"`
	// Initial tells that the policy has yet to bring the role to its initial count.
	Initial bool `json:"initial,omitempty"`
	// Metrics are what the algorithms remember, by the metrics' names.
	Metrics map[string]Memory `json:"metrics,omitempty"`
	// Asked are the counts that were asked for in the time of the longest stabilisation window, the oldest first.
	Asked []At[int] `json:"asked,omitempty"`
	// Changes are by how much the count was changed in the time of the longest period of a rate, the oldest first.
	Changes []At[int] `json:"changes,omitempty"`
	// LastChange is when the count was changed last, in either direction.
	LastChange time.Time `json:"last_change,omitzero"`
	// Startup is how long members take from the decision until they are ready, and Starting the count that was last
	// raised, until that many are.
	Startup  time.Duration `json:"startup,omitempty"`
	Starting *At[int]      `json:"starting,omitempty"`
	// Told are the guards that have had a value, by what they ask, and Untold when those were asked first that have
	// not.
	Told   map[string]bool      `json:"told,omitempty"`
	Untold map[string]time.Time `json:"untold,omitempty"`
	// Spent is what the role has used of the day's member-hours.
	Spent *Spent `json:"spent,omitempty"`
	// Vertical is what is known of what members use.
	Vertical *Vertical `json:"vertical,omitempty"`
}

// At is a value of a moment.
type At[T any] struct {
	At    time.Time `json:"at"`
	Value T         `json:"value"`
}

// Memory is what an algorithm remembers of one metric.
type Memory struct {
	// Heat is that of [domain.HeatAlgorithm].
	Heat int `json:"heat,omitempty"`
	// Above and Below count the decisions in a row that found the metric beyond the thresholds of
	// [domain.ThresholdAlgorithm].
	Above int `json:"above,omitempty"`
	Below int `json:"below,omitempty"`
	// EmptySince is since when the queue of [domain.QueueAlgorithm] has been empty.
	EmptySince time.Time `json:"empty_since,omitzero"`
	// Gain is that of [domain.MarginalGainAlgorithm].
	Gain *Gain `json:"gain,omitempty"`
	// Forecast is that of [domain.Forecast].
	Forecast *Trend `json:"forecast,omitempty"`
	// Risk is that of [domain.RiskAlgorithm].
	Risk *Risk `json:"risk,omitempty"`
	// Learned is that of [domain.LearnedAlgorithm].
	Learned *LoadHistory `json:"learned,omitempty"`
}

// asking is what an algorithm knows when it is asked.
type asking struct {
	now time.Time
	// count and ready are as in Seen.
	count, ready int
	metric       Measurement
	roles        map[string]int
	// startup is how long members take to start, as far as that is known.
	startup time.Duration
	// policy is that of the metric, for its bounds and tolerances.
	policy *domain.AutoscalingPolicy
	// answer is that of an algorithm of the user's, and room as in Seen.
	answer Answer
	room   *Room
	// model is that of a learned algorithm, and observed the value of another metric, or why there is none.
	model    *qmodel.Model
	observed func(name string) (value float64, missing string)
	// chooses chooses an action in the model's place; nil where the model does.
	chooses Chooser
	// lastChange is as in State, busy as in Seen, and needed what guards.at_least was told; nil where there is no such
	// guard.
	lastChange time.Time
	busy       string
	needed     *Guarded
	// requested tells that the metric is in percent of what members request, and quiet that nobody wants to know why.
	requested, quiet bool
}

// active is the number of members that the metric is of: of those that are ready the ones that have a value, where that
// is known.
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

// proposal is the count that a metric asks for, within no bounds yet, and why.
type proposal struct {
	count int
	// abstains tells that the metric does not ask for a change by itself: its count is one below which no other may go.
	abstains bool
	why      string
}
