package top

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// counts returns a row in the table of groups for each role of a group with an autoscaling policy.
func counts(r overview.Reading, group string) [][]line {
	var rows [][]line
	for _, key := range slices.Sorted(maps.Keys(r.Policies)) {
		if policy := r.Policies[key].Spec; policy.Group == group {
			rows = append(rows, []line{
				count(r, policy), slices.Concat(steering(policy), hooksAtWork(r, policy), asking(r, policy)),
				{}, {}, {}, {}, {},
			})
		}
	}
	return rows
}

// count shows the count of a role and the bounds of its policy: "worker 4/2–8".
func count(r overview.Reading, policy domain.AutoscalingPolicy) line {
	n, known := r.Groups[policy.Group].Counts[policy.Role]
	shown := span{fmt.Sprint(n), plain}
	switch {
	case !known:
		shown = span{unknown, faint}
	case n < policy.Min || n > policy.Max:
		shown.tone = warning
	}
	return line{{"  " + policy.Role + " ", plain}, shown, {fmt.Sprintf("/%d–%d", policy.Min, policy.Max), plain}}
}

// longestProgress limits how much of a hook's progress is shown, in columns.
const longestProgress = 24

// hooksAtWork shows which hooks of a policy are at work, and their progress.
func hooksAtWork(r overview.Reading, policy domain.AutoscalingPolicy) line {
	var l line
	for _, call := range r.Hooks[policy.Key()].Calls {
		if !call.AtWork() {
			continue
		}
		description := ", " + string(call.Moment)
		if call.Progress != "" {
			description += ": " + text(call.Progress, plain).cut(longestProgress).String()
		}
		l = append(l, span{description, plain})
	}
	return l
}

// asking shows which guards of a policy have never had a value. The notes say why.
func asking(r overview.Reading, policy domain.AutoscalingPolicy) line {
	var l line
	for _, g := range r.Silent[policy.Key()].Guards {
		l = append(l, span{", no value for " + g.Name, warning})
	}
	return l
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
