package sweep

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Wished returns a run changed as requested. What is no longer possible, such as cancelling an ended run, changes
// nothing. The states before and after show whether its member has to be halted or continued.
func Wished(
	doc domain.SweepDocument, own domain.RunSpec, run domain.Run, wish domain.RunWish, by string, now time.Time,
) domain.Run {
	state := Now(doc, own, run).State
	if Now(doc, own, run).State != run.State {
		run = anew(run, now)
		run.State, run.Revision, run.Seal = domain.RunQueued, doc.Revision, Seal(own)
	}
	switch {
	case wish == domain.WishCancel && !state.Ended():
		return Cancelled(doc, own, run, "cancelled by "+by, now)
	case wish == domain.WishPause && (state == domain.RunQueued || state == domain.RunRunning):
		if !run.Active() {
			run.Revision, run.Seal = doc.Revision, Seal(own)
		}
		run.State, run.Reason = domain.RunPaused, "paused by "+by
	case wish == domain.WishResume && state == domain.RunPaused && run.Active():
		run.State, run.Reason = domain.RunRunning, ""
	case wish == domain.WishResume && (state == domain.RunPaused || state == domain.RunCancelled):
		run.State, run.Reason, run.NotBefore = domain.RunQueued, "", nil
	}
	return run
}

// Report returns what a hook receives about a run that ended at this time, with the place of its files.
func Report(run domain.Run, results string, at time.Time) domain.RunReport {
	report := domain.RunReport{Attempt: run.Attempts, State: run.State, EndedAt: at.UTC(), Reason: run.Reason}
	if run.Attempts == 0 {
		return report // what it knows of an attempt is from before it started over
	}
	report.ExitCode, report.StartedAt, report.FinishedAt = run.ExitCode, run.StartedAt, run.FinishedAt
	report.Value, report.Results = run.Value, results
	if run.Assignment != nil {
		report.Host, report.GPUs = run.Assignment.Host, run.Assignment.GPUs
	}
	if run.State == domain.RunCancelled {
		report.ExitCode = nil // that of an attempt before
	}
	return report
}
