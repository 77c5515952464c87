package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// labelLease holds the lease of a lock: only a config object's labels can be changed.
	labelLease = spec.LabelPrefix + "lease"
	// leaseDuration is how long a lock is held after its last renewal, and renewals is how often it is renewed within
	// that time.
	leaseDuration = 30 * time.Second
	// removalRetry is the pause before a release is repeated for which no manager answered.
	removalRetry = 500 * time.Millisecond
	renewals     = 3
)

// errNotRenewed is the cause with which a holder's context ends if the lock could not be renewed for so long that
// somebody else may have it.
var errNotRenewed = errors.New("no manager of the Swarm renewed it in time")

// Leases are what an engine knows about locks between calls.
type Leases struct {
	// Self is the process that takes locks.
	Self  Owner
	lease time.Duration

	mu sync.Mutex
	// seen are the locks held by others, by object name.
	seen map[string]sighting
}

// sighting is when a version of a lock's object was first seen.
type sighting struct {
	version uint64
	at      time.Time
	// renewed means that another version was seen before.
	renewed bool
}

// NewLeases returns the leases of this process, which has seen none yet.
func NewLeases() *Leases {
	return &Leases{Self: ThisProcess(), lease: leaseDuration, seen: map[string]sighting{}}
}

// expired reports whether a lock's lease has not been renewed for its whole duration. The duration counts from when the
// version was first seen here, so that only this machine's clock matters.
func (l *Leases) expired(object string, version uint64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen, known := l.seen[object]
	if !known || seen.version != version {
		l.seen[object] = sighting{version, now, known}
		return false
	}
	return now.Sub(seen.at) >= l.lease
}

// unsure reports whether the holder of a lock may be dead: it is not on this machine, and was not seen to renew it.
func (l *Leases) unsure(object string, current lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (l.Self.Machine == "" || current.Owner.Machine != l.Self.Machine) && !l.seen[object].renewed
}

// forget drops what is known about a lock.
func (l *Leases) forget(object string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, object)
}

// Locks are a cluster's locks: config objects with a lease.
type Locks struct {
	items  Items
	Leases *Leases
}

// NewLocks returns the locks of the cluster with these items.
func NewLocks(items Items, known *Leases) Locks { return Locks{items, known} }

// lease describes who holds a lock.
type lease struct {
	// Token distinguishes this lease from all others.
	Token  string        `json:"token"`
	Holder engine.Holder `json:"holder"`
	// Owner is the process that renews the lease.
	Owner Owner `json:"owner"`
}

// lock is a config object that one process holds at a time, by a lease. Each change names the version on which it is
// based, so that only one of several concurrent ones succeeds.
type lock struct {
	of     Locks
	name   string
	object string
	own    lease
	// asked is when the last write was requested: it can't have been carried out earlier.
	asked time.Time
}

// Lock takes a lock; without the cluster, the error is [engine.ErrNotFound]. A dead holder's lock is taken over at once
// if the holder was a process of this machine, or a task whose host reports its end; otherwise by a call at least a
// lease's duration after an earlier one, if the holder has not renewed it in between.
func (e Locks) Lock(ctx context.Context, name string, holder engine.Holder) (release func() error, err error) {
	l, err := e.take(ctx, name, holder)
	if err != nil {
		return nil, err
	}
	return l.keep(context.WithoutCancel(ctx), nil), nil
}

// Hold takes a lock as Lock does, for a holder that has to learn when it is lost.
func (e Locks) Hold(
	ctx context.Context, name string, holder engine.Holder,
) (held context.Context, release func() error, err error) {
	l, err := e.take(ctx, name, holder)
	if err != nil {
		return nil, nil, err
	}
	held, lose := context.WithCancelCause(ctx)
	return held, l.keep(context.WithoutCancel(ctx), lose), nil
}

// take takes a lock without renewing it.
func (e Locks) take(ctx context.Context, name string, holder engine.Holder) (*lock, error) {
	l := &lock{
		of: e, name: name, object: spec.LockName(e.items.in.Cluster, name),
		own: lease{Token: rand.Text(), Holder: holder, Owner: e.Leases.Self},
	}
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	// Checked with the lock in place, so that no lock outlives the cluster.
	configs, err := e.items.clusterObjects(ctx)
	if err == nil && len(configs) == 0 {
		err = fmt.Errorf("cluster %q: %w", e.items.in.Cluster, engine.ErrNotFound)
	}
	if err != nil {
		return nil, errors.Join(err, l.remove(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// acquire takes the lease, or returns a [*engine.LockedError].
func (l *lock) acquire(ctx context.Context) error {
	var failure error
	for {
		found, current, err := l.look(ctx)
		switch {
		case err != nil:
			return errors.Join(failure, err)
		case found != nil && current.Token == l.own.Token:
			l.of.Leases.forget(l.object)
			return nil
		case failure != nil:
			return failure
		case found != nil && !l.free(ctx, found, current):
			return &engine.LockedError{
				Lock: l.name, Holder: current.Holder, Unsure: l.of.Leases.unsure(l.object, current),
			}
		}
		// A write whose answer is lost may have been carried out, which the next look shows.
		if err := l.write(ctx, found); !raced(err) {
			failure = err
		}
	}
}

// free reports whether the holder of a lock is dead, or has to be considered dead.
func (l *lock) free(ctx context.Context, found *swarm.Config, current lease) bool {
	locks := l.of.Leases
	return current.Owner.endedFor(locks.Self) || locks.expired(l.object, found.Version.Index, time.Now()) ||
		l.of.hasEnded(ctx, current.Owner.Task)
}

// hasEnded reports whether a task's host has reported its end. A task that the Swarm gave up as lost (orphaned) may
// still run, on a host that can't be reached.
func (e Locks) hasEnded(ctx context.Context, task string) bool {
	if task == "" {
		return false
	}
	m, err := e.items.in.Connection.Manager(ctx)
	if err != nil {
		return false
	}
	found, _, err := m.TaskInspectWithRaw(ctx, task)
	return err == nil && dockerapi.Ended(found) && found.Status.State != swarm.TaskStateOrphaned
}

// look returns the lock's object, nil if there is none, and its lease.
func (l *lock) look(ctx context.Context) (found *swarm.Config, current lease, err error) {
	found, err = l.of.items.in.Connection.ConfigNamed(ctx, l.object)
	if err != nil || found == nil {
		return nil, lease{}, err
	}
	if slotOf(*found) != (slot{cluster: l.of.items.in.Cluster, kind: kindLock}) {
		return nil, lease{}, dockerapi.Foreign(l.object)
	}
	if json.Unmarshal([]byte(found.Spec.Labels[labelLease]), &current) != nil {
		// Whoever holds it has to renew it too.
		current = lease{Holder: engine.Holder{Who: "someone"}}
	}
	return found, current, nil
}

// write takes or renews the lease, based on the found version of the object.
func (l *lock) write(ctx context.Context, found *swarm.Config) error {
	l.asked = time.Now()
	m, err := l.of.items.in.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	own, err := json.Marshal(l.own)
	if err != nil {
		return err
	}
	config := swarm.ConfigSpec{Annotations: swarm.Annotations{Name: l.object}, Data: []byte(l.name)}
	if found != nil {
		config = found.Spec // only labels can be changed
	}
	config.Labels = map[string]string{
		spec.LabelCluster: l.of.items.in.Cluster, spec.LabelKind: kindLock, labelLease: string(own),
	}
	if found != nil {
		err = m.ConfigUpdate(ctx, found.ID, found.Version, config)
	} else {
		_, err = m.ConfigCreate(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("writing config object %s: %w", l.object, err)
	}
	return nil
}

// raced reports whether a write failed because somebody else's came first.
func raced(err error) bool {
	return cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) || dockerapi.OutOfSequence(err)
}

// renew renews the lease and returns the lock's object, or [engine.ErrLockLost].
func (l *lock) renew(ctx context.Context) (*swarm.Config, error) {
	for {
		found, current, err := l.look(ctx)
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			return nil, engine.ErrLockLost
		case current.Token != l.own.Token:
			return nil, fmt.Errorf("%w (%s took it over: %s)", engine.ErrLockLost, current.Holder.Who,
				current.Holder.Operation)
		}
		if err := l.write(ctx, found); !raced(err) {
			return found, err
		}
	}
}

// remove ends the lease, and retries until a manager carries that out, as one may be restarting, but no longer than the
// lease lasts. It renews the lease first, so that nobody takes the lock over meanwhile: objects are removed whatever
// their version.
func (l *lock) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.of.Leases.lease)
	defer cancel()
	asked := false
	for {
		found, err := l.renew(ctx)
		if errors.Is(err, engine.ErrLockLost) {
			if asked {
				return nil // the removal was carried out, only its answer was lost
			}
			return err
		}
		if err == nil {
			asked = true
			err = l.of.items.in.Connection.RemoveConfig(ctx, found.ID)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(removalRetry):
		}
	}
}

// keep renews the lease until the lock is released, or until it has reported by lose that the lock has to be considered
// lost. Without lose, the holder keeps it for as long as nobody else takes it.
func (l *lock) keep(ctx context.Context, lose context.CancelCauseFunc) (release func() error) {
	renewing, stop := context.WithCancel(ctx)
	cancel := func(cause error) {
		if lose != nil {
			lose(cause)
			stop() // a lock that its holder considers lost is free to take
		}
	}
	lost := make(chan error, 1)
	go func() { lost <- l.renewUntil(renewing, cancel) }()
	return sync.OnceValue(func() error {
		cancel(nil)
		stop()
		err := <-lost
		if err == nil {
			err = l.remove(ctx)
		}
		switch {
		case errors.Is(err, engine.ErrLockLost):
			return fmt.Errorf("lock %q was lost: %w", l.name, err)
		case err != nil:
			return fmt.Errorf("lock %q: %w after %s: %w", l.name, engine.ErrLockUnreleased, l.of.Leases.lease, err)
		}
		return nil
	})
}

// renewUntil renews the lease until ctx is done or the lease is lost. A failed renewal may succeed the next time; but
// some time before anybody else can take the lock, it is reported as lost.
func (l *lock) renewUntil(ctx context.Context, lose func(cause error)) error {
	period := l.of.Leases.lease / renewals
	reliable := func() time.Duration { return time.Until(l.asked.Add(l.of.Leases.lease - period/2)) }
	unreliable := time.AfterFunc(reliable(), func() { lose(fmt.Errorf("lock %q was lost: %w", l.name, errNotRenewed)) })
	defer unreliable.Stop()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.renewWithin(ctx, period)
		switch {
		case errors.Is(err, engine.ErrLockLost):
			lose(fmt.Errorf("lock %q was lost: %w", l.name, err))
			return err
		case err == nil:
			unreliable.Reset(reliable())
		}
	}
}

func (l *lock) renewWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := l.renew(ctx)
	return err
}
