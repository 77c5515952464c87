//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// The largest counts in the curves.
const (
	mostPSWorkers = 6
	mostPS        = 3
	mostPSHosts   = 3
)

// What B. Krasuski's paper says about the same measurements: it has figures, but no tables for them.
var (
	publishedWorkers = []string{
		"", "falls", "falls", "falls", "falls to 4–5 (local)", "to 6 (cloud), then flat or worse",
	}
	publishedPS    = []string{"", "a little less, never more", "a little less, never more"}
	publishedHosts = []string{"", "less: hosts set the limit", "less: hosts set the limit"}
)

// psCurve is the time of a training as a function of the number of something.
type psCurve struct {
	title, what string
	points      []formation
	published   []string
}

// psCurves are the paper's curves.
func psCurves() []psCurve {
	workers := psCurve{title: "Workers, with 2 parameter servers", what: "workers", published: publishedWorkers}
	for n := range mostPSWorkers {
		workers.points = append(workers.points, formation{workers: n + 1, ps: 2, cpus: workerCPUs, batch: psBatch})
	}
	hosts := psCurve{
		title:     fmt.Sprintf("Bare hosts of %g processors, with 4 workers and 2 parameter servers", hostCPUs),
		what:      "hosts",
		published: publishedHosts,
	}
	for n := range mostPSHosts {
		f := formation{workers: 4, ps: 2, hosts: n + 1, cpus: workerCPUs, batch: psBatch}
		hosts.points = append(hosts.points, f)
	}
	return []psCurve{workers, psCurveOf(smallBatch), psCurveOf(psBatch), hosts}
}

// psCurveOf is the curve of parameter servers for this many examples per step.
func psCurveOf(batch int) psCurve {
	c := psCurve{
		title: fmt.Sprintf("Parameter servers, with 4 workers of %g processors and %d examples per step", leanCPUs,
			batch),
		what:      "parameter servers",
		published: publishedPS,
	}
	for n := range mostPS {
		c.points = append(c.points, formation{workers: 4, ps: n + 1, cpus: leanCPUs, batch: batch})
	}
	return c
}

// formations are those of all curves, without duplicates.
func (p *psWorkerBench) formations() []formation {
	var all []formation
	for _, c := range psCurves() {
		for _, f := range c.points {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// tables are the curves and the results of the policy.
func (p *psWorkerBench) tables() []fmt.Stringer {
	how := fmt.Sprintf("Members are capped at %g processors a worker and %g a parameter server, and a step has %d\n  "+
		"examples, if the title gives no other number. Each training is measured for %s from the first step of its "+
		"last worker on. Ratios are within a run, of which there are %d: median (least – most).\n",
		workerCPUs, psCPUs, psBatch, p.training, p.runs)
	sections := []fmt.Stringer{note(how)}
	for _, c := range psCurves() {
		head := []string{c.what, "s for 1,000 steps", "ratio to the first", "published"}
		m := &markdown{title: c.title, table: table{head: head}}
		for i, f := range c.points {
			m.add(count(i+1), spreadOf(p.times(f), "%.1f"), spreadOf(p.ratios(f, c.points[0]), "%.2f"), c.published[i])
		}
		sections = append(sections, m)
	}
	return append(sections, p.policyTable()...)
}

// times are the seconds per thousand steps of a formation, by run.
func (p *psWorkerBench) times(f formation) []float64 {
	var times []float64
	for _, rate := range p.rates[f] {
		times = append(times, 1000/rate)
	}
	return times
}

// ratios are the ratios of a formation's times to another's, by run.
func (p *psWorkerBench) ratios(f, first formation) []float64 {
	var ratios []float64
	for run, rate := range p.rates[f] {
		ratios = append(ratios, p.rates[first][run]/rate)
	}
	return ratios
}

// policyTable shows where the policy stopped and the knee measured in the same run, and the bars.
func (p *psWorkerBench) policyTable() []fmt.Stringer {
	m := &markdown{
		title: fmt.Sprintf("marginal_gain, from 1 worker on, with a threshold of %g", psThreshold),
		table: table{head: []string{
			"run", "counts", "stays with", "measured knee", "found in", "parameter servers ended", "next plan",
		}},
	}
	near, ended, empty, ps := true, true, true, true
	for run, found := range p.found {
		knee := kneeOf(p.run(run), psThreshold)
		counts := strings.ReplaceAll(strings.Trim(fmt.Sprint(found.counts), "[]"), " ", " → ")
		m.add(count(run+1), counts, count(found.last()), count(knee), fmt.Sprintf("%.0f s", found.took.Seconds()),
			yes(found.ended, "yes", "no"), yes(found.unchanged, "empty", "not empty"))
		near = near && max(found.last()-knee, knee-found.last()) <= 1
		ended, empty = ended && found.ended, empty && found.unchanged
	}
	byWorkers, byPS := psCurves()[0].points, psCurveOf(smallBatch).points
	for _, f := range byPS[1:] {
		ps = ps && middle(p.ratios(f, byPS[0])) <= noWorse
	}
	knee := kneeOf(p.medians(), psThreshold)
	falls := knee > 1 && middle(p.ratios(byWorkers[knee-1], byWorkers[0])) < 1
	return []fmt.Stringer{
		m,
		note("Bars: time falls to a knee: " + verdict(falls) +
			fmt.Sprintf("; with %d examples per step, more parameter servers take no more than %.0f %% longer: ",
				smallBatch, 100*(noWorse-1)) + verdict(ps) +
			"; the policy stops within one worker of the knee: " + verdict(near) +
			";\n  completion ends the parameter servers: " + verdict(ended) +
			"; the next plan is empty: " + verdict(empty) + "."),
	}
}

// noWorse is the ratio up to which a time counts as no worse, given the noise of the measurements.
const noWorse = 1.05

// run returns the rates of 1, 2, … workers in a run; medians returns the medians over all runs.
func (p *psWorkerBench) run(run int) (rates []float64) {
	for _, f := range psCurves()[0].points {
		rates = append(rates, p.rates[f][run])
	}
	return rates
}

func (p *psWorkerBench) medians() (rates []float64) {
	for _, f := range psCurves()[0].points {
		rates = append(rates, middle(p.rates[f]))
	}
	return rates
}

// middle returns the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spreadOf formats values as "median (least – most)", and a single one as it is.
func spreadOf(values []float64, format string) string {
	if len(values) == 1 {
		return fmt.Sprintf(format, values[0])
	}
	return fmt.Sprintf(format+" ("+format+" – "+format+")", middle(values), slices.Min(values), slices.Max(values))
}

// yes returns one word or the other.
func yes(is bool, word, other string) string {
	if is {
		return word
	}
	return other
}
