package systemd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// errNotRenewed is the reason why a lock is considered lost, if nobody could report whether it was.
var errNotRenewed = errors.New("the store host could not be reached to renew the lease")

// Lock takes a lock by a lease on the store host.
func (e *Engine) Lock(ctx context.Context, name string, holder engine.Holder) (release func() error, err error) {
	l, err := e.take(ctx, name, holder)
	if err != nil {
		return nil, err
	}
	return l.keep(context.WithoutCancel(ctx), nil), nil
}

// Hold takes a lock as Lock does, for a holder that has to learn when it is lost.
func (e *Engine) Hold(
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
func (e *Engine) take(ctx context.Context, name string, holder engine.Holder) (*lock, error) {
	p, err := e.writable(ctx)
	if err != nil {
		return nil, err
	}
	l := &lock{engine: e, lease: relay.Lease{Lock: name, Token: rand.Text(), Holder: holder}, asked: time.Now()}
	if _, err := relay.Acquire.Ask(ctx, p.store.Client, e.ref.Name, l.lease); err != nil {
		if ctx.Err() != nil { // it may have been taken
			l.drop()
		}
		return nil, err
	}
	l.lease.Renew = true
	return l, nil
}

// lock is a lock that is held.
type lock struct {
	engine *Engine
	lease  relay.Lease
	// asked is when the last successful renewal was requested: it can't have been made earlier.
	asked time.Time
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
			err = l.free(ctx)
		}
		switch {
		case errors.Is(err, engine.ErrLockLost):
			return fmt.Errorf("lock %q was lost: %w", l.lease.Lock, engine.ErrLockLost)
		case errors.Is(err, engine.ErrNotFound):
			return nil // the cluster is gone, with all its locks
		case err != nil:
			return fmt.Errorf("lock %q: %w after %s: %w", l.lease.Lock, engine.ErrLockUnreleased, relay.LeaseDuration,
				err)
		}
		return nil
	})
}

// free ends the lease.
func (l *lock) free(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, relay.LeaseDuration)
	defer cancel()
	err := l.ask(ctx, relay.Release)
	if !errors.Is(err, engine.ErrUnreachable) {
		return err
	}
	// The connection broke: the first call may have released the lock.
	if err = l.ask(ctx, relay.Release); errors.Is(err, engine.ErrLockLost) {
		err = nil
	}
	return err
}

// drop ends a lease that may exist.
func (l *lock) drop() {
	go func() { _ = l.free(context.Background()) }() // otherwise it expires
}

// ask calls the current store host.
func (l *lock) ask(ctx context.Context, call relay.Call[relay.Lease, relay.None]) error {
	p, err := l.engine.writable(ctx)
	if err != nil {
		return err
	}
	_, err = call.Ask(ctx, p.store.Client, l.engine.ref.Name, l.lease)
	return err
}

// renewUntil renews the lease until ctx is done or the lease is lost. Some time before anybody else can take the lock,
// it is reported as lost.
func (l *lock) renewUntil(ctx context.Context, lose func(cause error)) error {
	const period = relay.LeaseDuration / relay.Renewals
	reliable := func() time.Duration { return time.Until(l.asked.Add(relay.LeaseDuration - period/2)) }
	unreliable := time.AfterFunc(reliable(),
		func() { lose(fmt.Errorf("lock %q was lost: %w", l.lease.Lock, errNotRenewed)) })
	defer unreliable.Stop()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, period)
		err := l.ask(limited, relay.Acquire)
		cancel()
		switch {
		case errors.Is(err, engine.ErrLockLost):
			lose(fmt.Errorf("lock %q was lost: %w", l.lease.Lock, err))
			return err
		case err == nil:
			l.asked = asked
			unreliable.Reset(reliable())
		}
	}
}
