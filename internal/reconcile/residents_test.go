package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestAwaitResidents(t *testing.T) {
	running := domain.Resident{State: domain.ResidentRunning}
	starting := domain.Resident{State: domain.ResidentStarting}
	failing := func(attempts int) domain.Resident {
		return domain.Resident{
			State: domain.ResidentFailing, Host: "gpu1", Error: "no socket", Advice: "Set socket.", Attempts: attempts,
		}
	}
	off := domain.Resident{State: domain.ResidentAbsent, Error: "host gpu2 is down", Excused: true}
	without := domain.Resident{State: domain.ResidentAbsent, Error: "it does not have the image"}
	with := func(controller domain.Resident, agents ...domain.Resident) domain.Residents {
		r := domain.Residents{Controller: controller, Agents: map[string]domain.Resident{}}
		for i, agent := range agents {
			r.Agents["gpu"+string(rune('1'+i))] = agent
		}
		return r
	}
	for name, test := range map[string]struct {
		found []domain.Residents
		says  string // the error
	}{
		"all run": {[]domain.Residents{with(running, running)}, ""},
		"they come to run": {
			[]domain.Residents{with(starting, starting), with(starting, running), with(running, running)}, "",
		},
		"one failed at first":           {[]domain.Residents{with(failing(1), running), with(running, running)}, ""},
		"a host is down":                {[]domain.Residents{with(running, running, off)}, ""},
		"a host that has not the image": {[]domain.Residents{with(running, running, without)}, ""},
		"one fails again and again": {
			[]domain.Residents{with(failing(2), running), with(failing(domain.HopelessAttempts), running)},
			"The controller isn't running on host gpu1: no socket. Set socket.",
		},
		"an agent fails again and again": {
			[]domain.Residents{with(running, failing(domain.HopelessAttempts))},
			"The agent isn't running on host gpu1: no socket. Set socket.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.residents = test.found
			e := engine.Intercept(f, func(_ context.Context, call engine.Call, do func() error) error {
				err := do()
				if call.Name == "Residents" {
					f.mutex.Lock()
					defer f.mutex.Unlock()
					f.notify() // their state changed
				}
				return err
			})
			found, err := reconcile.Reconciler{Engine: e}.AwaitResidents(within(t))
			if (err == nil) != (test.says == "") || err != nil && err.Error() != test.says {
				t.Errorf("the error is %v, want %q", err, test.says)
			}
			if err == nil && len(found.Awaited()) > 0 {
				t.Errorf("it did not wait for %q", found.Awaited())
			}
		})
	}

	f := newFake()
	f.residents = []domain.Residents{with(starting, running)}
	ctx, cancel := context.WithCancelCause(t.Context())
	e := engine.Intercept(f, func(_ context.Context, call engine.Call, do func() error) error {
		if call.Name == "Watch" {
			defer cancel(errors.New("the timeout is over"))
		}
		return do()
	})
	if _, err := (reconcile.Reconciler{Engine: e}).AwaitResidents(ctx); err == nil ||
		!strings.Contains(err.Error(), "The controller isn't running: it is starting: the timeout is over") {
		t.Errorf("past the timeout: %v", err)
	}
}
