package provider

import "github.com/trainyard/terraform-provider-trainyard/internal/domain"

// flattenScaling returns a policy as it is stored, in the spelling of prior.
func flattenScaling(p domain.AutoscalingPolicy, prior scalingModel) scalingModel {
	return scalingModel{
		Min: new(int64(p.Min)), Max: new(int64(p.Max)), Initial: integer[int64](p.Initial), Interval: keepDuration(p.Interval, prior.Interval),
		Schedules: flattenMap(p.Schedules, prior.Schedules, flattenSchedule),
		ScaleOut:  flattenBehaviour(p.ScaleOut, prior.ScaleOut), ScaleIn: flattenBehaviour(p.ScaleIn, prior.ScaleIn),
	}
}

func flattenSchedule(s domain.ScalingSchedule, prior scalingScheduleModel) scalingScheduleModel {
	return scalingScheduleModel{Start: s.Start, End: s.End, TimeZone: keepZero(s.TimeZone, prior.TimeZone), Count: int64(s.Count)}
}

func flattenBehaviour(b domain.ScalingBehaviour, prior *scalingBehaviourModel) *scalingBehaviourModel {
	before := value(prior)
	m := scalingBehaviourModel{
		Stabilisation: keepDuration(b.Stabilisation, before.Stabilisation), Tolerance: keepNumber(b.Tolerance, before.Tolerance), Select: keepZero(string(b.Select), before.Select),
		Cooldown: keepDuration(b.Cooldown, before.Cooldown), MaxStep: keepZero(int64(b.MaxStep), before.MaxStep),
	}
	for i, r := range b.Rates {
		was := at(before.Rates, i)
		m.Rates = append(m.Rates, scalingRateModel{Count: keepZero(int64(r.Count), was.Count), Percent: keepZeroNumber(r.Percent, was.Percent), Period: keepDuration(&r.Period, was.Period)})
	}
	m.Rates = keepList(m.Rates, before.Rates)
	return keepObject(m, prior)
}

// at returns an element of a list, the zero value where there is none.
func at[T any](list []T, i int) T {
	if i < len(list) {
		return list[i]
	}
	var zero T
	return zero
}

func flattenScalingMetric(metric domain.ScalingMetric, prior scalingMetricModel) scalingMetricModel {
	m := scalingMetricModel{
		Algorithm: flattenAlgorithm(metric.Algorithm, prior.Algorithm), StaleAfter: keepDuration(metric.StaleAfter, prior.StaleAfter),
		OnMissing: keepZero(string(metric.OnMissing), prior.OnMissing), MissingValue: keepNumber(metric.MissingValue, prior.MissingValue),
	}
	if f := metric.Forecast; f != nil {
		before := value(prior.Forecast)
		m.Forecast = &forecastModel{Season: keepDuration(f.Season, before.Season)}
		if f.Lead != 0 || !before.Lead.IsNull() {
			m.Forecast.Lead = keepDuration(&f.Lead, before.Lead)
		}
	}
	return m
}

func flattenAlgorithm(a domain.ScalingAlgorithm, prior scalingAlgorithmModel) scalingAlgorithmModel {
	var m scalingAlgorithmModel
	if a := a.Target; a != nil {
		before := value(prior.Target)
		m.Target = &targetModel{Value: keepNumber(&a.Value, before.Value), Per: keepZero(string(a.Per), before.Per)}
	}
	if a := a.Heat; a != nil {
		before := value(prior.Heat)
		m.Heat = &heatModel{
			Lower: keepNumber(&a.Lower, before.Lower), Upper: keepNumber(&a.Upper, before.Upper), Target: keepNumber(&a.Target, before.Target),
			Recurrence: keepZero(int64(a.Recurrence), before.Recurrence),
		}
	}
	if a := a.Threshold; a != nil {
		before := value(prior.Threshold)
		m.Threshold = &thresholdModel{
			Lower: keepNumber(a.Lower, before.Lower), Upper: keepNumber(a.Upper, before.Upper), Samples: keepZero(int64(a.Samples), before.Samples),
			StepOut: keepZero(int64(a.StepOut), before.StepOut), StepIn: keepZero(int64(a.StepIn), before.StepIn),
			StepOutPercent: keepZeroNumber(a.StepOutPercent, before.StepOutPercent), StepInPercent: keepZeroNumber(a.StepInPercent, before.StepInPercent),
		}
	}
	if a := a.Queue; a != nil {
		before := value(prior.Queue)
		m.Queue = &queueModel{PerMember: keepNumber(&a.PerMember, before.PerMember), CoolDown: keepDuration(a.CoolDown, before.CoolDown)}
	}
	if a := a.MarginalGain; a != nil {
		before := value(prior.MarginalGain)
		m.MarginalGain = &marginalGainModel{
			Threshold: keepNumber(&a.Threshold, before.Threshold), Settle: keepDuration(a.Settle, before.Settle), RetryAfter: keepDuration(a.RetryAfter, before.RetryAfter),
		}
	}
	if a := a.Ratio; a != nil {
		m.Ratio = &ratioModel{Role: a.Role, Per: keepNumber(&a.Per, value(prior.Ratio).Per)}
	}
	if a := a.External; a != nil {
		m.External = new(flattenHook(a.ScalingHook, value(prior.External)))
	}
	return m
}

func flattenHook(h domain.ScalingHook, prior hookModel) hookModel {
	return hookModel{URL: keepZero(h.URL, prior.URL), Command: keepList(h.Command, prior.Command), Timeout: keepDuration(h.Timeout, prior.Timeout)}
}
