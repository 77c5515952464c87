package provider

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// scalingModel is a policy but for whose it is, and for its metrics, which have more attributes in one place than in another.
type scalingModel struct {
	Min       *int64                          `tfsdk:"min"`
	Max       *int64                          `tfsdk:"max"`
	Initial   *int64                          `tfsdk:"initial"`
	Interval  types.String                    `tfsdk:"interval"`
	Schedules map[string]scalingScheduleModel `tfsdk:"schedules"`
	ScaleOut  *scalingBehaviourModel          `tfsdk:"scale_out"`
	ScaleIn   *scalingBehaviourModel          `tfsdk:"scale_in"`
}

type scalingMetricModel struct {
	Algorithm    scalingAlgorithmModel `tfsdk:"algorithm"`
	StaleAfter   types.String          `tfsdk:"stale_after"`
	OnMissing    *string               `tfsdk:"on_missing"`
	MissingValue types.Float64         `tfsdk:"missing_value"`
	Forecast     *forecastModel        `tfsdk:"forecast"`
}

type scalingAlgorithmModel struct {
	Target       *targetModel       `tfsdk:"target"`
	Heat         *heatModel         `tfsdk:"heat"`
	Threshold    *thresholdModel    `tfsdk:"threshold"`
	Queue        *queueModel        `tfsdk:"queue"`
	MarginalGain *marginalGainModel `tfsdk:"marginal_gain"`
	Ratio        *ratioModel        `tfsdk:"ratio"`
	External     *hookModel         `tfsdk:"external"`
}

type targetModel struct {
	Value types.Float64 `tfsdk:"value"`
	Per   *string       `tfsdk:"per"`
}

type heatModel struct {
	Lower      types.Float64 `tfsdk:"lower"`
	Upper      types.Float64 `tfsdk:"upper"`
	Target     types.Float64 `tfsdk:"target"`
	Recurrence *int64        `tfsdk:"recurrence"`
}

type thresholdModel struct {
	Lower          types.Float64 `tfsdk:"lower"`
	Upper          types.Float64 `tfsdk:"upper"`
	Samples        *int64        `tfsdk:"samples"`
	StepOut        *int64        `tfsdk:"step_out"`
	StepIn         *int64        `tfsdk:"step_in"`
	StepOutPercent types.Float64 `tfsdk:"step_out_percent"`
	StepInPercent  types.Float64 `tfsdk:"step_in_percent"`
}

type queueModel struct {
	PerMember types.Float64 `tfsdk:"per_member"`
	CoolDown  types.String  `tfsdk:"cool_down"`
}

type marginalGainModel struct {
	Threshold  types.Float64 `tfsdk:"threshold"`
	Settle     types.String  `tfsdk:"settle"`
	RetryAfter types.String  `tfsdk:"retry_after"`
}

type ratioModel struct {
	Role string        `tfsdk:"role"`
	Per  types.Float64 `tfsdk:"per"`
}

// hookModel is something of the user's that is asked or told.
type hookModel struct {
	URL     *string      `tfsdk:"url"`
	Command []string     `tfsdk:"command"`
	Timeout types.String `tfsdk:"timeout"`
}

type forecastModel struct {
	Lead   types.String `tfsdk:"lead"`
	Season types.String `tfsdk:"season"`
}

type scalingScheduleModel struct {
	Start    string  `tfsdk:"start"`
	End      string  `tfsdk:"end"`
	TimeZone *string `tfsdk:"time_zone"`
	Count    int64   `tfsdk:"count"`
}

type scalingBehaviourModel struct {
	Stabilisation types.String       `tfsdk:"stabilisation_window"`
	Tolerance     types.Float64      `tfsdk:"tolerance"`
	Rates         []scalingRateModel `tfsdk:"rates"`
	Select        *string            `tfsdk:"select"`
	Cooldown      types.String       `tfsdk:"cooldown"`
	MaxStep       *int64             `tfsdk:"max_step"`
}

type scalingRateModel struct {
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
