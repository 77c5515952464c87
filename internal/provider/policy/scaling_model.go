package policy

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ScalingModel is a policy but for whose it is, and for its metrics, which have more attributes in one place than in
// another.
type ScalingModel struct {
	Min       *int64                          `tfsdk:"min"`
	Max       *int64                          `tfsdk:"max"`
	Initial   *int64                          `tfsdk:"initial"`
	Interval  types.String                    `tfsdk:"interval"`
	Schedules map[string]ScalingScheduleModel `tfsdk:"schedules"`
	ScaleOut  *ScalingBehaviourModel          `tfsdk:"scale_out"`
	ScaleIn   *ScalingBehaviourModel          `tfsdk:"scale_in"`
}

// ScalingMetricModel is a metric and what is made of it.
type ScalingMetricModel struct {
	Algorithm    *ScalingAlgorithmModel `tfsdk:"algorithm"`
	StaleAfter   types.String           `tfsdk:"stale_after"`
	OnMissing    *string                `tfsdk:"on_missing"`
	MissingValue types.Float64          `tfsdk:"missing_value"`
	Forecast     *ForecastModel         `tfsdk:"forecast"`
}

// ScalingAlgorithmModel is how a count follows from a metric; one of these.
type ScalingAlgorithmModel struct {
	Target       *TargetModel       `tfsdk:"target"`
	Heat         *HeatModel         `tfsdk:"heat"`
	Threshold    *ThresholdModel    `tfsdk:"threshold"`
	Queue        *QueueModel        `tfsdk:"queue"`
	MarginalGain *MarginalGainModel `tfsdk:"marginal_gain"`
	Ratio        *RatioModel        `tfsdk:"ratio"`
	External     *HookModel         `tfsdk:"external"`
	Risk         *RiskModel         `tfsdk:"risk"`
	IdleRoom     *IdleRoomModel     `tfsdk:"idle_room"`
	Learned      *LearnedModel      `tfsdk:"learned"`
}

// TargetModel keeps a value.
type TargetModel struct {
	Value types.Float64 `tfsdk:"value"`
	Per   *string       `tfsdk:"per"`
}

// HeatModel keeps a value within bounds.
type HeatModel struct {
	Lower      types.Float64 `tfsdk:"lower"`
	Upper      types.Float64 `tfsdk:"upper"`
	Target     types.Float64 `tfsdk:"target"`
	Recurrence *int64        `tfsdk:"recurrence"`
}

// ThresholdModel takes steps beyond thresholds.
type ThresholdModel struct {
	Lower          types.Float64 `tfsdk:"lower"`
	Upper          types.Float64 `tfsdk:"upper"`
	Samples        *int64        `tfsdk:"samples"`
	StepOut        *int64        `tfsdk:"step_out"`
	StepIn         *int64        `tfsdk:"step_in"`
	StepOutPercent types.Float64 `tfsdk:"step_out_percent"`
	StepInPercent  types.Float64 `tfsdk:"step_in_percent"`
}

// QueueModel follows the length of a queue.
type QueueModel struct {
	PerMember types.Float64 `tfsdk:"per_member"`
	CoolDown  types.String  `tfsdk:"cool_down"`
}

// MarginalGainModel grows as long as it pays.
type MarginalGainModel struct {
	Threshold  types.Float64 `tfsdk:"threshold"`
	Settle     types.String  `tfsdk:"settle"`
	RetryAfter types.String  `tfsdk:"retry_after"`
}

// RatioModel follows the count of another role.
type RatioModel struct {
	Role string        `tfsdk:"role"`
	Per  types.Float64 `tfsdk:"per"`
}

// RiskModel keeps the share of time with too few members.
type RiskModel struct {
	Percent  types.Float64 `tfsdk:"percent"`
	Capacity types.Float64 `tfsdk:"capacity"`
	Per      *string       `tfsdk:"per"`
}

// IdleRoomModel takes the room that there is.
type IdleRoomModel struct {
	KeepFree *int64 `tfsdk:"keep_free"`
}

// LearnedModel asks a model that was trained.
type LearnedModel struct {
	Model        types.String  `tfsdk:"model"`
	Capacity     types.Float64 `tfsdk:"capacity"`
	Per          *string       `tfsdk:"per"`
	LatencyBound types.Float64 `tfsdk:"latency_bound"`
	LagCapacity  types.Float64 `tfsdk:"lag_capacity"`
	Observes     types.Map     `tfsdk:"observes"`
}

// HookModel is something of the user's that is asked or told.
type HookModel struct {
	URL     *string      `tfsdk:"url"`
	Command []string     `tfsdk:"command"`
	Timeout types.String `tfsdk:"timeout"`
}

// ForecastModel looks ahead.
type ForecastModel struct {
	Lead   types.String `tfsdk:"lead"`
	Season types.String `tfsdk:"season"`
}

// ScalingScheduleModel is a count at certain times.
type ScalingScheduleModel struct {
	Start    string  `tfsdk:"start"`
	End      string  `tfsdk:"end"`
	TimeZone *string `tfsdk:"time_zone"`
	Count    int64   `tfsdk:"count"`
}

// ScalingBehaviourModel is how fast counts change.
type ScalingBehaviourModel struct {
	Stabilisation types.String       `tfsdk:"stabilisation_window"`
	Tolerance     types.Float64      `tfsdk:"tolerance"`
	Rates         []ScalingRateModel `tfsdk:"rates"`
	Select        *string            `tfsdk:"select"`
	Cooldown      types.String       `tfsdk:"cooldown"`
	MaxStep       *int64             `tfsdk:"max_step"`
}

// ScalingRateModel bounds a change within a period.
type ScalingRateModel struct {
	Count   *int64        `tfsdk:"count"`
	Percent types.Float64 `tfsdk:"percent"`
	Period  types.String  `tfsdk:"period"`
}

// written returns a duration as people write it: 5m for what a duration itself writes as 5m0s.
func written(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
