//go:build linux

package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestUnsure: a taker asks again as long as the lock's holder may be dead.
func TestUnsure(t *testing.T) {
	here, there := Owner{Machine: "here", Process: 1}, Owner{Machine: "there", Process: 1}
	now := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		self, holder Owner
		versions     []uint64 // the versions that were seen
		want         bool
	}{
		"on this machine":                 {here, here, []uint64{1}, false},
		"elsewhere":                       {here, there, []uint64{1}, true},
		"elsewhere, unchanged":            {here, there, []uint64{1, 1}, true},
		"elsewhere, renewed":              {here, there, []uint64{1, 2}, false},
		"where machines are not known":    {Owner{}, Owner{}, []uint64{1}, true},
		"where its machine is not known":  {here, Owner{}, []uint64{1}, true},
		"where this machine is not known": {Owner{}, there, []uint64{1, 2}, false},
	} {
		l := &Leases{Self: c.self, lease: leaseDuration, seen: map[string]sighting{}}
		for _, version := range c.versions {
			l.expired("lock", version, now)
		}
		if got := l.unsure("lock", lease{Owner: c.holder}); got != c.want {
			t.Errorf("%s: unsure %v", name, got)
		}
	}
}

// TestLockOfLostMachine: if a holder elsewhere can't reach the manager, its lock is taken over once it has not been
// renewed for a lease, and the holder learns that when it is back.
func TestLockOfLostMachine(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "lost")
	other := storageOf(t, "lost")
	onAnotherMachine(other, brief)
	e.Leases.lease = 3 * time.Second // for so long it tries to release it, in vain
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
	taken := takeover(t, other, ada)

	if err := release(); !errors.Is(err, engine.ErrLockUnreleased) || errors.Is(err, engine.ErrLockLost) ||
		!strings.Contains(err.Error(), `"group job"`) {
		t.Errorf("a release without a manager: %v", err)
	}
	proxy.Reset()
	_, err = e.Lock(t.Context(), jobLock, ada)
	wantLocked(t, err, bob)
	must(t, taken())
}

// TestLockTakenOver: a release reports that somebody else took the lock in between, and leaves it to them.
func TestLockTakenOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// renewing means that the holder notices by itself before it releases the lock.
		renewing bool
		reason   string
	}{
		"noticed by the release": {false, "bob@gpu2 took it over: destroy of group job"},
		"noticed by a renewal":   {true, "bob@gpu2 took it over: destroy of group job"},
	} {
		t.Run(name, func(t *testing.T) {
			e, proxy := stored(t, "taken")
			other := storageOf(t, "taken")
			onAnotherMachine(other, brief)
			e.Leases.lease = brief
			release, err := e.Lock(t.Context(), jobLock, ada)
			must(t, err)
			// reads too: the holder knows nothing yet when it is back
			proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: testbed.Drop()})
			taken := takeover(t, other, ada)
			proxy.Reset()
			if test.renewing {
				acctest.Eventually(t, "the holder's own look", func() bool { return len(proxy.Calls()) > 0 })
			}
			for range 2 {
				if err := release(); !errors.Is(err, engine.ErrLockLost) ||
					!strings.Contains(err.Error(), test.reason) {
					t.Errorf("the release of a lock that was taken over: %v", err)
				}
			}
			_, err = e.Lock(t.Context(), jobLock, ada)
			wantLocked(t, err, bob)
			must(t, taken())
			e.wantObjects(t, "cluster 1")
		})
	}
}

// TestLockRenewed: a holder elsewhere that renews its lease keeps its lock for longer than that, though a renewal
// collides with a change of the object and the next one fails.
func TestLockRenewed(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "renewed")
	other := storageOf(t, "renewed")
	onAnotherMachine(other, leaseDuration)
	held, release, err := e.Hold(t.Context(), jobLock, ada)
	must(t, err)
	proxy.Reset()
	proxy.On(testbed.Fault{Match: swarmtest.Update, Nth: 1, Do: swarmtest.Before(func() { touch(t, other) })})
	proxy.On(testbed.Fault{Match: swarmtest.Update, Nth: 3, Do: testbed.Fail("no quorum")}) // Nth 2 repeats the first

	_, err = other.Lock(t.Context(), jobLock, bob)
	wantLocked(t, err, ada)
	last, renewed := version(t, e), 0
	acctest.Eventually(t, "renewals", func() bool {
		_, err := other.Lock(t.Context(), jobLock, bob)
		wantLocked(t, err, ada)
		if now := version(t, other); now != last {
			last = now
			renewed++
		}
		return renewed >= 4 || t.Failed()
	})
	if held.Err() != nil {
		t.Errorf("what its holder does has ended: %v", context.Cause(held))
	}
	proxy.Reset()
	proxy.On(testbed.Fault{Match: swarmtest.Update, Nth: 1, Do: swarmtest.Before(func() { touch(t, other) })})
	must(t, release())
	e.wantObjects(t, "cluster 1")
}

// touch changes the object of the job's lock, but not the lease.
func touch(t *testing.T, e storage) {
	t.Helper()
	found, err := e.swarm.Connection.ConfigNamed(t.Context(), spec.LockName(e.swarm.Cluster, jobLock))
	must(t, err)
	m, err := e.swarm.Connection.Manager(t.Context())
	must(t, err)
	must(t, m.ConfigUpdate(t.Context(), found.ID, found.Version, found.Spec))
}

func TestLeaseExpires(t *testing.T) {
	l := Leases{lease: 15 * time.Second, seen: map[string]sighting{}}
	start := time.Unix(1_700_000_000, 0)
	for i, look := range []struct {
		object  string
		version uint64
		after   time.Duration
		want    bool
	}{
		{"a", 7, 0, false},
		{"a", 7, 14 * time.Second, false},
		{"b", 7, 14 * time.Second, false},
		{"a", 7, 15 * time.Second, true},
		{"a", 8, 16 * time.Second, false}, // renewed
		{"a", 8, 30 * time.Second, false},
		{"b", 7, 29 * time.Second, true},
		{"a", 8, 31 * time.Second, true},
	} {
		if got := l.expired(look.object, look.version, start.Add(look.after)); got != look.want {
			t.Errorf("look %d: version %d of %s after %s expired: %v, not %v", i+1, look.version, look.object,
				look.after, got, look.want)
		}
	}
	l.forget("a")
	if l.expired("a", 8, start.Add(time.Hour)) {
		t.Error("what was forgotten has expired")
	}
}
