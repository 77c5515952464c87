package domain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ExitCodes are the non-zero exit codes that are final under the condition on_failure. Each entry is a code ("3") or a
// range ("1-127"); all other codes are retried.
type ExitCodes []string

// ExitCodeRule says what happens after non-zero exit codes.
type ExitCodeRule struct {
	Final ExitCodes `json:"final"`
}

// DefaultFinalExitCodes are a shell's exit codes for a command that can't be executed or isn't there: another attempt
// would end the same way.
var DefaultFinalExitCodes = ExitCodes{"126-127"}

// ParseExitCodes parses an entry of [ExitCodes] into its bounds.
func ParseExitCodes(entry string) (low, high int, err error) {
	first, last, isRange := strings.Cut(entry, "-")
	if !isRange {
		last = first
	}
	lowest, errLow := strconv.ParseUint(first, 10, 8)
	highest, errHigh := strconv.ParseUint(last, 10, 8)
	if errLow != nil || errHigh != nil || lowest < 1 || lowest > highest {
		return 0, 0, fmt.Errorf("%q is not an exit code from 1 to 255 or a range such as \"1-127\"", entry)
	}
	return int(lowest), int(highest), nil
}

// Contain reports whether the code is among them.
func (e ExitCodes) Contain(code int) bool {
	for _, entry := range e {
		low, high, err := ParseExitCodes(entry)
		if err == nil && low <= code && code <= high {
			return true
		}
	}
	return false
}

// RestartRule is a restart rule with the defaults filled in.
type RestartRule struct {
	Condition   Condition `json:"condition"`
	MaxAttempts int       `json:"max_attempts"`
	Delay       Duration  `json:"delay"`
	Final       ExitCodes `json:"final,omitempty"`
}

// Verdict is what a restart rule decides for a member that ended.
type Verdict struct {
	// State is Restarting, Completed or Failed.
	State State
	// Reason explains a failure.
	Reason string
	// Delay is the time until the next start, if State is Restarting.
	Delay time.Duration
}

// maxRestartDelay caps the back-off, as in the kubelet.
const maxRestartDelay = 5 * time.Minute

// backOff returns the delay doubled with each restart, up to five minutes. A longer delay stays as it is.
func backOff(delay time.Duration, restarts int) time.Duration {
	longest := max(delay, maxRestartDelay)
	for ; restarts > 0 && 0 < delay && delay < longest; restarts-- {
		delay *= 2
	}
	return min(delay, longest)
}

// Judge applies the rule to a member that ended with an exit code (128 + n if signal n killed it) after a number of
// restarts in this run. The delay doubles with each restart, up to five minutes.
func (r RestartRule) Judge(exitCode, restarts int) Verdict {
	again := Verdict{State: StateRestarting, Delay: backOff(time.Duration(r.Delay), restarts)}
	if exitCode == 0 {
		if r.Condition == RestartAlways && !r.exhausted(restarts) {
			return again
		}
		return Verdict{State: StateCompleted}
	}
	reason := describeExit(exitCode)
	switch {
	case r.Condition == RestartByGroup:
		return Verdict{State: StateFailed, Reason: reason}
	case r.Condition == RestartNever:
		return Verdict{State: StateFailed, Reason: reason + "; restart condition is never"}
	case r.Condition == RestartOnFailure && r.Final.Contain(exitCode):
		return Verdict{State: StateFailed, Reason: reason + ", which is final"}
	case r.exhausted(restarts):
		return Verdict{State: StateFailed, Reason: fmt.Sprintf("%s, after %d restarts", reason, restarts)}
	}
	again.Reason = reason
	return again
}

func (r RestartRule) exhausted(restarts int) bool {
	return r.MaxAttempts > 0 && restarts >= r.MaxAttempts
}

// highestSignal is the number of the last real-time signal.
const highestSignal = 64

func describeExit(code int) string {
	if code > 128 && code <= 128+highestSignal {
		return fmt.Sprintf("exit code %d (signal %d)", code, code-128)
	}
	return fmt.Sprintf("exit code %d", code)
}
