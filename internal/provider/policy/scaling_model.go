package policy

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ScalingModel is a policy without the attributes that identify it, and without its metrics, which have different
// attributes in different places.
type ScalingModel struct {
	Min       *int64                          `tfsdk:"min"`
	Max       *int64                          `tfsdk:"max"`
	Initial   *int64                          `tfsdk:"initial"`
	Interval  types.String                    `tfsdk:"interval"`
	Schedules map[string]ScalingScheduleModel `tfsdk:"schedules"`
	ScaleOut  *ScalingBehaviourModel          `tfsdk:"scale_out"`
	ScaleIn   *ScalingBehaviourModel          `tfsdk:"scale_in"`
}

// ScalingMetricModel is a metric and its algorithm.
type ScalingMetricModel struct {
	Algorithm    *ScalingAlgorithmModel `tfsdk:"algorithm"`
	StaleAfter   types.String           `tfsdk:"stale_after"`
	OnMissing    *string                `tfsdk:"on_missing"`
	MissingValue types.Float64          `tfsdk:"missing_value"`
	Forecast     *ForecastModel         `tfsdk:"forecast"`
}

// ScalingAlgorithmModel is how a count follows from a metric; exactly one of these.
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

// ThresholdModel changes the count by steps beyond thresholds.
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

// MarginalGainModel adds members as long as that pays.
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

// RiskModel limits the share of time with too few members.
type RiskModel struct {
	Percent  types.Float64 `tfsdk:"percent"`
	Capacity types.Float64 `tfsdk:"capacity"`
	Per      *string       `tfsdk:"per"`
}

// IdleRoomModel uses the room that is free.
type IdleRoomModel struct {
	KeepFree *int64 `tfsdk:"keep_free"`
}

// LearnedModel asks a trained model.
type LearnedModel struct {
	Model        types.String  `tfsdk:"model"`
	Capacity     types.Float64 `tfsdk:"capacity"`
	Per          *string       `tfsdk:"per"`
	LatencyBound types.Float64 `tfsdk:"latency_bound"`
	LagCapacity  types.Float64 `tfsdk:"lag_capacity"`
	Observes     types.Map     `tfsdk:"observes"`
}

// HookModel is a URL or program of the user's.
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

// ScalingRateModel limits the change within a period.
type ScalingRateModel struct {
	Count   *int64        `tfsdk:"count"`
	Percent types.Float64 `tfsdk:"percent"`
	Period  types.String  `tfsdk:"period"`
}

// written returns a duration in the usual spelling, such as 5m instead of 5m0s.
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
