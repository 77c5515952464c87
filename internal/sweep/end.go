package sweep

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// LogTail is how many lines at the end of an ended run's log are searched.
const LogTail = 200

// outOfMemory matches what CUDA, PyTorch, TensorFlow, JAX and CuPy write when a GPU runs out of memory.
var outOfMemory = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\bcuda.*\bout of memory\b`),
	regexp.MustCompile(`CUDA_ERROR_OUT_OF_MEMORY`),
	regexp.MustCompile(`cudaErrorMemoryAllocation`),
	regexp.MustCompile(`CU(BLAS|DNN)_STATUS_ALLOC_FAILED`),
	regexp.MustCompile(`\btorch(\.cuda)?\.OutOfMemoryError`),
	regexp.MustCompile(`(OOM|[Oo]ut of memory) (when |while |trying to )*allocat`),
	regexp.MustCompile(`RESOURCE_EXHAUSTED: .*([Oo]ut of memory|[Ff]ailed to allocate)`),
}

// harmless matches lines about the host's memory, and TensorFlow's about memory that it can do without.
var harmless = regexp.MustCompile(`device:CPU|allocator (mkl)?cpu|not a failure`)

// longestReason limits how much of a line or an error is stored, in bytes.
const longestReason = 300

// shortened returns a line or an error as it is stored.
func shortened(text string) string {
	if len(text) > longestReason {
		return strings.ToValidUTF8(text[:longestReason], "") + "…"
	}
	return text
}

// outOfMemoryLine returns the last line that reports exhausted GPU memory, by the built-in patterns or the sweep's own.
func outOfMemoryLine(s domain.Sweep, log []string) (string, bool) {
	var own []*regexp.Regexp
	for _, text := range s.Retry.Patterns {
		if pattern, err := regexp.Compile(text); err == nil {
			own = append(own, pattern)
		}
	}
	for _, line := range slices.Backward(log) {
		matches := func(p *regexp.Regexp) bool { return p.MatchString(line) }
		if slices.ContainsFunc(own, matches) ||
			slices.ContainsFunc(outOfMemory, matches) && !harmless.MatchString(line) {
			return shortened(line), true
		}
	}
	return "", false
}

// valueIn returns the number in the last matching line of a log; nil if there is none.
func valueIn(o *domain.Objective, log []string) *float64 {
	if o == nil {
		return nil
	}
	pattern, err := regexp.Compile(o.Pattern)
	if err != nil || pattern.NumSubexp() != 1 {
		return nil
	}
	for _, line := range slices.Backward(log) {
		if match := pattern.FindStringSubmatch(line); match != nil {
			value, err := strconv.ParseFloat(match[1], 64)
			if err != nil || value-value != 0 { // infinite or NaN: a run that diverged has no value
				return nil
			}
			return &value
		}
	}
	return nil
}

// Start returns a run whose next attempt starts at a place, in a batch.
func Start(
	doc domain.SweepDocument, own domain.RunSpec, run domain.Run, at domain.Assignment, batch int, now time.Time,
) domain.Run {
	if run.State == "" || Stale(doc, own, run) {
		run = domain.Run{Reports: run.Reports}
	}
	return domain.Run{
		State: domain.RunRunning, Revision: doc.Revision, Seal: Seal(own), Attempts: run.Attempts + 1,
		Failures: run.Failures, OutOfMemory: run.OutOfMemory,
		Batch: batch, Assignment: &at, StartedAt: &now,
		Needs: &domain.RunNeeds{Resources: doc.Spec.Resources, GPUs: doc.Spec.GPUs}, RanOut: run.RanOut,
		Reports: run.Reports,
	}
}

// Lost returns a run whose attempt was lost through no fault of its own. It waits again, and no attempt is used up.
func Lost(run domain.Run, why string, now time.Time) domain.Run {
	run.State, run.Reason, run.FinishedAt, run.NotBefore, run.Needs = waiting(run), why, &now, nil, nil
	return run
}

// Outdated returns an active run that its sweep has changed, see [Stale]: it waits to start over.
func Outdated(doc domain.SweepDocument, own domain.RunSpec, run domain.Run, now time.Time) domain.Run {
	return domain.Run{
		State: waiting(run), Revision: doc.Revision, Seal: Seal(own), Assignment: run.Assignment, FinishedAt: &now,
		Reports: run.Reports,
	}
}

// anew returns what is left of a run that starts over: the ends to report, and where its member may still be.
func anew(run domain.Run, now time.Time) domain.Run {
	left := domain.Run{Reports: run.Reports}
	if run.Assignment != nil {
		left.Assignment, left.FinishedAt = run.Assignment, cmp.Or(run.FinishedAt, &now)
	}
	return left
}

// Removed returns what is kept of a run that its sweep no longer has: where its member may still be.
func Removed(run domain.Run, now time.Time) domain.Run {
	run = anew(run, now)
	run.State, run.Reports = domain.RunQueued, nil
	return run
}

// waiting returns the state in which a run waits to start again: one that a user has paused stays so.
func waiting(run domain.Run) domain.RunState {
	if run.State == domain.RunPaused {
		return domain.RunPaused
	}
	return domain.RunQueued
}

// Cancelled returns a run that is not to start, or not to continue.
func Cancelled(doc domain.SweepDocument, own domain.RunSpec, run domain.Run, why string, now time.Time) domain.Run {
	if run.State == "" || Stale(doc, own, run) {
		run = anew(run, now)
	}
	if run.Active() {
		run.FinishedAt = &now
	}
	// It was cancelled in its present form, and does not start over for earlier requests.
	run.Revision, run.Seal = doc.Revision, Seal(own)
	run.State, run.Reason, run.NotBefore, run.Needs = domain.RunCancelled, why, nil, nil
	return run
}

// Ended returns the run after its attempt was observed to have ended, given the end of its log. beside is how many
// other runs were on its devices.
func Ended(s domain.Sweep, run domain.Run, o domain.Observed, log []string, beside int, now time.Time) domain.Run {
	run.ExitCode, run.Reason, run.NotBefore, run.Needs = o.ExitCode, "", nil, nil
	if o.StartedAt != nil {
		run.StartedAt = o.StartedAt
	}
	run.FinishedAt = &now
	if o.FinishedAt != nil {
		run.FinishedAt = o.FinishedAt
	}
	switch o.State {
	case domain.StateCompleted:
		run.State, run.Value = domain.RunSucceeded, valueIn(s.Objective, log)
		return run
	case domain.StateStopped:
		return Lost(run, "stopped by someone else", now)
	}
	if line, is := outOfMemoryLine(s, log); is && s.GPUs != nil {
		return ranOutOfMemory(s, run, line, beside)
	}
	run.Failures++
	run.Reason = failure(s, o)
	final := o.ExitCode != nil && s.FinalExitCodes().Contain(*o.ExitCode)
	if most := s.Attempts(); final || most > 0 && run.Failures >= most {
		run.State, run.Value = domain.RunFailed, valueIn(s.Objective, log)
		if run.Failures > 1 {
			run.Reason += fmt.Sprintf(", after %d failed attempts", run.Failures)
		}
		return run
	}
	run.State = domain.RunQueued
	run.NotBefore = later(now, backOff(s.Retry, run.Failures))
	return run
}

// ranOutOfMemory returns the run after its attempt ran out of GPU memory.
func ranOutOfMemory(s domain.Sweep, run domain.Run, line string, beside int) domain.Run {
	run.OutOfMemory++
	run.RanOut = &domain.RanOut{At: *run.FinishedAt, Beside: beside}
	if run.Assignment != nil {
		run.RanOut.GPUs = run.Assignment.GPUs
	}
	run.Reason = fmt.Sprintf("out of GPU memory beside %d other runs: %s", beside, line)
	run.State = domain.RunQueued
	if run.OutOfMemory >= s.OutOfMemoryAttempts() {
		run.State = domain.RunOutOfMemory
		run.Reason = fmt.Sprintf("out of GPU memory in %d attempts, the last one beside %d other runs: reduce its "+
			"memory use or raise gpus.memory_mib: %s", run.OutOfMemory, beside, line)
	}
	return run
}

// killed is the exit code of a killed program, such as one that the kernel killed for exceeding its memory limit.
const killed = 128 + 9

// failure says why an attempt failed, and what can be done about it.
func failure(s domain.Sweep, o domain.Observed) string {
	reason := cmp.Or(shortened(o.LastError), "it failed")
	if limit := s.Resources.Limited().Limits.MemoryMiB; limit > 0 && o.ExitCode != nil && *o.ExitCode == killed {
		reason += fmt.Sprintf("; if it needs more than %d MiB of memory, raise resources.memory_mib", limit)
	}
	return reason
}

// longestBackOff limits the time between two attempts.
const longestBackOff = 5 * time.Minute

// backOff returns the time before the attempt after this number of failures. It doubles with each.
func backOff(r domain.Retry, failures int) time.Duration {
	delay := r.Delay.Or(time.Duration(domain.DefaultRestartDelay))
	longest := max(delay, longestBackOff)
	for ; failures > 1 && 0 < delay && delay < longest; failures-- {
		delay *= 2
	}
	return min(delay, longest)
}

func later(now time.Time, d time.Duration) *time.Time {
	if d == 0 {
		return nil
	}
	then := now.Add(d)
	return &then
}

// Failing returns why the runs of a sweep are cancelled, "" if they are not, and whether that includes running ones.
// Runs that start over no longer count.
func Failing(doc domain.SweepDocument, s domain.Sweep, runs map[string]domain.Run) (why string, all bool) {
	if s.OnFailure == nil {
		return "", false
	}
	failed := 0
	for key, run := range runs {
		if (run.State == domain.RunFailed || run.State == domain.RunOutOfMemory) && !Stale(doc, s.Run(key), run) {
			failed++
		}
	}
	if failed < s.OnFailure.After {
		return "", false
	}
	return fmt.Sprintf("%d runs have failed, and on_failure.after is %d", failed,
		s.OnFailure.After), cmp.Or(s.OnFailure.Then, domain.SweepStop) == domain.SweepStop
}
