//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// sparkTables are the jobs' times, in the order of sparkJobs.
func sparkTables(taken [][]sparkTimes) []fmt.Stringer {
	t := &table{head: []string{
		"job", "1 worker", "2 workers", "4 workers", "policy: first", fmt.Sprintf("mean of %d", sparkSubmits), "over 2",
		"over best", "published: 1", "2", "its policy", "over 2",
	}}
	held := true
	var rounds []string
	for i, job := range sparkJobs {
		rounds = append(rounds, fmt.Sprintf("%d rounds of %s", job.rounds, job.name))
		cells := []string{job.name}
		var overTwo, overBest []float64
		var first, policy sample
		for _, run := range taken[i] {
			first, policy = append(first, run.policy[0]), append(policy, run.mean())
			overTwo = append(overTwo, ratioOf(run.mean(), run.static[twoWorkers]))
			overBest = append(overBest, ratioOf(run.mean(), run.static[run.best]))
		}
		for _, count := range sparkCounts {
			var static sample
			for _, run := range taken[i] {
				static = append(static, run.static[count])
			}
			cells = append(cells, static.seconds())
		}
		two, best := mean(overTwo), mean(overBest)
		held = held && two <= 1 && best <= sparkSlack
		published := job.published
		t.add(append(cells, first.seconds(), policy.seconds(), times(two), times(best), whole(published[1]),
			whole(published[twoWorkers]), whole(published[0]),
			times(published[0]/published[twoWorkers]))...)
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("%d rows, %s, 0.4 processors a worker; the policy begins with one,\n  adds the others before "+
			"the first submit trains, and keeps them for the next ones. Ratios are within a run, and their means.",
			sparkRows, strings.Join(rounds, ", "))),
		note(fmt.Sprintf("Bar: the policy's mean is no more than with two workers, and at most %.0f %% more than with "+
			"the best count,\n  for both jobs: %s.", 100*(sparkSlack-1), verdict(held))),
	}
}

func ratioOf(a, b time.Duration) float64 { return float64(a) / float64(b) }

func whole(seconds float64) string { return fmt.Sprintf("%.0f s", seconds) }
