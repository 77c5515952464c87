package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// A policy's attributes have the names of the domain's fields, so that paths of problems lead to them.
func TestScalingAttributesAreThoseOfTheDomain(t *testing.T) {
	attributes := Schema(t.Context(), nil).Attributes
	for _, own := range []string{"id", "cluster", "timeouts"} {
		delete(attributes, own)
	}
	expectTags(t, "policy", reflect.TypeFor[domain.AutoscalingPolicy](), attributes, "cluster")
}

// expectTags fails unless attributes are the fields of a type by their JSON tags, with exceptions.
func expectTags(t *testing.T, at string, of reflect.Type, attributes map[string]schema.Attribute, except ...string) {
	t.Helper()
	var fields []string
	for _, field := range reflect.VisibleFields(of) {
		if field.Anonymous {
			continue // its own fields stand for it
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if slices.Contains(except, name) {
			continue
		}
		fields = append(fields, name)
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Map || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		switch a := attributes[name].(type) {
		case schema.SingleNestedAttribute:
			expectTags(t, at+"."+name, inner, a.Attributes)
		case schema.MapNestedAttribute:
			expectTags(t, at+"."+name, inner, a.NestedObject.Attributes)
		case schema.ListNestedAttribute:
			expectTags(t, at+"."+name, inner, a.NestedObject.Attributes)
		}
	}
	for name, attribute := range attributes {
		if text, ok := attribute.(schema.StringAttribute); ok &&
			slices.Contains(text.Validators, validator.String(isMisplaced{name})) {
			fields = append(fields, name) // always null
		}
	}
	slices.Sort(fields)
	if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(attributes))); diff != "" {
		t.Errorf("%s (-domain +schema):\n%s", at, diff)
	}
}

func TestExpandScaling(t *testing.T) {
	text := types.StringValue
	lasts := func(d time.Duration) *domain.Duration { return new(domain.Duration(d)) }
	algorithm := func(m ScalingAlgorithmModel) ScalingMetricModel { return ScalingMetricModel{Algorithm: &m} }
	metric := func(a domain.ScalingAlgorithm) domain.ScalingMetric { return domain.ScalingMetric{Algorithm: a} }
	for name, test := range map[string]struct {
		metric ScalingMetricModel
		want   domain.ScalingMetric
	}{
		"target": {
			algorithm(ScalingAlgorithmModel{Target: &TargetModel{providertest.Inexact(50), nil}}),
			metric(domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 50}}),
		},
		"target of total": {
			algorithm(ScalingAlgorithmModel{Target: &TargetModel{providertest.Inexact(50), new("total")}}),
			metric(domain.ScalingAlgorithm{Target: &domain.TargetAlgorithm{Value: 50, Per: domain.TargetTotal}}),
		},
		"heat": {
			algorithm(ScalingAlgorithmModel{Heat: &HeatModel{
				providertest.Inexact(20), providertest.Inexact(80), providertest.Inexact(50), new(int64(5)),
			}}),
			metric(domain.ScalingAlgorithm{
				Heat: &domain.HeatAlgorithm{Lower: 20, Upper: 80, Target: 50, Recurrence: 5},
			}),
		},
		"threshold": {
			algorithm(ScalingAlgorithmModel{Threshold: &ThresholdModel{
				Lower: providertest.Inexact(0), Upper: providertest.Inexact(80), Samples: new(int64(2)),
				StepOut: new(int64(3)), StepInPercent: providertest.Inexact(10),
			}}),
			metric(domain.ScalingAlgorithm{Threshold: &domain.ThresholdAlgorithm{
				Lower: new(0.0), Upper: new(80.0), Samples: 2, StepOut: 3, StepInPercent: 10,
			}}),
		},
		"queue": {
			algorithm(ScalingAlgorithmModel{Queue: &QueueModel{providertest.Inexact(100), text("90s")}}),
			metric(domain.ScalingAlgorithm{
				Queue: &domain.QueueAlgorithm{PerMember: 100, CoolDown: lasts(90 * time.Second)},
			}),
		},
		"marginal gain": {
			algorithm(ScalingAlgorithmModel{
				MarginalGain: &MarginalGainModel{providertest.Inexact(0.1), text("2m"), types.StringNull()},
			}),
			metric(domain.ScalingAlgorithm{
				MarginalGain: &domain.MarginalGainAlgorithm{Threshold: 0.1, Settle: lasts(2 * time.Minute)},
			}),
		},
		"risk": {
			algorithm(ScalingAlgorithmModel{
				Risk: &RiskModel{providertest.Inexact(1), providertest.Inexact(20), new("total")},
			}),
			metric(domain.ScalingAlgorithm{
				Risk: &domain.RiskAlgorithm{Percent: 1, Capacity: 20, Per: domain.TargetTotal},
			}),
		},
		"risk of utilisation": {
			algorithm(ScalingAlgorithmModel{Risk: &RiskModel{Percent: providertest.Inexact(0.5)}}),
			metric(domain.ScalingAlgorithm{Risk: &domain.RiskAlgorithm{Percent: 0.5}}),
		},
		"external": {
			algorithm(ScalingAlgorithmModel{External: &HookModel{new("http://agent.lab"), nil, text("2s")}}),
			metric(domain.ScalingAlgorithm{External: &domain.ExternalAlgorithm{
				ScalingHook: domain.ScalingHook{URL: "http://agent.lab", Timeout: lasts(2 * time.Second)},
			}}),
		},
		"a lead that is learnt": {
			ScalingMetricModel{Forecast: &ForecastModel{types.StringNull(), text("24h")}},
			domain.ScalingMetric{Forecast: &domain.Forecast{Season: lasts(24 * time.Hour)}},
		},
		"ratio": {
			algorithm(ScalingAlgorithmModel{Ratio: &RatioModel{"worker", providertest.Inexact(4)}}),
			metric(domain.ScalingAlgorithm{Ratio: &domain.RatioAlgorithm{Role: "worker", Per: 4}}),
		},
		"what is missing, and what is to come": {
			ScalingMetricModel{
				StaleAfter: text("30s"), OnMissing: new("value"), MissingValue: providertest.Inexact(0),
				Forecast: &ForecastModel{text("1m"), text("24h")},
			},
			domain.ScalingMetric{
				StaleAfter: lasts(30 * time.Second), OnMissing: domain.MissingAsValue, MissingValue: new(0.0),
				Forecast: &domain.Forecast{Lead: domain.Duration(time.Minute), Season: lasts(24 * time.Hour)},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			var got domain.ScalingMetric
			resourcekit.Expand(&got, test.metric, &diags)
			if diff := cmp.Diff(test.want, got); diff != "" || len(diags) > 0 {
				t.Errorf("%v (-want +got):\n%s", diags, diff)
			}
		})
	}

	var diags diag.Diagnostics
	var got domain.AutoscalingPolicy
	resourcekit.Expand(&got, ScalingModel{
		Min: new(int64(1)), Max: new(int64(9)), Initial: new(int64(0)), Interval: text("15s"),
		Schedules: map[string]ScalingScheduleModel{"day": {"0 8 * * *", "0 18 * * *", new("Europe/Warsaw"), 4}},
		ScaleOut: &ScalingBehaviourModel{
			Stabilisation: text("0s"), Tolerance: providertest.Inexact(0), Select: new("min"), Cooldown: text("1m"),
			MaxStep: new(int64(3)),
			Rates: []ScalingRateModel{
				{Count: new(int64(4)), Period: text("15s")}, {Percent: providertest.Inexact(100), Period: text("1m")},
			},
		},
	}, &diags)
	want := domain.AutoscalingPolicy{
		Min: 1, Max: 9, Initial: new(0), Interval: lasts(15 * time.Second),
		Schedules: map[string]domain.ScalingSchedule{
			"day": {Start: "0 8 * * *", End: "0 18 * * *", TimeZone: "Europe/Warsaw", Count: 4},
		},
		ScaleOut: domain.ScalingBehaviour{
			Stabilisation: lasts(0), Tolerance: new(0.0), Select: domain.SelectMin, Cooldown: lasts(time.Minute),
			MaxStep: 3,
			Rates: []domain.ScalingRate{
				{Count: 4, Period: domain.Duration(15 * time.Second)},
				{Percent: 100, Period: domain.Duration(time.Minute)},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(diags) > 0 {
		t.Errorf("%v (-want +got):\n%s", diags, diff)
	}
}

func TestWritten(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Second: "5s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h",
		24*time.Hour + 10*time.Minute: "24h10m",
	} {
		if got := written(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
