package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestOutage: the event stream ends, and then the engine does not answer for a while, as when a manager restarts. A
// wait survives that, but ends on errors that will not pass.
func TestOutage(t *testing.T) {
	away := fmt.Errorf("the manager: %w", engine.ErrUnreachable)
	for name, test := range map[string]struct {
		failures []error // of the looks after the events were lost
		want     error
	}{
		"it answers again": {failures: []error{
			away, fmt.Errorf("no leader: %w", engine.ErrNotFormed), fmt.Errorf("the manager %w", engine.ErrUnwell),
		}},
		"it is gone": {
			failures: []error{fmt.Errorf("%w: %w", engine.ErrNotFormed, engine.ErrNotFound)}, want: engine.ErrNotFound,
		},
		"it answers with nonsense": {failures: []error{errNonsense}, want: errNonsense},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.plays["mnist-worker-0"] = []play{{waits, waits, waits, waits, runs}}
			e, calls := recorded(f)
			looks, failures := 0, test.failures
			calls.before = func(call string) error {
				if call != "Observe" {
					return nil
				}
				looks++
				if looks == 3 {
					f.loseEvents()
				}
				if looks < 4 || len(failures) == 0 {
					return nil
				}
				err := failures[0]
				failures = failures[1:]
				return err
			}
			if err := (reconcile.Reconciler{Engine: e}).Update(within(t), group(1, 1)); !errors.Is(err, test.want) {
				t.Errorf("the error is %v, want %v", err, test.want)
			}
		})
	}
}

// TestOutageIsBounded: members can be observed, but the document can never be read again.
func TestOutageIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.plays["mnist-worker-0"] = []play{{waits, waits, waits}}
		e, calls := recorded(f)
		looks := 0
		calls.before = func(call string) error {
			switch {
			case call == "Observe":
				looks++
			case call == "Get group" && looks >= 3:
				return fmt.Errorf("the manager %w", engine.ErrUnwell)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := (reconcile.Reconciler{Engine: e}).Update(ctx, group(1, 1)); !errors.Is(err, engine.ErrUnwell) {
			t.Errorf("the error is %v, want that of the last look", err)
		}
	})
}

// losing is an engine on which every lock of a group is lost before its release, or can't be released.
type losing struct {
	engine.Engine

	how error
}

func (l losing) Lock(ctx context.Context, name string, holder engine.Holder) (func() error, error) {
	release, err := l.Engine.Lock(ctx, name, holder)
	if err != nil || name != reconcile.GroupLock("mnist") {
		return release, err
	}
	return func() error {
		return errors.Join(release(), fmt.Errorf("lock %q: %w", name, l.how))
	}, nil
}

// TestOutageOfTenMinutes: a wait survives ten minutes without network, though a lock does not. The error of a shorter
// timeout says why the state of the members is unknown.
func TestOutageOfTenMinutes(t *testing.T) {
	down := fmt.Errorf("the hosts: %w", engine.ErrUnreachable)
	for name, test := range map[string]struct {
		timeout time.Duration
		lock    error
		want    string
	}{
		"it is outlasted":            {timeout: time.Hour, lock: engine.ErrLockLost},
		"its lock can't be released": {timeout: time.Hour, lock: engine.ErrLockUnreleased},
		"its lock is another's matter": {
			timeout: time.Hour, lock: errors.New("no space left"), want: `lock "group mnist": no space left`,
		},
		"it is not": {
			5 * time.Minute, engine.ErrLockLost,
			`group "mnist" is pending (the hosts: can't be reached), not running yet, and continues: context deadline exceeded`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.plays["mnist-worker-0"] = []play{{waits, waits, waits, waits, runs}}
				e, calls := recorded(losing{f, test.lock})
				looks, over := 0, time.Now().Add(time.Hour)
				calls.before = func(call string) error {
					if call == "Observe" {
						if looks++; looks == 4 {
							over = time.Now().Add(10 * time.Minute)
						}
					}
					if looks >= 4 && time.Now().Before(over) {
						return down
					}
					return nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
				defer cancel()
				err := reconcile.Reconciler{Engine: e}.Update(ctx, group(1, 1))
				switch message := fmt.Sprint(err); {
				case test.want == "" && err != nil, !strings.HasPrefix(message, test.want) && test.want != "":
					t.Errorf("the error is %v, want %s", err, test.want)
				case test.want == "":
					f.expectStates(t, "mnist-ps-0 (running)", "mnist-worker-0 (running)")
				case !errors.Is(err, test.lock):
					t.Errorf("that the lock was lost is not said: %v", err)
				}
			})
		})
	}
}
