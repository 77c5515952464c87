//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// policies runs scaling policies on published jobs and on traces. Everything is computed, so the results are the same
// on every machine.
func (b *bench) policies(context.Context) ([]fmt.Stringer, error) {
	generated := generatedLoads()
	var recorded []load
	if b.trace != "" {
		var err error
		if recorded, err = readLoads(b.trace); err != nil {
			return nil, err
		}
	}
	loads := slices.Concat(generated, recorded)
	b.say("policies: runs of the published jobs")
	var sections []fmt.Stringer
	for _, job := range publishedJobs {
		more, err := job.sections()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", job.name, err)
		}
		sections = append(sections, more...)
	}
	sections = append(sections, jobNotes...)
	sections = append(sections, note(""), note("Cost against time, over all settings:"), note(""), jobCurvesTable())
	sections = append(sections, jobCurveNotes...)

	for _, condition := range conditions {
		b.say("policies: traces, %s", condition.name)
		t, err := tracesTable(loads, condition.of)
		if err != nil {
			return nil, err
		}
		sections = append(sections, note(""), note("Traces, "+condition.name+":"), note(""), t)
	}
	sections = append(sections, traceNotes...)

	b.say("policies: risk, and the best targets")
	t, err := risksTable(loads)
	if err != nil {
		return nil, err
	}
	sections = append(sections, note(""), note("Risk, beside the best target in hindsight:"), note(""), t)
	sections = append(sections, riskNotes...)

	charts := map[string]autoscale.Chart{"jobs": jobChart()}
	for _, set := range []struct {
		name  string
		loads []load
	}{{"generated", generated}, {"recorded", recorded}} {
		if len(set.loads) == 0 {
			continue
		}
		b.say("policies: curves of %s loads", set.name)
		f, err := newField(set.name+" loads", set.loads)
		if err != nil {
			return nil, err
		}
		sections = append(sections, f.sections()...)
		charts[set.name] = f.chart()
	}
	return append(sections, curveNotes...), b.drawCurves(charts)
}

// drawCurves writes the pictures of curves to a folder, by default a new one.
func (b *bench) drawCurves(charts map[string]autoscale.Chart) error {
	folder := b.curves
	if folder == "" {
		var err error
		if folder, err = os.MkdirTemp("", "trainyard-curves-"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := writeCharts(folder, charts); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		b.say("policies: drawn in %s", filepath.Join(folder, name+".svg"))
	}
	return nil
}

// readLoads reads a user's load, or all loads in a folder, sorted by name.
func readLoads(path string) ([]load, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		l, err := readLoad(path)
		return []load{l}, err
	}
	files, err := filepath.Glob(filepath.Join(path, "*.csv"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there is no file *.csv in it", path)
	}
	var loads []load
	for _, file := range files {
		l, err := readLoad(file)
		if err != nil {
			return nil, err
		}
		l.name = strings.TrimSuffix(filepath.Base(file), ".csv")
		loads = append(loads, l)
	}
	return loads, nil
}

// readLoad reads a user's load. Members carry a twentieth of its peak, as with the generated loads.
func readLoad(path string) (load, error) {
	file, err := os.Open(path)
	if err != nil {
		return load{}, err
	}
	defer file.Close()
	trace, err := autoscale.ReadCSV(file)
	if err != nil {
		return load{}, fmt.Errorf("%s: %w", path, err)
	}
	capacity := 0.0
	for _, value := range trace.Load {
		capacity = max(capacity, value/membersAtPeak)
	}
	if capacity == 0 {
		return load{}, fmt.Errorf("%s: there is no load at any time", path)
	}
	seasonal := time.Duration(len(trace.Load))*trace.Step > 2*day
	return load{name: "the file", trace: trace, capacity: capacity, seasonal: seasonal}, nil
}

// spec returns a policy for simulations with one metric and the default behaviour.
func spec(least, most, initial int, name string, metric domain.ScalingMetric) domain.AutoscalingPolicy {
	return domain.AutoscalingPolicy{
		Cluster: "bench", Group: "job", Role: "worker", Min: least, Max: most, Initial: &initial,
		Metrics: map[string]domain.ScalingMetric{name: metric},
	}
}

// lasting returns a duration for a policy.
func lasting(d time.Duration) *domain.Duration { return new(domain.Duration(d)) }

// unlimited are rates that don't limit anything. Without rates, scaling out has those of Kubernetes.
var unlimited = []domain.ScalingRate{{Count: domain.MaxReplicas, Period: domain.Duration(time.Second)}}
