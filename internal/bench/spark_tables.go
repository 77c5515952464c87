//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// sparkClocks are the two times of a submit. The bars are about the first one.
var sparkClocks = []struct {
	name string
	of   func(sparkSubmit) time.Duration
}{
	{"from the first task", func(s sparkSubmit) time.Duration { return s.training }},
	{"with the start", func(s sparkSubmit) time.Duration { return s.whole }},
}

// sparkTables are the jobs' times, in the order of sparkJobs.
func sparkTables(taken [][]sparkTimes) []fmt.Stringer {
	t := &table{head: []string{
		"job", "time", "1 worker", "2 workers", "4 workers", "policy: first", "over 2",
		fmt.Sprintf("mean of %d", sparkSubmits), "over 2", "over best", "published: 1", "2", "its policy", "over 2",
	}}
	held := true
	var rounds []string
	for i, job := range sparkJobs {
		rounds = append(rounds, fmt.Sprintf("%d rounds of %s", job.rounds, job.name))
		for nth, clock := range sparkClocks {
			figures := sparkFiguresOf(taken[i], clock.of)
			held = held && (nth > 0 || figures.overTwo <= 1 && figures.overBest <= sparkSlack)
			published := job.published
			t.add(append(append([]string{job.name, clock.name}, figures.cells...), whole(published[1]),
				whole(published[twoWorkers]), whole(published[0]), times(published[0]/published[twoWorkers]))...)
		}
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("%d rows, %s, 0.4 processors a worker; the policy begins with one,\n  adds the others before "+
			"the first submit trains, and keeps them for the next ones. Ratios are within a run, and their means.",
			sparkRows, strings.Join(rounds, ", "))),
		note("The first task, which counts one row, waits until all workers are there. The time with the start " +
			"includes that of Spark, and this wait."),
		note(fmt.Sprintf("Bar: from the first task, the policy's mean is no more than with two workers, and at most "+
			"%.0f %% more than with\n  the best count, for both jobs: %s.", 100*(sparkSlack-1), verdict(held))),
	}
}

// sparkFigures are what the table says of a job's runs by one clock: its cells, and the policy's mean over that of two
// workers and of the best count.
type sparkFigures struct {
	cells             []string
	overTwo, overBest float64
}

func sparkFiguresOf(runs []sparkTimes, clock func(sparkSubmit) time.Duration) (f sparkFigures) {
	for _, count := range sparkCounts {
		var static sample
		for _, run := range runs {
			static = append(static, clock(run.static[count]))
		}
		f.cells = append(f.cells, static.seconds())
	}
	var first, policy sample
	var firstOverTwo, overTwo, overBest []float64
	for _, run := range runs {
		sum := time.Duration(0)
		for _, submit := range run.policy {
			sum += clock(submit)
		}
		mean, two := sum/time.Duration(len(run.policy)), clock(run.static[twoWorkers])
		first, policy = append(first, clock(run.policy[0])), append(policy, mean)
		firstOverTwo = append(firstOverTwo, ratioOf(clock(run.policy[0]), two))
		overTwo = append(overTwo, ratioOf(mean, two))
		overBest = append(overBest, ratioOf(mean, clock(run.static[run.best])))
	}
	f.overTwo, f.overBest = mean(overTwo), mean(overBest)
	f.cells = append(f.cells, first.seconds(), times(mean(firstOverTwo)), policy.seconds(), times(f.overTwo),
		times(f.overBest))
	return f
}

func ratioOf(a, b time.Duration) float64 { return float64(a) / float64(b) }

func whole(seconds float64) string { return fmt.Sprintf("%.0f s", seconds) }
