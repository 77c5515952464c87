//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// drawn is a picture in the guide "Choosing an autoscaling policy": a policy's behaviour under a load.
type drawn struct {
	name   string
	trace  autoscale.Trace
	policy domain.AutoscalingPolicy
	model  autoscale.Model
}

// drawings are all the pictures.
func drawings() []drawn {
	shape := func(length time.Duration, base, peak float64) autoscale.Shape {
		return autoscale.Shape{
			Start: time.Date(2026, time.March, 2, 8, 0, 0, 0, time.UTC), Step: 15 * time.Second, Length: length,
			Base: base, Peak: peak, Noise: 0.03, Seed: seed,
		}
	}
	const capacity = 100
	policies := map[string]domain.AutoscalingPolicy{}
	for _, r := range rivals(capacity) {
		policies[r.name] = r.policy
	}
	model := func(startup time.Duration) autoscale.Model {
		return autoscale.Model{
			Capacity: capacity, Startup: startup,
			Signals: map[string]autoscale.Signal{"load": autoscale.SignalLoad, "queue": autoscale.SignalQueue},
		}
	}

	today := shape(day, 200, 1000)
	today.Start, today.Step = today.Start.Truncate(day), 2*time.Minute
	bursty := autoscale.Bursty(shape(6*time.Hour, 200, 1000), time.Hour, 20*time.Minute)

	crowd := autoscale.FlashCrowd(shape(150*time.Minute, 200, 1600), 30*time.Minute, 20*time.Minute, 15*time.Minute)
	const crowdStartup = 5 * time.Minute
	follows := domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Target: &domain.TargetAlgorithm{Value: 0.8 * capacity, Per: domain.TargetTotal},
	}}
	foresees := follows
	foresees.Forecast = &domain.Forecast{Lead: domain.Duration(crowdStartup)}

	jobs := autoscale.Bursty(shape(330*time.Minute, 0, 500), 90*time.Minute, 15*time.Minute)
	waits := domain.ScalingMetric{Algorithm: domain.ScalingAlgorithm{
		Queue: &domain.QueueAlgorithm{PerMember: 10_000, CoolDown: lasting(15 * time.Minute)},
	}}

	return []drawn{
		{"diurnal-target", autoscale.Diurnal(today), policies["target 50 %"], model(loadStartup)},
		{"bursty-target", bursty, policies["target 50 %"], model(loadStartup)},
		{"bursty-threshold", bursty, policies["threshold ±1 each 60 s"], model(loadStartup)},
		{"crowd-target", crowd, spec(leastMembers, mostMembers, 4, "load", follows), model(crowdStartup)},
		{"crowd-forecast", crowd, spec(leastMembers, mostMembers, 4, "load", foresees), model(crowdStartup)},
		{"queue", jobs, spec(0, 10, 0, "queue", waits), model(loadStartup)},
	}
}

// draw writes the pictures to a folder; "make generate" puts them beside the guide.
func draw(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, d := range drawings() {
		course, err := autoscale.Backtest(d.policy, d.trace, d.model)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, d.name+".svg"), []byte(course.SVG(d.trace, d.model)),
			0o644); err != nil {
			return err
		}
	}
	generated, err := newField("generated loads", generatedLoads())
	if err != nil {
		return err
	}
	return writeCharts(folder, map[string]autoscale.Chart{"curves": generated.chart(), "curves-jobs": jobChart()})
}

// writeCharts writes the pictures of curves to a folder.
func writeCharts(folder string, charts map[string]autoscale.Chart) error {
	for name, chart := range charts {
		if err := os.WriteFile(filepath.Join(folder, name+".svg"), []byte(chart.SVG()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
