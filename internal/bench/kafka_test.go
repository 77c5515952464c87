//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestKafkaReport(t *testing.T) {
	r, err := parseKafkaReport([]byte(`{"acknowledged": 30, "lost": 0, "seconds": [
  {"wanted": 10, "acknowledged": 10, "p99_ms": 500}, {"wanted": 11, "acknowledged": 10, "p99_ms": 5},
  {"wanted": 12, "acknowledged": 10, "p99_ms": 5}, {"wanted": 13, "acknowledged": 10, "p99_ms": 5},
  {"wanted": 14, "acknowledged": 10, "p99_ms": 5},
  {"wanted": 15, "acknowledged": 10, "p99_ms": 501}, {"wanted": 16, "acknowledged": 0, "p99_ms": 0},
  {"wanted": 0, "acknowledged": 0, "p99_ms": 0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	o := kafkaOutcome{seconds: r.Seconds}
	if o.late() != 2 {
		t.Errorf("%d seconds are late, want 2", o.late())
	}
	for _, text := range []string{`{"acknowledged": 0, "seconds": []}`, "killed"} {
		if _, err := parseKafkaReport([]byte(text)); err == nil {
			t.Errorf("%s is a report", text)
		}
	}
}

// TestMost checks that brokers take what they took for kafkaSettled seconds, and not what they took for fewer.
func TestMost(t *testing.T) {
	var o kafkaOutcome
	for i := range 3 * kafkaSettled {
		second := kafkaSecond{Wanted: float64(10 + i), Acknowledged: 10, P99: 5}
		if i == 2*kafkaSettled+3 {
			second.P99 = kafkaBound + 1
		}
		o.seconds = append(o.seconds, second)
	}
	if want := float64(10 + kafkaSettled); o.most() != want {
		t.Errorf("they take %g records a second, want %g", o.most(), want)
	}
}

// Rules have the same settings, and are stable for as long, on brokers as in the model.
func TestKafkaRules(t *testing.T) {
	l := kafkaLesson(1000, time.Hour)
	if got, want := len(l.problem.Trace.Load), int(kafkaDays*time.Hour/kafkaStep); got != want {
		t.Errorf("the trace has %d values, want %d", got, want)
	}
	for i, want := range []string{
		"target = { value = 700 }", "heat = { lower = 21, upper = 63, target = 52.5, recurrence = 3 }",
		"risk = { percent = 70, capacity = 1000 }",
	} {
		policy := learnedRules[i].policy(l.problem, 70, time.Minute)
		policy.Interval = lasting(15 * time.Second)
		rule := pupil{name: "a rule", policy: policy}.onBrokers()
		if !strings.Contains(rule.attributes, want) ||
			!strings.Contains(rule.attributes, `interval             = "15s"`) ||
			!strings.Contains(rule.attributes, `"1m0s"`) {
			t.Errorf("%q, the interval or the minute is not in\n%s", want, rule.attributes)
		}
	}
	model := pupil{name: "dqn", policy: l.problem.Policy("{}")}.onBrokers()
	if model.model != "{}" ||
		!strings.Contains(model.attributes, `learned = { model = file("model.json"), capacity = 1000 }`) {
		t.Errorf("the model is %q, in\n%s", model.model, model.attributes)
	}
}

func TestKafkaTables(t *testing.T) {
	rules := []kafkaRule{
		staticBrokers(6), pupil{name: "target", setting: "70 %", policy: domain.AutoscalingPolicy{}}.onBrokers(),
	}
	days := []kafkaOutcome{
		{brokers: 48 * time.Minute},
		{brokers: 36 * time.Minute, moved: 3 << 20, changes: 4, seconds: []kafkaSecond{{Wanted: 1}}},
	}
	text := kafkaTables(1000, time.Hour, rules, days)[0].String()
	for _, want := range []string{"static, 6", "48.0    100 %", "36.0     75 %", "3.0 MiB", "70 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
