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
			rows = append(rows, []line{r.count(policy), slices.Concat(steering(policy), r.telling(policy), r.asking(policy)), {}, {}, {}, {}, {}})
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

// longestProgress bounds, in characters, what is shown of what a hook says of its progress.
const longestProgress = 24

// telling shows which hooks of a policy are at work, and how they get on.
func (r reading) telling(policy domain.AutoscalingPolicy) line {
	var l line
	for _, call := range r.hooks[policy.Key()].Calls {
		if !call.AtWork() {
			continue
		}
		said := ", " + string(call.Moment)
		if progress := []rune(call.Progress); len(progress) > longestProgress {
			said += ": " + string(progress[:longestProgress-1]) + "…"
		} else if len(progress) > 0 {
			said += ": " + call.Progress
		}
		l = append(l, span{said, plain})
	}
	return l
}

// asking shows which guards of a policy have never had a value: the notes say why.
func (r reading) asking(policy domain.AutoscalingPolicy) line {
	var l line
	for _, g := range r.untold[policy.Key()].Guards {
		l = append(l, span{", no value of " + g.Name, warning})
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
