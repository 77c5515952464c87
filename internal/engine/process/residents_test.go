//go:build linux

package process

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
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
		"runs": {
			state: statedir.State{State: domain.StateRunning, StartedAt: ago(time.Second)},
			want:  domain.ResidentRunning,
		},
		"is about to start": {
			state: statedir.State{State: domain.StatePending}, want: domain.ResidentStarting,
		},
		"was restarted long ago": {
			state: statedir.State{
				State: domain.StateRunning, Restarts: 9, LastError: reason, StartedAt: ago(time.Hour),
			},
			want: domain.ResidentRunning,
		},
		"was restarted just now": {state: statedir.State{
			State: domain.StateRunning, Restarts: 1, LastError: reason, StartedAt: ago(time.Second),
		}, want: domain.ResidentStarting},
		"failed at its first start": {state: statedir.State{
			State: domain.StateRestarting, LastError: reason, StartedAt: ago(2 * time.Second),
			FinishedAt: ago(time.Second),
		}, want: domain.ResidentFailing, attempts: 1},
		"fails in a row": {state: statedir.State{
			State: domain.StateRestarting, Restarts: 3, LastError: reason, StartedAt: ago(2 * time.Second),
			FinishedAt: ago(time.Second),
		}, want: domain.ResidentFailing, attempts: 4},
		"failed once after long": {state: statedir.State{
			State: domain.StateRestarting, Restarts: 3, LastError: reason, StartedAt: ago(time.Hour),
			FinishedAt: ago(time.Second),
		}, want: domain.ResidentFailing, attempts: 1},
		"can't be started by anyone": {state: statedir.State{
			State: domain.StateRestarting, Restarts: 1, LastError: reason, FinishedAt: ago(time.Second),
		}, want: domain.ResidentFailing, attempts: 2},
	} {
		if got := judge(test.state, now); got.State != test.want || got.Attempts != test.attempts {
			t.Errorf("%s: got %s after %d attempts, want %s after %d", name, got.State, got.Attempts, test.want,
				test.attempts)
		}
	}
}

// TestSupervisorAboutToEnd: systemd starts no supervisor while the previous one has released its lock but is not quite
// gone. It is started once that is gone.
func TestSupervisorAboutToEnd(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, err := statedir.Open(t.TempDir(), "lab")
	must(err)
	must(dir.Create())
	self, err := proctree.Lookup(os.Getpid())
	must(err)
	asked := 0
	e := OpenAt(dir, Program{}, Site{Supervise: func(context.Context) error {
		if asked++; asked == 1 {
			return nil // systemd still takes it for running
		}
		lock, err := dir.Lock(statedir.SupervisorLock, engine.Holder{Process: self.PID, StartTime: self.StartTime})
		if err == nil {
			t.Cleanup(func() { _ = lock.Release() })
		}
		return err
	}})
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: domain.Cluster{Name: "lab"}})
	must(err)
	must(e.supervise(t.Context()))
	if asked != 2 {
		t.Errorf("it was started %d times, want 2", asked)
	}
}
