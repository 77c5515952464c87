package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Phase is where a group is in its life.
type Phase string

// The phases of a group.
const (
	// PhasePending: members wait to be started.
	PhasePending Phase = "pending"
	// PhaseRunning: every member runs, or has completed if the group can. A group that a policy scaled to no members is
	// running, too.
	PhaseRunning Phase = "running"
	// PhaseDegraded: a member is missing, failed or between two attempts, has ended in a group that never completes, is
	// on an unhealthy host, or has a GPU that can't be used. The group goes on without it.
	PhaseDegraded Phase = "degraded"
	// PhaseCompleted: the group's completion rule is met.
	PhaseCompleted Phase = "completed"
	// PhaseFailed: the completion rule can't be met any more, or was not met in time.
	PhaseFailed Phase = "failed"
)

// Ended reports whether a group in this phase has completed or failed.
func (p Phase) Ended() bool { return p == PhaseCompleted || p == PhaseFailed }

// CompletionRule is a group's completion rule with the defaults filled in.
type CompletionRule struct {
	When When
	// Members are the names of the members that the rule looks at: only the chief for WhenChief, none for WhenNever.
	Members []string
	// Deadline limits the time from the start of the first member; 0 means no limit.
	Deadline Duration
	// StopRest stops the members still running when the group completes or fails.
	StopRest bool
}

// Progress is a group's phase, as its members show it.
type Progress struct {
	Phase Phase
	// Reason says why the phase is degraded or failed, naming members.
	Reason string
}

// Progress returns the phase of a group that should consist of the members want, all started in run minRun or later,
// given the observed members.
func (rule CompletionRule) Progress(want []string, minRun int, observed []Observed) Progress {
	byName := make(map[string]Observed, len(observed))
	for _, o := range observed {
		if o.Run < minRun {
			o.State = StatePending
		}
		byName[o.Name] = o
	}
	for _, o := range byName {
		if o.State == StateStopped && o.StopReason == StopDeadline {
			return Progress{PhaseFailed, fmt.Sprintf("not completed within its deadline of %s", rule.Deadline)}
		}
	}
	if p, ended := rule.ended(byName); ended {
		return p
	}

	var missing, failed, restarting, stopped, ended, pending []string
	troubled := map[string][]string{}
	for _, name := range want {
		o, found := byName[name]
		switch {
		case !found:
			missing = append(missing, name)
		case o.HostTrouble != "" && !o.State.Ended():
			troubled[o.HostTrouble] = append(troubled[o.HostTrouble], name)
		case o.GPUTrouble != "" && !o.State.Ended():
			troubled[o.GPUTrouble] = append(troubled[o.GPUTrouble], name)
		case o.State == StateFailed:
			failed = append(failed, name)
		case o.State == StateRestarting:
			restarting = append(restarting, name)
		case o.State == StateStopped:
			stopped = append(stopped, name)
		case o.State == StateCompleted && rule.When == WhenNever:
			ended = append(ended, name) // a service has no reason to end
		case o.State == StatePending:
			pending = append(pending, name)
		}
	}
	var reasons []string
	for _, trouble := range slices.Sorted(maps.Keys(troubled)) {
		reasons = append(reasons, trouble+": "+Enumerate(troubled[trouble]))
	}
	for _, part := range []struct {
		word  string
		names []string
	}{{"missing", missing}, {"failed", failed}, {"stopped", stopped}, {"ended", ended}, {"restarting", restarting}} {
		if len(part.names) > 0 {
			reasons = append(reasons, part.word+": "+Enumerate(part.names))
		}
	}
	switch {
	case len(want) > 0 && len(missing) == len(want) || len(reasons) == 0 && len(pending) > 0:
		return Progress{Phase: PhasePending}
	case len(reasons) > 0:
		return Progress{PhaseDegraded, strings.Join(reasons, "; ")}
	}
	return Progress{Phase: PhaseRunning}
}

// ended reports whether the rule is met, or can't be met any more.
func (rule CompletionRule) ended(byName map[string]Observed) (Progress, bool) {
	if rule.When == WhenNever || len(rule.Members) == 0 {
		return Progress{}, false
	}
	var completed, failed []string
	var ends []Observed // of the failed
	for _, name := range rule.Members {
		switch o := byName[name]; o.State {
		case StateCompleted:
			completed = append(completed, name)
		case StateFailed:
			failed, ends = append(failed, name), append(ends, o)
		}
	}
	needed := len(rule.Members)
	if rule.When == WhenAny {
		needed = 1
	}
	switch {
	case len(completed) >= needed:
		return Progress{Phase: PhaseCompleted}, true
	case len(failed) > len(rule.Members)-needed:
		first := slices.MinFunc(ends, ByEnd)
		return Progress{PhaseFailed, fmt.Sprintf("failed: %s: %s", Enumerate(failed), first.LastError)}, true
	}
	return Progress{}, false
}

// Enumerate lists up to five names in order, followed by how many more there are.
func Enumerate(names []string) string {
	names = slices.Sorted(slices.Values(names))
	const shown = 5
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// EnumerateUsers lists groups and sweeps, such as "group mnist and sweeps left, right".
func EnumerateUsers(groups, sweeps []string) string {
	var users []string
	for _, kind := range []struct {
		noun  string
		names []string
	}{{"group", groups}, {"sweep", sweeps}} {
		switch len(kind.names) {
		case 0:
		case 1:
			users = append(users, kind.noun+" "+kind.names[0])
		default:
			users = append(users, kind.noun+"s "+Enumerate(kind.names))
		}
	}
	return strings.Join(users, " and ")
}
