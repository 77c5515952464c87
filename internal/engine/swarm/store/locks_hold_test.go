//go:build linux

package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestHoldOfSilentManager: a holder's context ends before anybody else gets the lock, even if no manager answers the
// holder.
func TestHoldOfSilentManager(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "silent")
	in, taking := swarmtest.Storage(t, "silent", keep)
	other := storage{NewItems(in), NewLocks(NewItems(in), NewLeases()), in}
	onAnotherMachine(other, brief)
	e.Leases.lease = brief
	held, release, err := e.Hold(t.Context(), jobLock, ada)
	must(t, err)
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	// by which it is taken over
	taking.On(testbed.Fault{Match: swarmtest.Update, Nth: 1, Onwards: true, Do: swarmtest.Before(func() {
		if held.Err() == nil {
			t.Error("two hold the lock at once")
		}
	})})
	must(t, takeover(t, other, ada)())
	proxy.Reset()
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, errNotRenewed) || !strings.Contains(cause.Error(), jobLock) {
		t.Errorf("it ended for %v", cause)
	}
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock that was lost: %v", err)
	}
}

// TestHoldGivenUp: a lock reported as lost to its holder is free to take, even if managers answer the holder again
// before anybody takes it.
func TestHoldGivenUp(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "given-up")
	e.Leases.lease = brief
	held, release, err := e.Hold(t.Context(), jobLock, ada)
	must(t, err)
	other := storageOf(t, "given-up")
	onAnotherMachine(other, brief)
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	<-held.Done()
	proxy.Reset()
	acctest.Eventually(t, "another to have the lock", func() bool {
		taken, err := other.Lock(t.Context(), jobLock, bob)
		if err != nil {
			wantLocked(t, err, ada)
			return t.Failed()
		}
		must(t, taken())
		return true
	})
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock that was lost: %v", err)
	}
}

// TestHold: a holder's context ends when somebody else has the lock, with the reason; with its parent, though the lock
// is still held; and with the release.
func TestHold(t *testing.T) {
	t.Parallel()
	e, _ := stored(t, "held")
	other := storageOf(t, "held")
	held, release, err := e.Hold(t.Context(), jobLock, ada)
	must(t, err)
	found, err := e.swarm.Connection.ConfigNamed(t.Context(), spec.LockName("held", jobLock))
	must(t, err)
	must(t, e.swarm.Connection.RemoveConfig(t.Context(), found.ID))
	taken, err := other.Lock(t.Context(), jobLock, bob)
	must(t, err)
	<-held.Done()
	if cause := context.Cause(held); !errors.Is(cause, engine.ErrLockLost) {
		t.Errorf("it ended for %v", cause)
	}
	if err := release(); !errors.Is(err, engine.ErrLockLost) {
		t.Errorf("the release of a lock that was lost: %v", err)
	}
	must(t, taken())

	ctx, cancel := context.WithCancel(t.Context())
	held, release, err = e.Hold(ctx, jobLock, ada)
	must(t, err)
	cancel()
	<-held.Done()
	first := version(t, other)
	acctest.Eventually(t, "a renewal", func() bool { return version(t, other) != first })
	_, err = other.Lock(t.Context(), jobLock, bob)
	wantLocked(t, err, ada)
	must(t, release())

	held, release, err = e.Hold(t.Context(), jobLock, ada)
	must(t, err)
	must(t, release())
	if held.Err() == nil {
		t.Error("it goes on after the release")
	}
}
