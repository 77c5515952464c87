package prometheus

import (
	"slices"
	"testing"
	"time"
)

func TestStatisticsOf(t *testing.T) {
	const want = `label_replace((node_load1
), "trainyard_statistic", "last", "", "") or ` +
		`label_replace(max_over_time((node_load1
)[90000ms:1000ms]), "trainyard_statistic", "max", "", "") or ` +
		`label_replace(avg_over_time((node_load1
)[90000ms:1000ms]), "trainyard_statistic", "mean", "", "") or ` +
		`label_replace(quantile_over_time(0.95, (node_load1
)[90000ms:1000ms]), "trainyard_statistic", "p95", "", "")`
	if got := statisticsOf("node_load1", 90*time.Second, time.Second); got != want {
		t.Errorf("asks\n%s\nwant\n%s", got, want)
	}
}

func TestStepOf(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, time.Minute: time.Second, 10 * time.Minute: 10 * time.Second,
		15 * time.Minute: 15 * time.Second, 24 * time.Hour: 15 * time.Second,
	} {
		if got := stepOf(window); got != want {
			t.Errorf("the step of %s is %s, want %s", window, got, want)
		}
	}
}

// Prometheus evaluates subqueries at multiples of the step since 1970, even for steps that don't divide a day.
func TestLastStep(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 13, 500_000_000, time.UTC)
	for seconds := int64(1); seconds <= 15; seconds++ {
		at := lastStep(now, time.Duration(seconds)*time.Second)
		if at.Unix()%seconds != 0 || at.Nanosecond() != 0 || at.After(now) ||
			now.Sub(at) >= time.Duration(seconds)*time.Second {
			t.Errorf("by steps of %d s the last is %s, %d s since 1970", seconds, at, at.Unix())
		}
	}
}

// Each quantity has a distinct name, whose prefix says what it is about.
func TestQuantities(t *testing.T) {
	all := Quantities()
	if len(all) != len(once)+len(overWindow) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("%q are not %d names", all, len(once)+len(overWindow))
	}
	for _, quantity := range all {
		if (Query(quantity) == "") != (quantity == memberGPUMemory) {
			t.Errorf("the query of %s is %q", quantity, Query(quantity))
		}
	}
}
