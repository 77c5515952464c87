//go:build linux

package main

import (
	"fmt"
	"time"
)

// sparkTables are the jobs' times, in the order of sparkJobs.
func sparkTables(taken [][]sparkTimes) []fmt.Stringer {
	t := &table{head: []string{
		"job", "1 worker", "2 workers", "4 workers", "policy", "over 2", "over best", "published: 1", "2", "its policy",
		"over 2",
	}}
	held := true
	for i, job := range sparkJobs {
		cells := []string{job.name}
		var overTwo, overBest []float64
		var policy sample
		for _, run := range taken[i] {
			policy = append(policy, run.policy)
			overTwo = append(overTwo, ratioOf(run.policy, run.static[twoWorkers]))
			overBest = append(overBest, ratioOf(run.policy, run.static[run.best]))
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
		t.add(append(cells, policy.seconds(), times(two), times(best),
			whole(published[1]), whole(published[twoWorkers]), whole(published[0]),
			times(published[0]/published[twoWorkers]))...)
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("%d rows, %d rounds, 0.4 processors a worker; the policy begins with one. Ratios are within "+
			"a run, and their means.",
			sparkRows, sparkRounds)),
		note(fmt.Sprintf("Bar: the policy is no slower than two workers, and at most %.0f %% than the best count, "+
			"for both jobs: %s.",
			100*(sparkSlack-1), verdict(held))),
	}
}

func ratioOf(a, b time.Duration) float64 { return float64(a) / float64(b) }

func whole(seconds float64) string { return fmt.Sprintf("%.0f s", seconds) }
