package logs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// foundGroup is a group as found.
type foundGroup struct {
	reconcile.Decision
	observed []domain.Observed
}

// isOf reports whether the group was applied with these triggers, or more.
func (s foundGroup) isOf(triggers map[string]string) bool {
	return includes(s.Document.Spec.Triggers, triggers)
}

// endless is why the log of a planned group can't be followed to its end.
const endless = "never completes, so its log would be followed forever: set completion.when or completion.deadline"

// endless reports whether the group neither completes nor fails.
func (s foundGroup) endless() bool {
	rule := s.Rule()
	return rule.When == domain.WhenNever && rule.Deadline == 0
}

// chosen returns the members whose logs are written: those asked for, those that the completion rule names, or all.
func (s foundGroup) chosen(o options) ([]string, error) {
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Name)
	}
	for _, name := range o.members {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("group %q has no member %q; it has %s", s.Document.Spec.Name, name,
				domain.Enumerate(all))
		}
	}
	completing := s.Rule().Members
	switch {
	case len(o.members) > 0:
		return o.members, nil
	case o.all || len(completing) == 0:
		return all, nil
	}
	return completing, nil
}

// verdict returns whether the group has ended, and the error; nil if it completed.
func (s foundGroup) verdict() (ended bool, err error) {
	name, progress := s.Document.Spec.Name, reconcile.Progress(s.Decision, s.observed)
	switch progress.Phase {
	case domain.PhaseCompleted:
		return true, nil
	case domain.PhaseFailed:
		reason := fmt.Sprintf("group %s failed: %s", name, progress.Reason)
		return true, &command.ExitError{Code: cmp.Or(s.exitCode(), 1), Reason: reason}
	}
	return false, nil
}

// exitCode returns the exit code of the member that prevented completion, and of several the one that ended first; 0 if
// none has one.
func (s foundGroup) exitCode() int {
	completing := s.Rule().Members
	var failed []domain.Observed
	for _, o := range reconcile.Present(s.Decision, s.observed) {
		if o.State == domain.StateFailed && o.ExitCode != nil && slices.Contains(completing, o.Name) {
			failed = append(failed, o)
		}
	}
	if len(failed) == 0 {
		return 0
	}
	return *slices.MinFunc(failed, domain.ByEnd).ExitCode
}
