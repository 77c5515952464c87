//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// riskPercents are the shares of time with too few members that are asked for.
var riskPercents = []float64{1, 2, 5}

const (
	// busiest is the share of the time in which a load is more than membersAtPeak carry: one peak must not make all
	// else a matter of one member.
	busiest = 0.01
	// targetStep is the ratio of two of the targets that the best is chosen from, and coarseStep that of those that are
	// tried first.
	targetStep                = 1.01
	coarseStep                = targetStep * targetStep * targetStep
	leastTarget, mostTarget   = 2.0, 130.0 // in percent of what a member carries
	riskMembers, riskStartMin = domain.MaxReplicas, time.Minute
	// The bars: of the share that was asked for, of the member-hours of the best target on each load, and on the mean
	// of all.
	shareBar, hoursBar, meanBar = 1.25, 1.05, 0.85
)

// fate is what a policy made of a load.
type fate struct {
	percent     float64 // of the time, with too few members
	memberHours float64
	changes     int
	setting     float64 // of the algorithm
}

// trial is a load that algorithm risk is compared on.
type trial struct {
	load     load
	capacity float64
}

// newTrial has members carry a twentieth of what the load is seldom above.
func newTrial(l load) trial {
	sorted := slices.Sorted(slices.Values(l.trace.Load))
	return trial{l, max(sorted[int(float64(len(sorted))*(1-busiest))], sorted[len(sorted)-1]/riskMembers) / membersAtPeak}
}

// run has a policy decide, with no bound but that on counts, and with members that take a minute to start, or as long
// as a value stands for. It does once a value, or as often as the policy says.
func (t trial) run(policy domain.AutoscalingPolicy) (fate, error) {
	step, initial := t.load.trace.Step, membersAtPeak
	policy.Max, policy.Initial = riskMembers, &initial
	if policy.Interval == nil {
		policy.Interval = lasting(min(max(step, domain.DefaultScalingInterval), time.Hour))
	}
	startup := max(step, riskStartMin)
	for name, metric := range policy.Metrics {
		metric.StaleAfter = lasting(max(2*step, domain.DefaultStaleAfter))
		if metric.Forecast != nil {
			metric.Forecast = &domain.Forecast{Lead: domain.Duration(startup), Season: metric.Forecast.Season}
		}
		policy.Metrics[name] = metric
	}
	course, err := autoscale.Backtest(policy, t.load.trace, autoscale.Model{
		Capacity: t.capacity, Startup: startup, Signals: map[string]autoscale.Signal{"load": autoscale.SignalLoad, "queue": autoscale.SignalQueue},
	})
	length := time.Duration(len(t.load.trace.Load)) * step
	return fate{percent: 100 * course.Under.Seconds() / length.Seconds(), memberHours: course.MemberHours, changes: course.Changes}, err
}

// target is what a target makes of the load, in percent of what a member carries.
func (t trial) target(percent float64) (fate, error) {
	made, err := t.run(loadTarget(t.capacity, percent))
	made.setting = percent
	return made, err
}

// best is the best target of those that are as good, after those between the best of all that were tried and the next
// larger one.
func (t trial) best(all []fate, percent float64) (fate, bool, error) {
	best, found := asGood(all, percent)
	if !found {
		return best, false, nil
	}
	for finer := best.setting * targetStep; finer < best.setting*coarseStep*0.999; finer *= targetStep {
		made, err := t.target(finer)
		if err != nil {
			return best, false, err
		}
		all = append(all, made)
	}
	best, found = asGood(all, percent)
	return best, found, nil
}

// targets are what targets make of the load, from the largest one to the first that never has too few members.
func (t trial) targets() ([]fate, error) {
	var all []fate
	for percent := mostTarget; percent >= leastTarget; percent /= coarseStep {
		made, err := t.target(percent)
		if err != nil {
			return nil, err
		}
		if all = append(all, made); made.percent == 0 {
			break
		}
	}
	return all, nil
}

// asGood returns the fate with the fewest member-hours of those that had too few members for no more of the time.
func asGood(all []fate, percent float64) (fate, bool) {
	best, found := fate{}, false
	for _, made := range all {
		if made.percent <= percent && (!found || made.memberHours < best.memberHours) {
			best, found = made, true
		}
	}
	return best, found
}

// missed names the bars that are missed on a load.
func missed(asked float64, got, best fate) string {
	var bars []string
	if got.percent > shareBar*asked {
		bars = append(bars, "share")
	}
	if got.memberHours > hoursBar*best.memberHours {
		bars = append(bars, "hours")
	}
	if got.changes > best.changes {
		bars = append(bars, "changes")
	}
	return strings.Join(bars, ", ")
}

// risksTable compares algorithm risk with the best target, chosen in hindsight, of those that are as good.
func risksTable(loads []load) (*table, error) {
	t := &table{head: []string{"load and share asked for", "too few for", "member-hours", "best target", "its hours", "ratio", "changes", "its", "MISSED"}}
	sum, compared := 0.0, 0
	for _, l := range loads {
		trial := newTrial(l)
		all, err := trial.targets()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		t.add(l.name, "", "", "", "", "", "", "", "")
		for _, asked := range riskPercents {
			got, err := trial.run(loadRisk(trial.capacity, asked))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			row := []string{fmt.Sprintf("  %g %%", asked), fmt.Sprintf("%.2f %%", got.percent), count(int(got.memberHours + 0.5))}
			best, found, err := trial.best(all, got.percent)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			if !found {
				t.add(append(row, "none", "", "", count(got.changes), "", "")...)
				continue
			}
			ratio := got.memberHours / best.memberHours
			sum += ratio
			compared++
			t.add(append(row, fmt.Sprintf("%.0f %%", best.setting), count(int(best.memberHours+0.5)), fmt.Sprintf("%.2f", ratio),
				count(got.changes), count(best.changes), missed(asked, got, best))...)
		}
	}
	if compared > 0 {
		bar := ""
		if sum/float64(compared) > meanBar {
			bar = "mean"
		}
		t.add("mean of the ratios", "", "", "", "", fmt.Sprintf("%.2f", sum/float64(compared)), "", "", bar)
	}
	return t, nil
}

// riskNotes say what the table of risks is of.
var riskNotes = []fmt.Stringer{
	note(""),
	note(fmt.Sprintf("A member carries a twentieth of what the load is above for %g %% of the time, and takes a minute to start, or as long as a value of the", 100*busiest)),
	note("trace stands for where that is longer. Both algorithms follow the load itself, with the defaults, and decide once a value. The best target is the"),
	note(fmt.Sprintf("cheapest of those that had too few members for no more of the time, of targets %.0f %% apart: it is chosen in hindsight, on each load and for", 100*(targetStep-1))),
	note(fmt.Sprintf("each share, which nobody can do who has to choose. The bars: no more than %g × the share asked for, no more than %g × the member-hours, and", shareBar, hoursBar)),
	note(fmt.Sprintf("%g × on the mean, and no more changes.", meanBar)),
}
