//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestJudgeResident(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	const reason = "it ended with exit code 1"
	for name, test := range map[string]struct {
		state    statedir.State
		want     domain.ResidentState
		attempts int
	}{
		"runs":                       {state: statedir.State{State: domain.StateRunning, StartedAt: ago(time.Second)}, want: domain.ResidentRunning},
		"is about to start":          {state: statedir.State{State: domain.StatePending}, want: domain.ResidentStarting},
		"was restarted long ago":     {state: statedir.State{State: domain.StateRunning, Restarts: 9, LastError: reason, StartedAt: ago(time.Hour)}, want: domain.ResidentRunning},
		"was restarted just now":     {state: statedir.State{State: domain.StateRunning, Restarts: 1, LastError: reason, StartedAt: ago(time.Second)}, want: domain.ResidentStarting},
		"failed at its first start":  {state: statedir.State{State: domain.StateRestarting, LastError: reason, StartedAt: ago(2 * time.Second), FinishedAt: ago(time.Second)}, want: domain.ResidentFailing, attempts: 1},
		"fails in a row":             {state: statedir.State{State: domain.StateRestarting, Restarts: 3, LastError: reason, StartedAt: ago(2 * time.Second), FinishedAt: ago(time.Second)}, want: domain.ResidentFailing, attempts: 4},
		"failed once after long":     {state: statedir.State{State: domain.StateRestarting, Restarts: 3, LastError: reason, StartedAt: ago(time.Hour), FinishedAt: ago(time.Second)}, want: domain.ResidentFailing, attempts: 1},
		"can't be started by anyone": {state: statedir.State{State: domain.StateRestarting, Restarts: 1, LastError: reason, FinishedAt: ago(time.Second)}, want: domain.ResidentFailing, attempts: 2},
	} {
		if got := judge(test.state, now); got.State != test.want || got.Attempts != test.attempts {
			t.Errorf("%s: got %s after %d attempts, want %s after %d", name, got.State, got.Attempts, test.want, test.attempts)
		}
	}
}
