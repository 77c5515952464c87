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
	// labelLease is the lease of a lock: labels are what can be changed of a config object.
	labelLease = spec.LabelPrefix + "lease"
	// leaseDuration is for how long a lock is held after it was last renewed, and renewals is how often it is renewed
	// within that.
	leaseDuration = 30 * time.Second
	// removalRetry is when a lock is released again for which no manager answered.
	removalRetry = 500 * time.Millisecond
	renewals     = 3
)

// errNotRenewed is the cause of the end of what somebody does who holds a lock, and could not renew it for so long that
// it may be another's.
var errNotRenewed = errors.New("no manager of the Swarm renewed it in time")

// Leases are what an engine knows about locks from one call to the next.
type Leases struct {
	// Self is the process that holds and asks.
	Self  Owner
	lease time.Duration

	mu sync.Mutex
	// seen are the locks that somebody else holds, by their objects' names.
	seen map[string]sighting
}

// sighting is when a version of a lock's object was first seen.
type sighting struct {
	version uint64
	at      time.Time
	// renewed tells that another version was seen before.
	renewed bool
}

// NewLeases returns the leases of the present process, which has seen none.
func NewLeases() *Leases {
	return &Leases{Self: ThisProcess(), lease: leaseDuration, seen: map[string]sighting{}}
}

// expired reports whether the lease of a lock has not been renewed for its whole duration. No clock but this
// machine's is asked: the duration counts from when the version was first seen here.
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

// unsure reports whether the holder of a lock may be dead: it is not of this machine, and was not seen to renew it.
func (l *Leases) unsure(object string, current lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return (l.Self.Machine == "" || current.Owner.Machine != l.Self.Machine) && !l.seen[object].renewed
}

// forget drops what was seen of a lock.
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

// NewLocks returns the locks of the cluster that has items.
func NewLocks(items Items, known *Leases) Locks { return Locks{items, known} }

// lease is who holds a lock.
type lease struct {
	// Token tells this lease from all others.
	Token  string        `json:"token"`
	Holder engine.Holder `json:"holder"`
	// Owner is the process that renews the lease.
	Owner Owner `json:"owner"`
}

// lock is a config object that one process holds at a time, by a lease. Whoever changes it names the version on which
// the change is based, so that of several one succeeds.
type lock struct {
	of     Locks
	name   string
	object string
	own    lease
	// asked is when the last write was asked for: it can't have been carried out before.
	asked time.Time
}

// Lock takes a lock. It needs the cluster to be there, and is [engine.ErrNotFound] otherwise. A lock whose holder has
// died is taken over: at once where it was a process of this machine, or a task of which its host says so, else by a
// call that comes at least the duration of a lease after another one, if the holder has not renewed it in between.
func (e Locks) Lock(ctx context.Context, name string, holder engine.Holder) (release func() error, err error) {
	l, err := e.take(ctx, name, holder)
	if err != nil {
		return nil, err
	}
	return l.keep(context.WithoutCancel(ctx), nil), nil
}

// Hold takes a lock as Lock does, for somebody who is to be told when it is lost.
func (e Locks) Hold(ctx context.Context, name string, holder engine.Holder) (held context.Context, release func() error, err error) {
	l, err := e.take(ctx, name, holder)
	if err != nil {
		return nil, nil, err
	}
	held, lose := context.WithCancelCause(ctx)
	return held, l.keep(context.WithoutCancel(ctx), lose), nil
}

// take takes a lock that is to be renewed.
func (e Locks) take(ctx context.Context, name string, holder engine.Holder) (*lock, error) {
	l := &lock{
		of: e, name: name, object: spec.LockName(e.items.in.Cluster, name),
		own: lease{Token: rand.Text(), Holder: holder, Owner: e.Leases.Self},
	}
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	// Looked at with the lock in place, so that no lock outlives the cluster.
	configs, err := e.items.clusterObjects(ctx)
	if err == nil && len(configs) == 0 {
		err = fmt.Errorf("cluster %q: %w", e.items.in.Cluster, engine.ErrNotFound)
	}
	if err != nil {
		return nil, errors.Join(err, l.remove(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// acquire makes the lease ours, or returns a [*engine.LockedError].
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
			return &engine.LockedError{Lock: l.name, Holder: current.Holder, Unsure: l.of.Leases.unsure(l.object, current)}
		}
		// A write whose answer is lost may have been carried out: that is seen by another look.
		if err := l.write(ctx, found); !raced(err) {
			failure = err
		}
	}
}

// free reports whether the holder of a lock is dead, or has to be taken for dead.
func (l *lock) free(ctx context.Context, found *swarm.Config, current lease) bool {
	locks := l.of.Leases
	return current.Owner.endedFor(locks.Self) || locks.expired(l.object, found.Version.Index, time.Now()) || l.of.hasEnded(ctx, current.Owner.Task)
}

// hasEnded reports whether the host of a task has told that it ended. The Swarm may give one up for lost that goes on,
// on a host that nobody hears of.
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

// look returns the lock's object, nil where there is none, and its lease.
func (l *lock) look(ctx context.Context) (found *swarm.Config, current lease, err error) {
	found, err = l.of.items.in.Connection.ConfigNamed(ctx, l.object)
	if err != nil || found == nil {
		return nil, lease{}, err
	}
	if slotOf(*found) != (slot{cluster: l.of.items.in.Cluster, kind: kindLock}) {
		return nil, lease{}, dockerapi.Foreign(l.object)
	}
	if json.Unmarshal([]byte(found.Spec.Labels[labelLease]), &current) != nil {
		// Whoever it is has to renew it, too.
		current = lease{Holder: engine.Holder{Who: "someone"}}
	}
	return found, current, nil
}

// write makes the lease ours, or renews it, on top of the object as it was found.
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
	config.Labels = map[string]string{spec.LabelCluster: l.of.items.in.Cluster, spec.LabelKind: kindLock, labelLease: string(own)}
	if found != nil {
		err = m.ConfigUpdate(ctx, found.ID, found.Version, config)
	} else {
		_, err = m.ConfigCreate(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("config object %s can't be written: %w", l.object, err)
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
			return nil, fmt.Errorf("%w (%s took it over: %s)", engine.ErrLockLost, current.Holder.Who, current.Holder.Operation)
		}
		if err := l.write(ctx, found); !raced(err) {
			return found, err
		}
	}
}

// remove ends the lease, as soon as a manager carries that out: one may just be restarting. It waits no longer than the
// lease lasts. The lease is renewed before, as an object is removed whatever its version: so nobody takes it over
// meanwhile.
func (l *lock) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.of.Leases.lease)
	defer cancel()
	asked := false
	for {
		found, err := l.renew(ctx)
		if errors.Is(err, engine.ErrLockLost) {
			if asked {
				return nil // a removal whose answer was lost was carried out
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

// keep renews the lease until the lock is released, or until it has told lose that the lock has to be taken for lost.
// Whoever can't be told, without lose, has it for as long as nobody else takes it.
func (l *lock) keep(ctx context.Context, lose context.CancelCauseFunc) (release func() error) {
	renewing, stop := context.WithCancel(ctx)
	told := func(cause error) {
		if lose != nil {
			lose(cause)
			stop() // nobody is kept from a lock that its holder takes for lost
		}
	}
	lost := make(chan error, 1)
	go func() { lost <- l.renewUntil(renewing, told) }()
	return sync.OnceValue(func() error {
		told(nil)
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

// renewUntil renews the lease until ctx is done, or until it is lost. A manager that does not answer may do so
// the next time; but from some time before anybody else can have the lock, nobody is to rely on it any more.
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
