package top

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// counts returns a row of the table of groups for each role of a group that has an autoscaling policy.
func (r reading) counts(group string) [][]line {
	var rows [][]line
	for _, key := range slices.Sorted(maps.Keys(r.policies)) {
		if policy := r.policies[key].Spec; policy.Group == group {
			rows = append(rows, []line{r.count(policy), steering(policy), {}, {}, {}, {}, {}})
		}
	}
	return rows
}

// count shows the count of a role against the bounds of its policy: "worker 4/2–8".
func (r reading) count(policy domain.AutoscalingPolicy) line {
	count, known := r.groups[policy.Group].Counts[policy.Role]
	shown := span{fmt.Sprint(count), plain}
	switch {
	case !known:
		shown = span{unknown, faint}
	case count < policy.Min || count > policy.Max:
		shown.tone = warning
	}
	return line{{"  " + policy.Role + " ", plain}, shown, {fmt.Sprintf("/%d–%d", policy.Min, policy.Max), plain}}
}

// steering shows what a policy may do with the count.
func steering(policy domain.AutoscalingPolicy) line {
	var l line
	switch policy.Paused {
	case domain.PauseAll:
		l = text("paused", warning)
	case domain.PauseOut, domain.PauseIn:
		l = text(fmt.Sprintf("paused (%s)", policy.Paused), warning)
	}
	switch {
	case policy.DryRun && len(l) > 0:
		l = append(l, span{", dry run", warning})
	case policy.DryRun:
		l = text("dry run", warning)
	case len(l) == 0:
		l = text("autoscaled", faint)
	}
	return l
}
