package provider

import (
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
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

// expand returns the policy, without its metrics.
func (m scalingModel) expand(diags *diag.Diagnostics) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		Min: int(value(m.Min)), Max: int(value(m.Max)), Initial: integer[int](m.Initial), Interval: duration(m.Interval, diags),
		Schedules: convertMap(m.Schedules, scalingScheduleModel.expand),
		ScaleOut:  m.ScaleOut.expand(diags), ScaleIn: m.ScaleIn.expand(diags),
	}
}

func (m scalingScheduleModel) expand() domain.ScalingSchedule {
	return domain.ScalingSchedule{Start: m.Start, End: m.End, TimeZone: value(m.TimeZone), Count: int(m.Count)}
}

func (m *scalingBehaviourModel) expand(diags *diag.Diagnostics) domain.ScalingBehaviour {
	if m == nil {
		return domain.ScalingBehaviour{}
	}
	behaviour := domain.ScalingBehaviour{
		Stabilisation: duration(m.Stabilisation, diags), Tolerance: m.Tolerance.ValueFloat64Pointer(), Select: domain.RateSelect(value(m.Select)),
		Cooldown: duration(m.Cooldown, diags), MaxStep: int(value(m.MaxStep)),
	}
	for _, r := range m.Rates {
		behaviour.Rates = append(behaviour.Rates, domain.ScalingRate{Count: int(value(r.Count)), Percent: r.Percent.ValueFloat64(), Period: value(duration(r.Period, diags))})
	}
	return behaviour
}

func (m scalingMetricModel) expand(diags *diag.Diagnostics) domain.ScalingMetric {
	metric := domain.ScalingMetric{
		Algorithm: m.Algorithm.expand(diags), StaleAfter: duration(m.StaleAfter, diags),
		OnMissing: domain.OnMissing(value(m.OnMissing)), MissingValue: m.MissingValue.ValueFloat64Pointer(),
	}
	if f := m.Forecast; f != nil {
		metric.Forecast = &domain.Forecast{Lead: value(duration(f.Lead, diags)), Season: duration(f.Season, diags)}
	}
	return metric
}

func (m scalingAlgorithmModel) expand(diags *diag.Diagnostics) domain.ScalingAlgorithm {
	var algorithm domain.ScalingAlgorithm
	if a := m.Target; a != nil {
		algorithm.Target = &domain.TargetAlgorithm{Value: a.Value.ValueFloat64(), Per: domain.TargetPer(value(a.Per))}
	}
	if a := m.Heat; a != nil {
		algorithm.Heat = &domain.HeatAlgorithm{Lower: a.Lower.ValueFloat64(), Upper: a.Upper.ValueFloat64(), Target: a.Target.ValueFloat64(), Recurrence: int(value(a.Recurrence))}
	}
	if a := m.Threshold; a != nil {
		algorithm.Threshold = &domain.ThresholdAlgorithm{
			Lower: a.Lower.ValueFloat64Pointer(), Upper: a.Upper.ValueFloat64Pointer(), Samples: int(value(a.Samples)),
			StepOut: int(value(a.StepOut)), StepIn: int(value(a.StepIn)), StepOutPercent: a.StepOutPercent.ValueFloat64(), StepInPercent: a.StepInPercent.ValueFloat64(),
		}
	}
	if a := m.Queue; a != nil {
		algorithm.Queue = &domain.QueueAlgorithm{PerMember: a.PerMember.ValueFloat64(), CoolDown: duration(a.CoolDown, diags)}
	}
	if a := m.MarginalGain; a != nil {
		algorithm.MarginalGain = &domain.MarginalGainAlgorithm{Threshold: a.Threshold.ValueFloat64(), Settle: duration(a.Settle, diags), RetryAfter: duration(a.RetryAfter, diags)}
	}
	if a := m.Ratio; a != nil {
		algorithm.Ratio = &domain.RatioAlgorithm{Role: a.Role, Per: a.Per.ValueFloat64()}
	}
	if a := m.External; a != nil {
		algorithm.External = &domain.ExternalAlgorithm{ScalingHook: a.expand(diags)}
	}
	return algorithm
}

func (m hookModel) expand(diags *diag.Diagnostics) domain.ScalingHook {
	return domain.ScalingHook{URL: value(m.URL), Command: compact(m.Command), Timeout: duration(m.Timeout, diags)}
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
