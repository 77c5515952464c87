//go:build linux

package process_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// backtest returns the configuration of a backtest.
func backtest(policy, trace, model string) string {
	return fmt.Sprintf("data \"trainyard_policy_backtest\" \"it\" {\n policy = { %s }\n trace = { %s }\n model = { %s }\n}\n",
		policy, trace, model)
}

const (
	// hpa is a policy like the Horizontal Pod Autoscaler's.
	hpa = "min = 2, max = 20, initial = 4, interval = \"15s\", metrics = { cpu = { algorithm = { target = { value = 50 } } } }"
	// rush is a load that is 4 times as high for 20 minutes.
	rush = `load = { start = "2026-01-31T12:00:00Z", step = "1m", values = [for minute in range(80) : minute < 30 ? 100 : minute < 50 ? 400 : 150] }`
	// fifty is the capacity of each member.
	fifty = `capacity = 50`
)

// modelled is a policy that asks the model in a file, by the load itself.
func modelled(file string) string {
	return fmt.Sprintf(`min = 1, max = 20, initial = 4, interval = "15s", scale_in = { stabilisation_window = "0s" }, metrics = {
		rate  = { algorithm = { learned = { model = file(%q), per = "total", capacity = 50 } } }
	}`, file)
}

// A policy is backtested at plan time, without any cluster.
func TestAccPolicyBacktest(t *testing.T) {
	l := newLab(t)
	address := acctest.StartPrometheus(t)
	remembered := func(query string, length time.Duration) string {
		start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
		return fmt.Sprintf("prometheus = { url = %q, query = %q, start = %q, end = %q, step = \"1m\" }", address, query,
			start.Format(time.RFC3339), start.Add(length-time.Minute).Format(time.RFC3339))
	}
	known := func(name string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.trainyard_policy_backtest.it", tfjsonpath.New(name), check)
	}
	step := func(at string, from, to int64) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"at":   knownvalue.StringRegexp(regexp.MustCompile("^2026-01-31T" + at)),
			"from": knownvalue.Int64Exact(from), "to": knownvalue.Int64Exact(to),
			"reason": knownvalue.StringRegexp(regexp.MustCompile(".")),
		})
	}
	between := func(least, most float64) knownvalue.Check {
		return knownvalue.Float64Func(func(v float64) error {
			if v < least || v > most {
				return fmt.Errorf("%v is not between %v and %v", v, least, most)
			}
			return nil
		})
	}
	late := resource.TestStep{
		Config: l.config(`resource "terraform_data" "load" {
  input = [100, 400, 150]
}
`, backtest(hpa, `load = { start = "2026-01-31T12:00:00Z", step = "10m", values = terraform_data.load.output }`,
			fifty)),
		ConfigPlanChecks: acceptance.Planned(plancheck.ExpectResourceAction("data.trainyard_policy_backtest.it",
			plancheck.ResourceActionRead)),
		ConfigStateChecks: []statecheck.StateCheck{known("under_provisioned_percent", knownvalue.NotNull())},
	}
	l.test(
		// 4 members are at 50 % each before the rush; during it there are 16, reached in two steps of 100 %, and five
		// minutes after it 6.
		resource.TestStep{
			Config: l.config(backtest(hpa, rush, fifty)),
			ConfigStateChecks: []statecheck.StateCheck{
				known("steps", knownvalue.ListExact([]knownvalue.Check{
					step("12:00:00Z", 0, 4), step("12:30:", 4, 8), step("12:30:", 8, 16), step("12:5[45]:", 16, 6),
				})),
				known("steps_left_out", knownvalue.Int64Exact(0)),
				known("changes", knownvalue.Int64Exact(3)),
				known("changes_per_hour", between(2.2, 2.3)),
				known("reversals", knownvalue.Int64Exact(1)),
				known("member_hours", between(11, 12)),
				known("under_provisioned_seconds", between(0, 60)),
				known("under_provisioned_percent", between(0, 2)),
				known("svg", knownvalue.StringRegexp(
					regexp.MustCompile(`(?s)^<svg .*class="members".*class="capacity".*class="load".*</svg>\n$`),
				)),
			},
		},
		resource.TestStep{
			Config:            l.config(backtest(hpa, rush, fifty)),
			ConfigPlanChecks:  acceptance.Planned(plancheck.ExpectEmptyPlan()),
			ConfigStateChecks: []statecheck.StateCheck{known("changes", knownvalue.Int64Exact(3))},
		},
		// While members start there are too few of them.
		resource.TestStep{
			Config:            l.config(backtest(hpa, rush, fifty+`, startup = "3m"`)),
			ConfigStateChecks: []statecheck.StateCheck{known("under_provisioned_seconds", between(180, 1200))},
		},
		resource.TestStep{
			Config: l.config(backtest(hpa,
				`csv = "time,load\n2026-01-31T12:00:00Z,100\n2026-01-31T12:01:00Z,110\n"`, fifty)),
			ConfigStateChecks: []statecheck.StateCheck{
				known("steps", knownvalue.ListExact([]knownvalue.Check{step("12:00:00Z", 0, 4)})),
			},
		},
		resource.TestStep{
			Config: l.config(backtest(hpa,
				remembered("vector(100 + 300 * ((time() >= bool 1769862600) * (time() < bool 1769863800)))",
					80*time.Minute),
				fifty)),
			ConfigStateChecks: []statecheck.StateCheck{
				known("steps", knownvalue.ListExact([]knownvalue.Check{
					step("12:00:00Z", 0, 4), step("12:30:", 4, 8), step("12:30:", 8, 16), step("12:5[45]:", 16, 4),
				})),
			},
		},
		resource.TestStep{
			Config: l.config(backtest(hpa, remembered("vector(-1)", time.Hour), fifty)),
			ExpectError: acceptance.Says(
				"trace.prometheus: the load at 2026-01-31T12:00:00Z is -1; it must be 0 or more",
			),
		},
		resource.TestStep{
			Config:      l.config(backtest(hpa, remembered("vector(", time.Hour), fifty)),
			ExpectError: acceptance.Says("trace.prometheus: Prometheus rejected the query for the range, vector("),
		},
		// A trained model decides like any other algorithm, by the features that the simulation provides.
		resource.TestStep{
			Config: l.config(backtest(modelled(acceptance.BandModel(t, 0.28, 0.9)), rush,
				fifty+`, startup = "1m"`)),
			ConfigStateChecks: []statecheck.StateCheck{
				known("member_hours", between(8, 12)), known("changes", knownvalue.Int64Exact(10)),
				known("reversals", knownvalue.Int64Exact(1)),
			},
		},
		// What is known only after an apply is tested then.
		late,
	)
}

// Invalid backtests fail at plan time.
func TestAccPolicyBacktestInvalid(t *testing.T) {
	l := newLab(t)
	algorithm := func(algorithm string) string {
		return "min = 1, max = 9, metrics = { cpu = { algorithm = { " + algorithm + " } } }"
	}
	l.test(l.refused("", []invalid{
		{
			backtest(hpa, `csv = "time,load\n2026-01-31T12:00:00Z,100\n2026-01-31T12:01:00Z,many\n"`, fifty),
			[]string{"trace.csv", "line 3"},
		},
		{
			backtest(hpa, rush+", csv = \"\"", fifty),
			[]string{"trace: 2 traces are given; set exactly one of csv, load and prometheus"},
		},
		{backtest(hpa, "", fifty), []string{"trace: no trace is given"}},
		{backtest(hpa,
			`prometheus = { url = "localhost", query = "a", start = "2026-01-31T12:00:00Z", end = "2026-01-31T13:00:00Z", step = "1m" }`,
			fifty), []string{"trace.prometheus.url: invalid Prometheus URL"}},
		{backtest(hpa,
			`prometheus = { url = "http://localhost", query = "a", start = "2026-01-31T12:00:00Z", end = "2026-01-31T11:00:00Z", step = "1m" }`,
			fifty), []string{`trace.prometheus.end: "2026-01-31T11:00:00Z" is not after start`}},
		{
			backtest(hpa, `load = { start = "2026-01-31T12:00:00Z", step = "1m", values = [1, null] }`, fifty),
			[]string{"Null List Value"},
		},
		{backtest("min = 1, max = 9", rush, fifty), []string{"policy.metrics: "}},
		{
			backtest("min = 9, max = 1, metrics = { cpu = { algorithm = { target = { value = 50 } } } }", rush, fifty),
			[]string{"policy.max: ", "9"},
		},
		{
			backtest(hpa+", scale_in = { cooldown = \"1\" }", rush, fifty),
			[]string{`policy.scale_in.cooldown: "1" is not a valid duration`},
		},
		{backtest(algorithm("marginal_gain = { threshold = 0.1 }"), rush, fifty), []string{
			`policy.metrics["cpu"].algorithm.marginal_gain`,
			"target, heat, threshold, queue, risk and learned can be tested",
		}},
		{backtest(algorithm(`learned = { model = "{}" }`), rush, fifty), []string{
			`policy.metrics["cpu"].algorithm.learned.model: version is missing; this version of Trainyard supports version 1`,
		}},
		{
			backtest(algorithm("ratio = { role = \"ps\", per = 2 }"), rush, fifty),
			[]string{`policy.metrics["cpu"].algorithm.ratio`, `role "ps"`},
		},
		{
			backtest(algorithm("heat = { lower = 20, upper = 80, target = 50, recurrence = 0 }"), rush, fifty),
			[]string{"algorithm.heat.recurrence", "at least 1, got: 0"},
		},
		{
			backtest(algorithm("threshold = { upper = 80, samples = 0 }"), rush, fifty),
			[]string{"algorithm.threshold.samples", "at least 1, got: 0"},
		},
		{
			backtest(algorithm("threshold = { upper = 80, step_out = 0, step_out_percent = 10 }"), rush, fifty),
			[]string{"algorithm.threshold.step_out", "at least 1, got: 0"},
		},
		{
			backtest(algorithm("threshold = { lower = 20, step_in = 0 }"), rush, fifty),
			[]string{"algorithm.threshold.step_in", "at least 1, got: 0"},
		},
		{
			backtest(hpa+", scale_out = { max_step = 9223372036854775807 }", rush, fifty),
			[]string{"policy.scale_out.max_step: ", "must be between 1 and 10000"},
		},
		{backtest(hpa, rush, "capacity = 0"), []string{"model.capacity: capacity must be above 0, got 0"}},
		{
			backtest(hpa, rush, fifty+", startup = \"soon\""),
			[]string{`model.startup: "soon" is not a valid time for a member to start`},
		},
	})...)
}
