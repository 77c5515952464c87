//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// jobContender is an algorithm with values of a setting, run on a published job.
type jobContender struct {
	name, setting  string
	colour, dashes string
	values         []float64
	policy         func(value float64) domain.AutoscalingPolicy
	runs           int // number of runs; the last one counts
}

// jobContenders are the algorithms that can be compared on a job, besides constant counts. All are limited to the range
// of published counts.
func (p publishedJob) jobContenders() []jobContender {
	most := slices.Max(slices.Collect(maps.Keys(p.seconds)))
	bounded := func(policy domain.AutoscalingPolicy) domain.AutoscalingPolicy {
		policy.Min, policy.Max, policy.Initial = 2, most, new(2)
		return policy
	}
	busy := []float64{5, 10, 15, 20, 30, 40}
	return []jobContender{
		{"marginal gain, settled", "threshold %g", greenCurve, "", []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.8},
			func(threshold float64) domain.AutoscalingPolicy {
				policy := ours(ourInitial, most)
				policy.Metrics["progress"].Algorithm.MarginalGain.Threshold = threshold
				return policy
			}, ourRuns},
		{"marginal gain, first run", "initial %g", greenCurve, "2 3", []float64{2, 5, 10, 15, 20, 30},
			func(initial float64) domain.AutoscalingPolicy {
				return ours(int(initial), most)
			}, 1},
		{"target, of the utilisation", "%g %%", blueCurve, "", busy, func(percent float64) domain.AutoscalingPolicy {
			return bounded(utilisationTarget(percent))
		}, 1},
		{
			"threshold", "upper %g %%", violetCurve, "", busy,
			func(upper float64) domain.AutoscalingPolicy { return bounded(thresholdAt(upper)) }, 1,
		},
		{"heat, as published", "target × %g", orangeCurve, "", []float64{0.5, 1, 2, 3, 4},
			func(factor float64) domain.AutoscalingPolicy {
				heat := p.heat
				heat.Lower, heat.Target, heat.Upper = heat.Lower*factor, heat.Target*factor, heat.Upper*factor
				scaled := p
				scaled.heat = heat
				return bounded(scaled.reference())
			}, 1},
	}
}

// jobPoint is the result of a setting on a job.
type jobPoint struct {
	setting              string
	seconds, memberHours float64
	changes              int
	// endless says why the job does not end, or is "".
	endless string
}

// jobCurve has the points of an algorithm, in the order of its values.
type jobCurve struct {
	line   autoscale.Curve
	points []jobPoint
}

// curves returns the curves of all algorithms, and of the constant counts that were published.
func (p publishedJob) curves() []jobCurve {
	static := jobCurve{line: autoscale.Curve{Name: "constant count (published)", Colour: greyCurve, Dashes: "6 3"}}
	for _, members := range slices.Sorted(maps.Keys(p.seconds)) {
		seconds := float64(p.seconds[members])
		static.points = append(static.points, jobPoint{
			setting: fmt.Sprintf("%d members", members), seconds: seconds,
			memberHours: seconds * float64(members) / 3600,
		})
	}
	all := []jobCurve{static}
	for _, c := range p.jobContenders() {
		made := jobCurve{line: autoscale.Curve{Name: c.name, Colour: c.colour, Dashes: c.dashes}}
		for _, value := range c.values {
			point := jobPoint{setting: fmt.Sprintf(c.setting, value)}
			if runs, err := autoscale.RunJobs(c.policy(value), p.model(), c.runs); err != nil {
				point.endless = err.Error()
			} else {
				last := runs[len(runs)-1]
				point.seconds, point.memberHours, point.changes = last.Took.Seconds(), last.MemberSeconds/3600,
					last.Changes()
			}
			made.points = append(made.points, point)
		}
		all = append(all, made)
	}
	for i := range all {
		for _, point := range all[i].points {
			if point.endless == "" {
				all[i].line.Points = append(all[i].line.Points,
					autoscale.ChartPoint{X: point.seconds, Y: point.memberHours})
			}
		}
	}
	return all
}

// unbeaten reports whether no point of any curve is at least as good in both time and member-hours, and better in one.
func (j jobPoint) unbeaten(all []jobCurve) bool {
	return !slices.ContainsFunc(all, func(c jobCurve) bool {
		return slices.ContainsFunc(c.line.Points, func(other autoscale.ChartPoint) bool {
			return other.X <= j.seconds && other.Y <= j.memberHours && (other.X < j.seconds || other.Y < j.memberHours)
		})
	})
}

// jobCurvesTable has the points of all curves of the jobs.
func jobCurvesTable() *table {
	t := &table{head: []string{"job, algorithm and setting", "seconds", "member-hours", "changes", "unbeaten"}}
	for _, job := range publishedJobs {
		t.add(job.name, "", "", "", "")
		all := job.curves()
		for _, c := range all {
			for _, point := range c.points {
				name := fmt.Sprintf("  %s, %s", c.line.Name, point.setting)
				if point.endless != "" {
					t.add(name, "does not end", "", "", "")
					continue
				}
				mark := ""
				if point.unbeaten(all) {
					mark = "yes"
				}
				t.add(name, fmt.Sprintf("%.0f", point.seconds), fmt.Sprintf("%.2f", point.memberHours),
					count(point.changes), mark)
			}
		}
	}
	return t
}

// jobChart draws the curves of the jobs.
func jobChart() autoscale.Chart {
	chart := autoscale.Chart{
		Title: "Cost against time, a training on Spark workers", X: "time of the training (s)", Y: "member-hours",
	}
	for _, job := range publishedJobs {
		panel := autoscale.Panel{Title: job.name}
		for _, c := range job.curves() {
			panel.Curves = append(panel.Curves, c.line)
		}
		chart.Panels = append(chart.Panels, panel)
	}
	return chart
}

// jobCurveNotes explain the jobs' curves.
var jobCurveNotes = []fmt.Stringer{
	note("A training has no time with too few members, but takes longer with them: its curves are of how long it " +
		"takes. Constant counts are published, all"),
	note("else is the model's, with counts from 2 to those published. Heat has the paper's band and target, times so " +
		"much. Marginal gain is shown in"),
	note(fmt.Sprintf(
		"its first run, by the count that it begins with, and in run %d, when it has settled, from %d members on.",
		ourRuns, ourInitial,
	)),
}
