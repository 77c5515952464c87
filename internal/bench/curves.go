//go:build linux

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// contender is an algorithm with values of its main setting, from the most members to the fewest.
type contender struct {
	name, setting string // setting formats a value
	// colour and dashes are the style of its curve; without a colour it appears only in tables.
	colour, dashes string
	values         []float64
	// policy returns the algorithm's policy for members of this capacity; nil for constant counts.
	policy func(capacity, value float64) domain.AutoscalingPolicy
}

// Colours that are visible on light and dark backgrounds. Similar algorithms share one.
const greyCurve, blueCurve, greenCurve, orangeCurve, violetCurve = "#767676", "#0072b2", "#009e73", "#d55e00", "#a35cc4"

// contenders are the algorithms that need only a load.
var contenders = []contender{
	{"constant count", "%g members", greyCurve, "6 3", []float64{40, 35, 30, 27, 25, 22, 20, 18, 16, 14, 12, 10}, nil},
	{"target, of the load", "%g %%", blueCurve, "", []float64{30, 40, 50, 60, 70, 80, 90, 100}, loadTarget},
	{"the same with a forecast", "%g %%", blueCurve, "2 3", []float64{30, 40, 50, 60, 70, 80, 90, 100},
		func(capacity, percent float64) domain.AutoscalingPolicy {
			return foreseeing(loadTarget(capacity, percent), nil)
		}},
	{"target, of the utilisation", "%g %%", blueCurve, "8 4", []float64{30, 40, 50, 60, 70, 80, 90},
		func(_, percent float64) domain.AutoscalingPolicy {
			return utilisationTarget(percent)
		}},
	{"risk, of the load", "%g %%", greenCurve, "", []float64{0.5, 1, 2, 5, 10}, loadRisk},
	{"risk, of the utilisation", "%g %%", greenCurve, "8 4", []float64{0.5, 1, 2, 5, 10},
		func(_, percent float64) domain.AutoscalingPolicy {
			return utilisationRisk(percent)
		}},
	{"heat", "target %g %%", orangeCurve, "", []float64{20, 30, 40, 50, 60, 70, 80},
		func(_, percent float64) domain.AutoscalingPolicy {
			return heatAround(percent)
		}},
	{"threshold", "upper %g %%", violetCurve, "", []float64{30, 40, 50, 60, 70, 80, 90},
		func(_, upper float64) domain.AutoscalingPolicy {
			return thresholdAt(upper)
		}},
	{"queue", "%g s of work", "", "", []float64{5, 10, 20, 30, 60, 120, 300}, queueOf},
}

// curve is a contender's results on a load, by value.
type curve struct {
	contender
	points []fate
}

// curves returns the curves of all contenders.
func (t trial) curves() ([]curve, error) {
	var all []curve
	for _, c := range contenders {
		made := curve{contender: c}
		for _, value := range c.values {
			point := t.constant(int(value))
			if c.policy != nil {
				var err error
				if point, err = t.run(c.policy(t.capacity, value)); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", t.load.name, c.name, err)
				}
			}
			point.setting = value
			made.points = append(made.points, point)
		}
		all = append(all, made)
	}
	return all, nil
}

// constant returns the result of a constant count.
func (t trial) constant(members int) fate {
	under := 0
	for _, value := range t.load.trace.Load {
		if value > float64(members)*t.capacity {
			under++
		}
	}
	values := len(t.load.trace.Load)
	return fate{
		percent:     100 * float64(under) / float64(values),
		memberHours: float64(members) * t.load.trace.Step.Hours() * float64(values),
	}
}

// needed returns the member-hours of the members that the load needs at each moment, if they started at once and there
// were no others.
func (t trial) needed() float64 {
	sum := 0.0
	for _, value := range t.load.trace.Load {
		sum += max(math.Ceil(value/t.capacity), leastMembers)
	}
	return sum * t.load.trace.Step.Hours()
}

// days is the load's length in days.
func (t trial) days() float64 {
	return float64(len(t.load.trace.Load)) * t.load.trace.Step.Hours() / 24
}

// unbeaten reports whether no point of any curve is at least as good in both member-hours and time with too few
// members, and better in one.
func (f fate) unbeaten(all []curve) bool {
	return !slices.ContainsFunc(all, func(c curve) bool {
		return slices.ContainsFunc(c.points, func(other fate) bool {
			return other.percent <= f.percent && other.memberHours <= f.memberHours &&
				(other.percent < f.percent || other.memberHours < f.memberHours)
		})
	})
}

// field is a set of loads with the contenders' results.
type field struct {
	name   string
	trials []trial
	curves [][]curve // in the order of the loads
}

// newField runs the contenders on loads.
func newField(name string, loads []load) (field, error) {
	f := field{name: name}
	for _, l := range loads {
		t := newTrial(l)
		curves, err := t.curves()
		if err != nil {
			return f, err
		}
		f.trials, f.curves = append(f.trials, t), append(f.curves, curves)
	}
	return f, nil
}

// pointsTable has the points of all curves.
func (f field) pointsTable() *table {
	t := &table{head: []string{
		"load, algorithm and setting", "too few for", "member-hours", "of those needed", "changes", "unbeaten",
	}}
	for i, trial := range f.trials {
		t.add(trial.load.name, "", count(int(math.Round(trial.needed()))), "", "", "")
		for _, c := range f.curves[i] {
			for _, p := range c.points {
				mark := ""
				if p.unbeaten(f.curves[i]) {
					mark = "yes"
				}
				t.add(fmt.Sprintf("  %s, "+c.setting, c.name, p.setting), fmt.Sprintf("%.2f %%", p.percent),
					count(int(math.Round(p.memberHours))),
					times(p.memberHours/trial.needed()), count(p.changes), mark)
			}
		}
	}
	return t
}

// settingsTable shows the results of each setting over all loads.
func (f field) settingsTable() *table {
	t := &table{head: []string{
		"one setting for all loads", "too few for: median", "least", "most", "member-hours, of those needed",
		"changes a day",
	}}
	for i, c := range contenders {
		for j, value := range c.values {
			var shares, hours, changes []float64
			for k, trial := range f.trials {
				p := f.curves[k][i].points[j]
				shares, hours = append(shares, p.percent), append(hours, p.memberHours/trial.needed())
				changes = append(changes, float64(p.changes)/trial.days())
			}
			slices.Sort(shares)
			t.add(fmt.Sprintf("%s, "+c.setting, c.name, value), fmt.Sprintf("%.2f %%", median(shares)),
				fmt.Sprintf("%.2f %%", shares[0]),
				fmt.Sprintf("%.2f %%", shares[len(shares)-1]), times(mean(hours)),
				fmt.Sprintf("%.0f", mean(changes)))
		}
	}
	return t
}

// hindsightTable shows the mean cost at which each algorithm has too few members for no more than a share of the time,
// with the cheapest setting chosen on each load in hindsight. On a load where no setting does, the cheapest constant
// count that does takes its place.
func (f field) hindsightTable() *table {
	t := &table{head: []string{"the cheapest setting on each load"}}
	for _, percent := range riskPercents {
		t.head = append(t.head, fmt.Sprintf("for %g %%", percent), "on loads")
	}
	for i, c := range contenders {
		row := []string{c.name}
		for _, percent := range riskPercents {
			var hours []float64
			held := 0
			for k, trial := range f.trials {
				best, found := asGood(f.curves[k][i].points, shareBar*percent)
				if found {
					held++
				} else if best, found = asGood(f.curves[k][0].points, shareBar*percent); !found {
					continue
				}
				hours = append(hours, best.memberHours/trial.needed())
			}
			cost := "none"
			if held > 0 {
				cost = times(mean(hours))
			}
			row = append(row, cost, fmt.Sprintf("%d of %d", held, len(f.trials)))
		}
		t.add(row...)
	}
	return t
}

// sections are the field's tables.
func (f field) sections() []fmt.Stringer {
	return []fmt.Stringer{
		note(""), note("Cost against time with too few members, " + f.name + ":"), note(""), f.pointsTable(), note(""),
		f.settingsTable(), note(""), f.hindsightTable(),
	}
}

// chart draws the field's curves.
func (f field) chart() autoscale.Chart {
	chart := autoscale.Chart{
		Title: "Cost against time with too few members, " + f.name, X: "time with too few members (%)",
		Y: "member-hours", Ticks: []float64{0, 0.5, 1, 2, 5, 10, 20},
	}
	for i, trial := range f.trials {
		panel := autoscale.Panel{Title: trial.load.name, Top: costliest * trial.needed()}
		for _, c := range f.curves[i] {
			if c.colour == "" {
				continue
			}
			line := autoscale.Curve{Name: c.name, Colour: c.colour, Dashes: c.dashes}
			for _, p := range c.points {
				line.Points = append(line.Points, autoscale.ChartPoint{X: p.percent, Y: p.memberHours})
			}
			panel.Curves = append(panel.Curves, line)
		}
		chart.Panels = append(chart.Panels, panel)
	}
	return chart
}

// costliest limits a panel's height, as a multiple of the needed member-hours: nobody would pay more.
const costliest = 3

// curveNotes explain the curves.
var curveNotes = []fmt.Stringer{
	note(""),
	note(fmt.Sprintf("A member carries a twentieth of what the load is above for %g %% of the time, and takes a "+
		"minute to start, or as long as a value of the trace", 100*busiest)),
	note("stands for where that is longer. Those needed carry the load at each moment, without any start or reserve. " +
		"A point is unbeaten if no other"),
	note("one has as few member-hours for as little time, and less of one of them. Targets are of what a member " +
		"carries, and the forecast is as long as a"),
	note("start. The band of heat is from 0.4 to 1.2 × its target, and that of threshold from a third of its upper " +
		"end, as in the tables above. Both count"),
	note(fmt.Sprintf("decisions, and have one every %.0f s; the others have one a value. Queue has a member for so "+
		"many seconds of a member's work that wait: it is for",
		domain.DefaultScalingInterval.Seconds())),
	note("work that may wait, has members only once some does, and is not in the pictures. The cheapest settings are " +
		"of those in the table, and good"),
	note(fmt.Sprintf("for a share if there are too few members for no more than %g × as much. Nobody who has to "+
		"choose a setting knows it before. Where none is good,",
		shareBar)),
	note("the cheapest constant count counts."),
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// median returns the median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
