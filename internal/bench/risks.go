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

// riskPercents are the requested shares of time with too few members.
var riskPercents = []float64{1, 2, 5}

const (
	// busiest is the share of the time in which a load exceeds what membersAtPeak members carry, so that a single peak
	// doesn't reduce everything else to one member.
	busiest = 0.01
	// targetStep is the ratio between adjacent targets among which the best is chosen, coarseStep that of those tried
	// first.
	targetStep                = 1.01
	coarseStep                = targetStep * targetStep * targetStep
	leastTarget, mostTarget   = 2.0, 130.0 // in percent of a member's capacity
	riskMembers, riskStartMin = domain.MaxReplicas, time.Minute
	// The bars: relative to the requested share, to the best target's member-hours on each load, and to those on
	// average.
	shareBar, hoursBar, meanBar = 1.25, 1.05, 0.85
)

// fate is the result of a policy on a load.
type fate struct {
	percent     float64 // of the time, with too few members
	memberHours float64
	changes     int
	setting     float64 // of the algorithm
}

// trial is a load on which algorithm risk is compared.
type trial struct {
	load     load
	capacity float64
}

// newTrial chooses the capacity so that membersAtPeak members carry what the load seldom exceeds.
func newTrial(l load) trial {
	sorted := slices.Sorted(slices.Values(l.trace.Load))
	return trial{
		l, max(sorted[int(float64(len(sorted))*(1-busiest))], sorted[len(sorted)-1]/riskMembers) / membersAtPeak,
	}
}

// run runs a policy without bounds other than the maximum count. Members take a minute to start, or the trace's step if
// that is longer; decisions are as frequent as the policy says, by default one per value.
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
		Capacity: t.capacity, Startup: startup,
		Signals: map[string]autoscale.Signal{"load": autoscale.SignalLoad, "queue": autoscale.SignalQueue},
	})
	length := time.Duration(len(t.load.trace.Load)) * step
	return fate{
		percent: 100 * course.Under.Seconds() / length.Seconds(), memberHours: course.MemberHours,
		changes: course.Changes,
	}, err
}

// target returns the result of a target, in percent of a member's capacity.
func (t trial) target(percent float64) (fate, error) {
	made, err := t.run(loadTarget(t.capacity, percent))
	made.setting = percent
	return made, err
}

// best returns the best target that meets the share. It also tries targets between the best of those given and the next
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

// targets returns the results of targets, from the largest to the first that never has too few members.
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

// asGood returns the result with the fewest member-hours among those with too few members for no more than this share
// of the time.
func asGood(all []fate, percent float64) (fate, bool) {
	best, found := fate{}, false
	for _, made := range all {
		if made.percent <= percent && (!found || made.memberHours < best.memberHours) {
			best, found = made, true
		}
	}
	return best, found
}

// missed names the bars missed on a load.
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

// risksTable compares algorithm risk with the target that, in hindsight, meets the same share at the lowest cost.
func risksTable(loads []load) (*table, error) {
	t := &table{head: []string{
		"load and share asked for", "too few for", "member-hours", "best target", "its hours", "ratio", "changes",
		"its", "MISSED",
	}}
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
			row := []string{
				fmt.Sprintf("  %g %%", asked), fmt.Sprintf("%.2f %%", got.percent), count(int(got.memberHours + 0.5)),
			}
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
			t.add(append(row, fmt.Sprintf("%.0f %%", best.setting), count(int(best.memberHours+0.5)),
				fmt.Sprintf("%.2f", ratio),
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

// riskNotes explain the table of risks.
var riskNotes = []fmt.Stringer{
	note(""),
	note(fmt.Sprintf("A member carries a twentieth of what the load is above for %g %% of the time, and takes a "+
		"minute to start, or as long as a value of the", 100*busiest)),
	note("trace stands for where that is longer. Both algorithms follow the load itself, with the defaults, and " +
		"decide once a value. The best target is the"),
	note(fmt.Sprintf("cheapest of those that had too few members for no more of the time, of targets %.0f %% apart: "+
		"it is chosen in hindsight, on each load and for", 100*(targetStep-1))),
	note(fmt.Sprintf("each share, which nobody can do who has to choose. The bars: no more than %g × the share asked "+
		"for, no more than %g × the member-hours, and", shareBar, hoursBar)),
	note(fmt.Sprintf("%g × on the mean, and no more changes.", meanBar)),
}
