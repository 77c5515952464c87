package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// AutoscalingPolicy is the specification of how a role's count follows what is measured, within bounds. A role has one
// at most.
type AutoscalingPolicy struct {
	Cluster string `json:"cluster"`
	Group   string `json:"group"`
	Role    string `json:"role"`
	// Min and Max bound the count, both included.
	Min int `json:"min"`
	Max int `json:"max"`
	// Initial is the count of a role that is created; Min where it is nil.
	Initial *int `json:"initial,omitempty"`
	// Interval is the time between two decisions; DefaultScalingInterval where it is nil.
	Interval *Duration `json:"interval,omitempty"`
	// Metrics are what the count follows, by names of the user's. The largest count that one of them asks for is taken.
	Metrics map[string]ScalingMetric `json:"metrics,omitempty"`
	// Schedules ask for counts at certain times, by names of the user's, beside the metrics.
	Schedules map[string]ScalingSchedule `json:"schedules,omitempty"`
	ScaleOut  ScalingBehaviour           `json:"scale_out,omitzero"`
	ScaleIn   ScalingBehaviour           `json:"scale_in,omitzero"`
	Guards    ScalingGuards              `json:"guards,omitzero"`
	Hooks     ScalingHooks               `json:"hooks,omitzero"`
	// Vertical moves what members request; nil leaves that alone.
	Vertical *VerticalScaling `json:"vertical,omitempty"`
	// DryRun has decisions recorded, and none carried out.
	DryRun bool `json:"dry_run,omitempty"`
	// Paused holds the count, in one direction or in both; it is PauseNone where it is empty.
	Paused ScalingPause `json:"paused,omitempty"`
	// OnDestroy is what becomes of the count with the end of the policy; OnDestroyKeep where it is empty.
	OnDestroy OnDestroy `json:"on_destroy,omitempty"`
}

// ID is what tells the policy from all others: <cluster>/<group>/<role>.
func (p AutoscalingPolicy) ID() string { return p.Cluster + "/" + p.Key() }

// Key is what tells the policy from the others of its cluster: <group>/<role>.
func (p AutoscalingPolicy) Key() string { return PolicyKey(p.Group, p.Role) }

// PolicyKey is the key of the policy for a role: <group>/<role>.
func PolicyKey(group, role string) string { return group + "/" + role }

// Equal reports whether two specifications are stored as the same document.
func (p AutoscalingPolicy) Equal(other AutoscalingPolicy) bool {
	a, errA := json.Marshal(p)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// EndRule is what becomes of the count with the end of the policy, with the default filled in.
func (p AutoscalingPolicy) EndRule() OnDestroy { return cmp.Or(p.OnDestroy, OnDestroyKeep) }

// ScalingPause says in which directions a policy may change the count.
type ScalingPause string

// What of a policy may be paused.
const (
	PauseNone ScalingPause = "none"
	// PauseAll leaves the count as it is, even beyond the bounds.
	PauseAll ScalingPause = "all"
	// PauseOut and PauseIn keep members from being added, or from being removed.
	PauseOut ScalingPause = "out"
	PauseIn  ScalingPause = "in"
)

// ScalingPauses lists what a policy may name.
var ScalingPauses = []ScalingPause{PauseNone, PauseAll, PauseOut, PauseIn}

// OnDestroy says what becomes of a role's count with the end of its policy.
type OnDestroy string

// What may become of a count.
const (
	// OnDestroyKeep leaves it as it is.
	OnDestroyKeep OnDestroy = "keep"
	// OnDestroyRestore brings back the count that the role had before the policy.
	OnDestroyRestore OnDestroy = "restore"
	// OnDestroyMin brings it to the policy's least one.
	OnDestroyMin OnDestroy = "min"
)

// OnDestroys lists what a policy may name.
var OnDestroys = []OnDestroy{OnDestroyKeep, OnDestroyRestore, OnDestroyMin}

// DefaultScalingInterval is the time between two decisions of a policy.
const DefaultScalingInterval = 5 * time.Second

// Every is the time between two decisions, with the default filled in.
func (p AutoscalingPolicy) Every() time.Duration { return p.Interval.Or(DefaultScalingInterval) }

// First is the count of a role that is created.
func (p AutoscalingPolicy) First() int {
	if p.Initial != nil {
		return *p.Initial
	}
	return p.Min
}

// ScalingMetric is a metric and the algorithm that makes a count of it.
type ScalingMetric struct {
	// Algorithm is none where the metric is observed: it is measured and shown, and asks for nothing.
	Algorithm ScalingAlgorithm `json:"algorithm,omitzero"`
	// Source is where the values come from: of a policy that is run, all metrics have one but those of ratio and
	// external.
	Source ScalingSource `json:"source,omitzero"`
	// Window is the time before now of which the values are, in one by Aggregation: DefaultAgentWindow for an agent's
	// and for progress where it is nil, and the last value alone for others. Aggregation is AggregateMean where it is
	// empty.
	Window      *Duration   `json:"window,omitempty"`
	Aggregation Aggregation `json:"aggregation,omitempty"`
	// ReadyAfter is how long a member runs before what it takes of the processors is a sign of its load: starting takes
	// some, too. It is the window where it is nil.
	ReadyAfter *Duration `json:"ready_after,omitempty"`
	// A value older than StaleAfter is as good as missing; DefaultStaleAfter where it is nil.
	StaleAfter *Duration `json:"stale_after,omitempty"`
	// OnMissing is MissingHold where it is empty, and MissingValue what MissingAsValue takes for the value.
	OnMissing    OnMissing `json:"on_missing,omitempty"`
	MissingValue *float64  `json:"missing_value,omitempty"`
	// Forecast has the algorithm work with the value that is expected some time ahead.
	Forecast *Forecast `json:"forecast,omitempty"`
}

// DefaultStaleAfter is how old a value may be: one that is older is as good as missing.
const DefaultStaleAfter = time.Minute

// Stale is how old a value may be, with the default filled in: one that is older is as good as missing.
func (m ScalingMetric) Stale() time.Duration { return m.StaleAfter.Or(DefaultStaleAfter) }

// MissingRule is what happens where a value is missing, with the default filled in.
func (m ScalingMetric) MissingRule() OnMissing { return cmp.Or(m.OnMissing, MissingHold) }

// Observed reports whether the metric is measured and asks for nothing.
func (m ScalingMetric) Observed() bool { return m.Algorithm == ScalingAlgorithm{} }

// OnMissing says what a metric asks for whose value is missing or stale. It is never taken for 0.
type OnMissing string

// What a metric may ask for that is missing.
const (
	// MissingHold asks for nothing, and keeps the role from being scaled in by others.
	MissingHold OnMissing = "hold"
	// MissingMin and MissingMax ask for the least and the largest count.
	MissingMin OnMissing = "min"
	MissingMax OnMissing = "max"
	// MissingAsValue goes on with a value that is given.
	MissingAsValue OnMissing = "value"
)

// OnMissings lists what a metric may name.
var OnMissings = []OnMissing{MissingHold, MissingMin, MissingMax, MissingAsValue}

// ScalingAlgorithm is one algorithm: exactly one of its fields is set, or none of a metric that is observed. Each is
// described where it is implemented, in package autoscale.
type ScalingAlgorithm struct {
	Target       *TargetAlgorithm       `json:"target,omitempty"`
	Heat         *HeatAlgorithm         `json:"heat,omitempty"`
	Threshold    *ThresholdAlgorithm    `json:"threshold,omitempty"`
	Queue        *QueueAlgorithm        `json:"queue,omitempty"`
	MarginalGain *MarginalGainAlgorithm `json:"marginal_gain,omitempty"`
	Ratio        *RatioAlgorithm        `json:"ratio,omitempty"`
	Risk         *RiskAlgorithm         `json:"risk,omitempty"`
	External     *ExternalAlgorithm     `json:"external,omitempty"`
	IdleRoom     *IdleRoomAlgorithm     `json:"idle_room,omitempty"`
	Learned      *LearnedAlgorithm      `json:"learned,omitempty"`
}

// FillsRoom reports whether a metric of the policy takes what room there is.
func (p AutoscalingPolicy) FillsRoom() bool {
	for _, m := range p.Metrics {
		if m.Algorithm.IdleRoom != nil {
			return true
		}
	}
	return false
}

// Measures reports whether the algorithm makes its count of a value that is measured.
func (a ScalingAlgorithm) Measures() bool {
	return a.Ratio == nil && a.External == nil && a.IdleRoom == nil
}

// TargetAlgorithm keeps a metric at a value, as the Horizontal Pod Autoscaler of Kubernetes does.
type TargetAlgorithm struct {
	// Value is what the metric is kept at, above 0, in the metric's own unit.
	Value float64 `json:"value"`
	// Per is TargetMean where it is empty.
	Per TargetPer `json:"per,omitempty"`
}

// TargetPer says what a target is compared with.
type TargetPer string

// What a target may be compared with.
const (
	// TargetMean is for metrics that members have, such as their utilisation: the mean of them, whose sum more members
	// share.
	TargetMean TargetPer = "mean"
	// TargetTotal is for metrics of the whole, such as requests a second: the value divided by the number of members.
	TargetTotal TargetPer = "total"
)

// TargetPers lists what a target may name.
var TargetPers = []TargetPer{TargetMean, TargetTotal}

// HeatAlgorithm scales when a metric has been beyond a threshold for some decisions in a row, by which each of them
// heats or cools.
type HeatAlgorithm struct {
	// Lower and Upper are the thresholds, Lower below Upper.
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
	// Target is the value that the count is made for, above 0.
	Target float64 `json:"target"`
	// Recurrence is the heat at which it scales, 1 or more; 3 where it is 0.
	Recurrence int `json:"recurrence,omitempty"`
}

// ThresholdAlgorithm adds or removes members while a metric is beyond a threshold.
type ThresholdAlgorithm struct {
	// Lower and Upper are the thresholds; nil for none, but not both.
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
	// Samples is how many decisions in a row have to find it there; 1 where it is 0.
	Samples int `json:"samples,omitempty"`
	// StepOut and StepIn are how many members are added and removed: 1 where neither they nor their percentages of the
	// count, which are rounded up, are given.
	StepOut        int     `json:"step_out,omitempty"`
	StepIn         int     `json:"step_in,omitempty"`
	StepOutPercent float64 `json:"step_out_percent,omitempty"`
	StepInPercent  float64 `json:"step_in_percent,omitempty"`
}

// QueueAlgorithm has members in proportion to a queue.
type QueueAlgorithm struct {
	// PerMember is how much of the queue is one member's, above 0.
	PerMember float64 `json:"per_member"`
	// CoolDown is how long the queue has to have been empty before the last member goes; DefaultQueueCoolDown where it
	// is nil.
	CoolDown *Duration `json:"cool_down,omitempty"`
}

// DefaultQueueCoolDown is how long a queue has to have been empty before the last member goes, as KEDA has it.
const DefaultQueueCoolDown = 5 * time.Minute

// MarginalGainAlgorithm adds members as long as that brings progress.
type MarginalGainAlgorithm struct {
	// Threshold is the least gain in progress that one more member has to bring, as a share of what a member brought so
	// far: 0.1 is a tenth.
	Threshold float64 `json:"threshold"`
	// Settle is how long progress is measured before the next step, and after members have come to run;
	// DefaultGainSettle where it is nil.
	Settle *Duration `json:"settle,omitempty"`
	// RetryAfter is how long a knee that was found is believed; it is for ever where it is nil.
	RetryAfter *Duration `json:"retry_after,omitempty"`
}

// DefaultGainSettle is how long progress is measured before the next step.
const DefaultGainSettle = time.Minute

// RatioAlgorithm keeps a role in proportion to another one of its group.
type RatioAlgorithm struct {
	Role string `json:"role"`
	// Per is how many of its members there are for one of this role, above 0.
	Per float64 `json:"per"`
}

// RiskAlgorithm keeps the share of time with too few members at what is asked, at the least cost.
type RiskAlgorithm struct {
	// Percent is the share of time that may have too few members, in percent.
	Percent float64 `json:"percent"`
	// Capacity is how much of the metric one member carries, above 0; DefaultRiskCapacity where it is 0 and Per is
	// TargetMean.
	Capacity float64 `json:"capacity,omitempty"`
	// Per is TargetMean where it is empty.
	Per TargetPer `json:"per,omitempty"`
}

// DefaultRiskCapacity is how much of its utilisation, in percent, a member carries.
const DefaultRiskCapacity = 100

// Carried is how much of the metric one member carries, with the default filled in.
func (a RiskAlgorithm) Carried() float64 { return cmp.Or(a.Capacity, DefaultRiskCapacity) }

// IdleRoomAlgorithm has as many members as there is room for that nobody else uses.
type IdleRoomAlgorithm struct {
	// KeepFree is for how many more members room is left free; what others take of that is not given back to it.
	KeepFree int `json:"keep_free,omitempty"`
}

// ExternalAlgorithm has a program of the user's decide, such as one that has learnt to. It is given what the policy
// sees as JSON, and answers with a count or with a direction: Question and Answer of package autoscale. Any failure is
// no answer, and changes nothing.
type ExternalAlgorithm struct {
	ScalingHook
}

// Forecast is what a metric is expected to be.
type Forecast struct {
	// Lead is how far ahead; where it is 0, it is how long members have taken to start so far.
	Lead Duration `json:"lead,omitempty"`
	// Season is the length of what repeats, such as a day; none where it is nil.
	Season *Duration `json:"season,omitempty"`
}

// ScalingSchedule asks for a count from each start to the next end.
type ScalingSchedule struct {
	// Start and End are times in the syntax of cron, with five fields.
	Start string `json:"start"`
	End   string `json:"end"`
	// TimeZone is a name of the IANA database, such as Europe/Warsaw; UTC where it is empty.
	TimeZone string `json:"time_zone,omitempty"`
	Count    int    `json:"count"`
}

// ScalingBehaviour says how fast a role is scaled in one direction.
type ScalingBehaviour struct {
	// Stabilisation is the time over which the most careful count is taken that was asked for: 0 for out and 300 s for
	// in where it is nil.
	Stabilisation *Duration `json:"stabilisation_window,omitempty"`
	// Tolerance is by which share a metric may miss its target without any change; DefaultTolerance where it is nil.
	Tolerance *float64 `json:"tolerance,omitempty"`
	// Rates bound the change in a period. Where there are none, out has the defaults of Kubernetes (4 members or 100 %,
	// whichever is more, every 15 s), and in none.
	Rates []ScalingRate `json:"rates,omitempty"`
	// Select is SelectMax where it is empty.
	Select RateSelect `json:"select,omitempty"`
	// Cooldown is how long after a change of the role there is none in this direction.
	Cooldown *Duration `json:"cooldown,omitempty"`
	// MaxStep is the largest change of one decision, MaxReplicas at most; 0 sets no bound.
	MaxStep int `json:"max_step,omitempty"`
}

// DefaultTolerance is by which share a metric may miss its target, as in Kubernetes.
const DefaultTolerance = 0.1

// The times over which the most careful count is taken, as in Kubernetes.
const (
	DefaultStabilisationOut = 0
	DefaultStabilisationIn  = 5 * time.Minute
)

// ScalingRate bounds a change: a number of members, or a percentage of them, in a period.
type ScalingRate struct {
	// Count and Percent are the bounds, of which one is given, above 0.
	Count   int     `json:"count,omitempty"`
	Percent float64 `json:"percent,omitempty"`
	// Period is above 0, and 30 minutes at most.
	Period Duration `json:"period"`
}

// RateSelect says which of several rates counts.
type RateSelect string

// Which of several rates may count.
const (
	// SelectMax takes the one that allows the largest change, SelectMin the smallest.
	SelectMax RateSelect = "max"
	SelectMin RateSelect = "min"
	// SelectDisabled allows no change in this direction.
	SelectDisabled RateSelect = "disabled"
)

// RateSelects lists what a behaviour may name.
var RateSelects = []RateSelect{SelectMax, SelectMin, SelectDisabled}
