package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"
)

// AutoscalingPolicy is the specification of how a role's count follows its metrics, within bounds. A role has at most
// one.
type AutoscalingPolicy struct {
	Cluster string `json:"cluster"`
	Group   string `json:"group"`
	Role    string `json:"role"`
	// Min and Max bound the count, inclusive.
	Min int `json:"min"`
	Max int `json:"max"`
	// Initial is the count of a newly created role; nil means Min.
	Initial *int `json:"initial,omitempty"`
	// Interval is the time between two decisions; nil means DefaultScalingInterval.
	Interval *Duration `json:"interval,omitempty"`
	// Metrics are what the count follows, by user-chosen names. The largest count that any of them asks for wins.
	Metrics map[string]ScalingMetric `json:"metrics,omitempty"`
	// Schedules ask for counts at certain times in addition to the metrics, by user-chosen names.
	Schedules map[string]ScalingSchedule `json:"schedules,omitempty"`
	ScaleOut  ScalingBehaviour           `json:"scale_out,omitzero"`
	ScaleIn   ScalingBehaviour           `json:"scale_in,omitzero"`
	Guards    ScalingGuards              `json:"guards,omitzero"`
	Hooks     ScalingHooks               `json:"hooks,omitzero"`
	// Vertical adjusts what members request; nil leaves that alone.
	Vertical *VerticalScaling `json:"vertical,omitempty"`
	// DryRun records decisions without carrying them out.
	DryRun bool `json:"dry_run,omitempty"`
	// Paused holds the count, in one direction or both; empty means PauseNone.
	Paused ScalingPause `json:"paused,omitempty"`
	// OnDestroy is what happens to the count when the policy is destroyed; empty means OnDestroyKeep.
	OnDestroy OnDestroy `json:"on_destroy,omitempty"`
}

// ID identifies the policy among all others: <cluster>/<group>/<role>.
func (p AutoscalingPolicy) ID() string { return p.Cluster + "/" + p.Key() }

// Key identifies the policy within its cluster: <group>/<role>.
func (p AutoscalingPolicy) Key() string { return PolicyKey(p.Group, p.Role) }

// PolicyKey returns the key of a role's policy: <group>/<role>.
func PolicyKey(group, role string) string { return group + "/" + role }

// Equal reports whether two specifications are stored as the same document.
func (p AutoscalingPolicy) Equal(other AutoscalingPolicy) bool {
	a, errA := json.Marshal(p)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// EndRule returns OnDestroy with the default filled in.
func (p AutoscalingPolicy) EndRule() OnDestroy { return cmp.Or(p.OnDestroy, OnDestroyKeep) }

// ScalingPause says in which directions a policy may not change the count.
type ScalingPause string

// The directions in which a policy can be paused.
const (
	PauseNone ScalingPause = "none"
	// PauseAll leaves the count as it is, even outside the bounds.
	PauseAll ScalingPause = "all"
	// PauseOut prevents adding members, PauseIn removing them.
	PauseOut ScalingPause = "out"
	PauseIn  ScalingPause = "in"
)

// ScalingPauses lists the valid values.
var ScalingPauses = []ScalingPause{PauseNone, PauseAll, PauseOut, PauseIn}

// OnDestroy says what happens to a role's count when its policy is destroyed.
type OnDestroy string

// What can happen to the count.
const (
	// OnDestroyKeep leaves it as it is.
	OnDestroyKeep OnDestroy = "keep"
	// OnDestroyRestore restores the count that the role had before the policy.
	OnDestroyRestore OnDestroy = "restore"
	// OnDestroyMin sets it to the policy's minimum.
	OnDestroyMin OnDestroy = "min"
)

// OnDestroys lists the valid values.
var OnDestroys = []OnDestroy{OnDestroyKeep, OnDestroyRestore, OnDestroyMin}

// DefaultScalingInterval is the default time between two decisions of a policy.
const DefaultScalingInterval = 5 * time.Second

// Every returns the time between two decisions, with the default filled in.
func (p AutoscalingPolicy) Every() time.Duration { return p.Interval.Or(DefaultScalingInterval) }

// First returns the count of a newly created role.
func (p AutoscalingPolicy) First() int {
	if p.Initial != nil {
		return *p.Initial
	}
	return p.Min
}

// ScalingMetric is a metric and the algorithm that turns it into a count.
type ScalingMetric struct {
	// Algorithm is the zero value for an observed metric, which is measured and shown but asks for nothing.
	Algorithm ScalingAlgorithm `json:"algorithm,omitzero"`
	// Source is where the values come from. Every metric of a policy that is run has one, except those with the
	// algorithms ratio, external and idle_room.
	Source ScalingSource `json:"source,omitzero"`
	// Window is the time before now whose values are aggregated. If it is nil, agent and progress values use
	// DefaultAgentWindow, and others only the last value. An empty Aggregation means AggregateMean.
	Window      *Duration   `json:"window,omitempty"`
	Aggregation Aggregation `json:"aggregation,omitempty"`
	// ReadyAfter is how long a member must have been running before its CPU usage counts as load, as starting uses CPU,
	// too; nil means the window.
	ReadyAfter *Duration `json:"ready_after,omitempty"`
	// StaleAfter is the age from which a value counts as missing; nil means DefaultStaleAfter.
	StaleAfter *Duration `json:"stale_after,omitempty"`
	// OnMissing defaults to MissingHold. MissingValue is the value that MissingAsValue uses.
	OnMissing    OnMissing `json:"on_missing,omitempty"`
	MissingValue *float64  `json:"missing_value,omitempty"`
	// Forecast gives the algorithm the value expected some time ahead.
	Forecast *Forecast `json:"forecast,omitempty"`
}

// DefaultStaleAfter is the default age from which a value counts as missing.
const DefaultStaleAfter = time.Minute

// Stale returns the age from which a value counts as missing, with the default filled in.
func (m ScalingMetric) Stale() time.Duration { return m.StaleAfter.Or(DefaultStaleAfter) }

// Measured returns the metric with the defaults of Source, Window and Aggregation filled in, for a policy of this role:
// metrics with the same three measure the same.
func (m ScalingMetric) Measured(role string) ScalingMetric {
	m.Source = m.Source.filled(role)
	if m.Window == nil && (m.Source.Agent != nil || m.Source.Progress != nil) {
		m.Window = new(Duration(DefaultAgentWindow))
	}
	m.Aggregation = cmp.Or(m.Aggregation, AggregateMean)
	if m.Window == nil {
		m.Aggregation = AggregateLast
	}
	return m
}

// MissingRule returns OnMissing with the default filled in.
func (m ScalingMetric) MissingRule() OnMissing { return cmp.Or(m.OnMissing, MissingHold) }

// Observed reports whether the metric is only measured and asks for nothing.
func (m ScalingMetric) Observed() bool { return m.Algorithm == ScalingAlgorithm{} }

// OnMissing says what a metric asks for if its value is missing or stale. A missing value never counts as 0.
type OnMissing string

// What a metric with a missing value can ask for.
const (
	// MissingHold asks for nothing and prevents other metrics from scaling the role in.
	MissingHold OnMissing = "hold"
	// MissingMin and MissingMax ask for the minimum and maximum count.
	MissingMin OnMissing = "min"
	MissingMax OnMissing = "max"
	// MissingAsValue uses a configured value.
	MissingAsValue OnMissing = "value"
)

// OnMissings lists the valid values.
var OnMissings = []OnMissing{MissingHold, MissingMin, MissingMax, MissingAsValue}

// ScalingAlgorithm is one algorithm: exactly one field is set, or none for an observed metric. Each algorithm is
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

// FillsRoom reports whether a metric of the policy takes whatever room is idle.
func (p AutoscalingPolicy) FillsRoom() bool {
	for _, m := range p.Metrics {
		if m.Algorithm.IdleRoom != nil {
			return true
		}
	}
	return false
}

// Measures reports whether the algorithm computes its count from a measured value.
func (a ScalingAlgorithm) Measures() bool {
	return a.Ratio == nil && a.External == nil && a.IdleRoom == nil
}

// TargetAlgorithm keeps a metric at a value, like Kubernetes' Horizontal Pod Autoscaler.
type TargetAlgorithm struct {
	// Value is the target, above 0, in the metric's own unit.
	Value float64 `json:"value"`
	// Per defaults to TargetMean.
	Per TargetPer `json:"per,omitempty"`
}

// TargetPer says what a target is compared with.
type TargetPer string

// What a target can be compared with.
const (
	// TargetMean is for metrics of members, such as utilisation: the target applies to their mean, and more members
	// share the same sum.
	TargetMean TargetPer = "mean"
	// TargetTotal is for metrics of the whole role, such as requests per second: the target applies to the value
	// divided by the number of members.
	TargetTotal TargetPer = "total"
)

// TargetPers lists the valid values.
var TargetPers = []TargetPer{TargetMean, TargetTotal}

// HeatAlgorithm scales after a metric has been beyond a threshold for several decisions in a row, each of which adds or
// removes one unit of heat.
type HeatAlgorithm struct {
	// Lower and Upper are the thresholds, with Lower below Upper.
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
	// Target is the value that the new count is computed for, above 0.
	Target float64 `json:"target"`
	// Recurrence is the heat at which it scales, at least 1; 0 means 3.
	Recurrence int `json:"recurrence,omitempty"`
}

// ThresholdAlgorithm adds or removes members while a metric is beyond a threshold.
type ThresholdAlgorithm struct {
	// Lower and Upper are the thresholds. Either may be nil, but not both.
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
	// Samples is how many decisions in a row must find the metric beyond the threshold; 0 means 1.
	Samples int `json:"samples,omitempty"`
	// StepOut and StepIn are how many members to add and remove; percentages of the count are rounded up. The step is 1
	// if neither a number nor a percentage is given.
	StepOut        int     `json:"step_out,omitempty"`
	StepIn         int     `json:"step_in,omitempty"`
	StepOutPercent float64 `json:"step_out_percent,omitempty"`
	StepInPercent  float64 `json:"step_in_percent,omitempty"`
}

// QueueAlgorithm keeps the number of members proportional to the length of a queue.
type QueueAlgorithm struct {
	// PerMember is the queue length for each member, above 0.
	PerMember float64 `json:"per_member"`
	// CoolDown is how long the queue must have been empty before the last member goes; nil means DefaultQueueCoolDown.
	CoolDown *Duration `json:"cool_down,omitempty"`
}

// DefaultQueueCoolDown is how long a queue must have been empty before the last member goes, as in KEDA.
const DefaultQueueCoolDown = 5 * time.Minute

// MarginalGainAlgorithm adds members as long as that brings progress.
type MarginalGainAlgorithm struct {
	// Threshold is the minimum gain in progress from one more member, as a fraction of the progress per member so far:
	// 0.1 is a tenth.
	Threshold float64 `json:"threshold"`
	// Settle is how long progress is measured before the next step, counted from when the members run; nil means
	// DefaultGainSettle.
	Settle *Duration `json:"settle,omitempty"`
	// RetryAfter is how long a knee that was found stays valid; nil means forever.
	RetryAfter *Duration `json:"retry_after,omitempty"`
}

// DefaultGainSettle is how long progress is measured before the next step by default.
const DefaultGainSettle = time.Minute

// RatioAlgorithm keeps a role in proportion to another role of its group.
type RatioAlgorithm struct {
	Role string `json:"role"`
	// Per is how many members of that role there are for each one of this role, above 0.
	Per float64 `json:"per"`
}

// RiskAlgorithm limits the share of time with too few members to a given percentage, at the lowest cost.
type RiskAlgorithm struct {
	// Percent is the share of time that may have too few members, in percent.
	Percent float64 `json:"percent"`
	// Capacity is how much of the metric one member can carry, above 0. It may be 0 if Per is TargetMean, which means
	// DefaultRiskCapacity.
	Capacity float64 `json:"capacity,omitempty"`
	// Per defaults to TargetMean.
	Per TargetPer `json:"per,omitempty"`
}

// DefaultRiskCapacity is how much utilisation a member can carry, in percent.
const DefaultRiskCapacity = 100

// Carried returns how much of the metric one member can carry, with the default filled in.
func (a RiskAlgorithm) Carried() float64 { return cmp.Or(a.Capacity, DefaultRiskCapacity) }

// IdleRoomAlgorithm runs as many members as fit into room that nobody else uses.
type IdleRoomAlgorithm struct {
	// KeepFree is how many more members' worth of room to leave free. If others take that room, the role does not
	// shrink to free it again.
	KeepFree int `json:"keep_free,omitempty"`
}

// ExternalAlgorithm lets a program of the user's decide, such as a trained agent: it receives what the policy sees as
// JSON, and answers with a count or a direction (Question and Answer in package autoscale). A failure counts as no
// answer and changes nothing.
type ExternalAlgorithm struct {
	ScalingHook
}

// Forecast says how far ahead a metric is predicted.
type Forecast struct {
	// Lead is how far ahead; 0 means as long as members have taken to start so far.
	Lead Duration `json:"lead,omitempty"`
	// Season is the period after which the metric repeats, such as a day; nil means none.
	Season *Duration `json:"season,omitempty"`
}

// ScalingSchedule asks for a count from each start to the next end.
type ScalingSchedule struct {
	// Start and End are cron expressions with five fields.
	Start string `json:"start"`
	End   string `json:"end"`
	// TimeZone is an IANA time zone, such as Europe/Warsaw; empty means UTC.
	TimeZone string `json:"time_zone,omitempty"`
	Count    int    `json:"count"`
}

// ScalingBehaviour says how fast a role is scaled in one direction.
type ScalingBehaviour struct {
	// Stabilisation is the window over which the most conservative proposed count is used; nil means 0 for out and 300
	// s for in.
	Stabilisation *Duration `json:"stabilisation_window,omitempty"`
	// Tolerance is the fraction by which a metric may miss its target without a change; nil means DefaultTolerance.
	Tolerance *float64 `json:"tolerance,omitempty"`
	// Rates limit the change per period. If there are none, scaling out is limited as in Kubernetes (4 members or 100
	// %, whichever is more, every 15 s) and scaling in is not limited.
	Rates []ScalingRate `json:"rates,omitempty"`
	// Select defaults to SelectMax.
	Select RateSelect `json:"select,omitempty"`
	// Cooldown is how long after any change of the role's count this direction is blocked.
	Cooldown *Duration `json:"cooldown,omitempty"`
	// MaxStep is the largest change of one decision, up to MaxReplicas; 0 means no limit.
	MaxStep int `json:"max_step,omitempty"`
}

// DefaultTolerance is the fraction by which a metric may miss its target, as in Kubernetes.
const DefaultTolerance = 0.1

// The default stabilisation windows, as in Kubernetes.
const (
	DefaultStabilisationOut = 0
	DefaultStabilisationIn  = 5 * time.Minute
)

// ScalingRate limits the change in a period, as a number of members or a percentage of them.
type ScalingRate struct {
	// Count and Percent are the limits. Exactly one is given, above 0.
	Count   int     `json:"count,omitempty"`
	Percent float64 `json:"percent,omitempty"`
	// Period is above 0, and at most 30 minutes.
	Period Duration `json:"period"`
}

// RateSelect says which of several rates applies.
type RateSelect string

// Which of several rates can apply.
const (
	// SelectMax uses the rate that allows the largest change, SelectMin the one that allows the smallest.
	SelectMax RateSelect = "max"
	SelectMin RateSelect = "min"
	// SelectDisabled allows no change in this direction.
	SelectDisabled RateSelect = "disabled"
)

// RateSelects lists the valid values.
var RateSelects = []RateSelect{SelectMax, SelectMin, SelectDisabled}
