package domain

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }

func TestRestartRule(t *testing.T) {
	for name, c := range map[string]struct {
		role Role
		want RestartRule
	}{
		"nothing said": {Role{}, RestartRule{RestartOnFailure, 6, seconds(1), ExitCodes{"126-127"}}},
		"never": {
			Role{Restart: Restart{Condition: RestartNever}},
			RestartRule{RestartNever, 0, seconds(1), ExitCodes{"126-127"}},
		},
		"always": {
			Role{Restart: Restart{Condition: RestartAlways}},
			RestartRule{RestartAlways, 0, seconds(1), ExitCodes{"126-127"}},
		},
		"all said": {
			Role{Restart: Restart{RestartAlways, new(3), new(seconds(0))}, ExitCodes: &ExitCodeRule{ExitCodes{"2"}}},
			RestartRule{RestartAlways, 3, 0, ExitCodes{"2"}},
		},
		"no bound": {
			Role{Restart: Restart{MaxAttempts: new(0)}},
			RestartRule{RestartOnFailure, 0, seconds(1), ExitCodes{"126-127"}},
		},
		"no final codes": {
			Role{ExitCodes: &ExitCodeRule{ExitCodes{}}}, RestartRule{RestartOnFailure, 6, seconds(1), ExitCodes{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.role.RestartRule()); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrace(t *testing.T) {
	for _, c := range []struct {
		given *Duration
		want  Duration
	}{{nil, seconds(10)}, {new(seconds(0)), 0}, {new(seconds(90)), seconds(90)}} {
		if got := (Role{GracePeriod: c.given}).Grace(); got != c.want {
			t.Errorf("grace of %v is %s, not %s", c.given, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	rule := func(condition Condition, attempts int) RestartRule {
		return RestartRule{Condition: condition, MaxAttempts: attempts, Delay: seconds(1), Final: DefaultFinalExitCodes}
	}
	failed := func(reason string) Verdict { return Verdict{State: StateFailed, Reason: reason} }
	again := func(reason string) Verdict {
		return Verdict{State: StateRestarting, Reason: reason, Delay: time.Second}
	}
	completed := Verdict{State: StateCompleted}
	for _, c := range []struct {
		name     string
		rule     RestartRule
		code     int
		restarts int
		want     Verdict
	}{
		{"success", rule(RestartOnFailure, 6), 0, 0, completed},
		{"success without restarts", rule(RestartNever, 0), 0, 0, completed},
		{"success of what always runs", rule(RestartAlways, 0), 0, 0, again("")},
		{"success of what ran often enough", rule(RestartAlways, 2), 0, 2, completed},
		{"failure without restarts", rule(RestartNever, 0), 1, 0, failed("exit code 1; restart condition is never")},
		{
			"failure in a group that restarts as a whole", rule(RestartByGroup, 0), 137, 0,
			failed("exit code 137 (signal 9)"),
		},
		{"success in a group that restarts as a whole", rule(RestartByGroup, 0), 0, 0, completed},
		{
			"signal without restarts", rule(RestartNever, 0), 137, 0,
			failed("exit code 137 (signal 9); restart condition is never"),
		},
		{"an error of the program", rule(RestartOnFailure, 6), 1, 0, again("exit code 1")},
		{"last code before the final ones", rule(RestartOnFailure, 6), 125, 0, again("exit code 125")},
		{
			"a command that can't be executed", rule(RestartOnFailure, 6), 126, 0,
			failed("exit code 126, which is final"),
		},
		{"a command that isn't there", rule(RestartOnFailure, 6), 127, 0, failed("exit code 127, which is final")},
		{"first code after the final ones", rule(RestartOnFailure, 6), 128, 0, again("exit code 128")},
		{"signal", rule(RestartOnFailure, 6), 139, 0, again("exit code 139 (signal 11)")},
		{"last signal", rule(RestartOnFailure, 6), 192, 0, again("exit code 192 (signal 64)")},
		{"no signal", rule(RestartOnFailure, 6), 255, 0, again("exit code 255")},
		{"final codes don't count for always", rule(RestartAlways, 0), 1, 0, again("exit code 1")},
		{"attempts used up", rule(RestartOnFailure, 2), 137, 2, failed("exit code 137 (signal 9), after 2 restarts")},
		{"attempts of always used up", rule(RestartAlways, 1), 3, 1, failed("exit code 3, after 1 restarts")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.rule.Judge(c.code, c.restarts)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeBacksOff(t *testing.T) {
	for _, c := range []struct {
		delay    time.Duration
		restarts int
		want     time.Duration
	}{
		{time.Second, 0, time.Second},
		{time.Second, 1, 2 * time.Second},
		{time.Second, 5, 32 * time.Second},
		{time.Second, 8, 256 * time.Second},
		{time.Second, 9, 5 * time.Minute},
		{time.Second, 1_000_000, 5 * time.Minute},
		{time.Millisecond, 17, 131_072 * time.Millisecond},
		{time.Nanosecond, 10_000, 5 * time.Minute},
		{0, 20, 0},
		// What the user asks for is never cut short.
		{10 * time.Minute, 0, 10 * time.Minute},
		{10 * time.Minute, 3, 10 * time.Minute},
		{1_000 * time.Hour, 20, 1_000 * time.Hour},
	} {
		t.Run(fmt.Sprint(c.delay, " after ", c.restarts), func(t *testing.T) {
			rule := RestartRule{Condition: RestartAlways, Delay: Duration(c.delay)}
			if got := rule.Judge(1, c.restarts).Delay; got != c.want {
				t.Errorf("delay is %s, not %s", got, c.want)
			}
		})
	}
}

func TestParseExitCodes(t *testing.T) {
	for _, c := range []struct {
		entry     string
		low, high int
	}{
		{"1", 1, 1}, {"255", 255, 255}, {"1-127", 1, 127}, {"3-3", 3, 3}, {"1-255", 1, 255},
	} {
		low, high, err := ParseExitCodes(c.entry)
		if err != nil || low != c.low || high != c.high {
			t.Errorf("%q is %d to %d (%v), not %d to %d", c.entry, low, high, err, c.low, c.high)
		}
	}
	for _, entry := range []string{
		"", "0", "256", "-", "-1", "1-", "-3-5", "0-3", "3-1", "1-256", "1-2-3", "one", "1 - 2", " 1", "1.0", "+1",
		"1-+2", "99999999999999999999",
	} {
		low, high, err := ParseExitCodes(entry)
		if want := fmt.Sprintf("%q is not an exit code from 1 to 255 or a range such as \"1-127\"",
			entry); err == nil || err.Error() != want {
			t.Errorf("%q is %d to %d (%v); the error should be: %s", entry, low, high, err, want)
		}
	}
}

func FuzzParseExitCodes(f *testing.F) {
	for _, entry := range []string{"1", "1-127", "0-300", "--", "+1", "007", "1-2-3"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		low, high, err := ParseExitCodes(entry)
		if err != nil {
			if low != 0 || high != 0 {
				t.Fatalf("%q has bounds %d and %d beside the error %v", entry, low, high, err)
			}
			return
		}
		if low < 1 || high > 255 || low > high {
			t.Fatalf("%q is taken for %d to %d", entry, low, high)
		}
		codes := ExitCodes{entry}
		for code := range 300 {
			if got := codes.Contain(code); got != (low <= code && code <= high) {
				t.Fatalf("%q, which is %d to %d, contains %d: %v", entry, low, high, code, got)
			}
		}
	})
}

func TestExitCodesContain(t *testing.T) {
	for _, c := range []struct {
		codes ExitCodes
		code  int
		want  bool
	}{
		{nil, 1, false},
		{ExitCodes{"3"}, 3, true},
		{ExitCodes{"3"}, 4, false},
		{ExitCodes{"1-2", "9"}, 2, true},
		{ExitCodes{"1-2", "9"}, 3, false},
		{ExitCodes{"1-2", "9"}, 9, true},
		{ExitCodes{"nonsense", "9"}, 9, true},
	} {
		if got := c.codes.Contain(c.code); got != c.want {
			t.Errorf("%v contain %d: %v", c.codes, c.code, got)
		}
	}
}
