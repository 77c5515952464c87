//go:build linux

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

const (
	// ledgerLock guards the store and its ledger while they change together.
	ledgerLock  = "ledger"
	ledgerRetry = 2 * time.Millisecond
)

func notFound(err error) bool { return errors.Is(err, engine.ErrNotFound) }

// ledger returns how current this host's copy of the store is.
func (p part) ledger() (relay.Ledger, error) {
	ledger, err := statedir.Read[relay.Ledger](p.dir.Path("ledger.json"))
	if notFound(err) {
		err = relay.ErrOutside
	}
	return ledger, err
}

// locate returns the ledger, with the cluster.
func (p part) locate(ctx context.Context) (located relay.Located, err error) {
	if located.Ledger, err = p.ledger(); err != nil {
		return located, err
	}
	item, err := p.Get(ctx, engine.Key{Kind: domain.ClusterKind})
	if notFound(err) {
		return located, nil
	}
	located.Cluster = &item
	return located, err
}

func (p part) writeLedger(ledger relay.Ledger) error {
	return statedir.Write(p.dir.Path("ledger.json"), ledger, statedir.Durable)
}

// alone calls a function while nobody else changes the store or its ledger.
func (p part) alone(ctx context.Context, name string, do func() error) error {
	for {
		lock, err := p.dir.Lock(name, engine.Holder{Who: "a write to the store", Since: time.Now()})
		switch {
		case err == nil:
			return errors.Join(do(), lock.Release())
		case notFound(err):
			return fmt.Errorf("cluster %q: %w", p.dir.Cluster, err)
		}
		if _, locked := errors.AsType[*engine.LockedError](err); !locked {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(ledgerRetry):
		}
	}
}

// change makes one change of the store. The ledger counts it first: after a crash in between, the copies seem to lack a
// change, and are restored as a whole.
func (p part) change(ctx context.Context, change func() error) (ledger relay.Ledger, err error) {
	err = p.alone(ctx, ledgerLock, func() error {
		if ledger, err = p.ledger(); err != nil {
			return err
		}
		if ledger.Host != ledger.Store {
			return fmt.Errorf("host %s: %w of cluster %q, which is %s", ledger.Host, relay.ErrDeposed, p.dir.Cluster,
				ledger.Store)
		}
		before := ledger
		ledger.Sequence++
		if err := p.writeLedger(ledger); err != nil {
			return err
		}
		err := change()
		if errors.Is(err, engine.ErrConflict) || notFound(err) {
			return errors.Join(err, p.writeLedger(before)) // nothing was changed
		}
		return err
	})
	return ledger, err
}

func (p part) put(ctx context.Context, item engine.Item) (written relay.Written, err error) {
	written.Ledger, err = p.change(ctx, func() (err error) {
		written.Item, err = p.Put(ctx, item)
		return err
	})
	return written, err
}

func (p part) delete(ctx context.Context, key engine.Key) (relay.Ledger, error) {
	return p.change(ctx, func() error { return p.Delete(ctx, key) })
}

// copy repeats a change of the store host.
func (p part) copy(ctx context.Context, change relay.Change) error {
	return p.alone(ctx, ledgerLock, func() error {
		own, err := p.ledger()
		if err != nil {
			return err
		}
		switch theirs := change.Ledger; {
		case theirs.Epoch < own.Epoch:
			return p.deposed(own, theirs)
		case theirs.Epoch == own.Epoch && theirs.Sequence <= own.Sequence:
			return nil // it was part of a later one
		case theirs.Epoch > own.Epoch || theirs.Sequence > own.Sequence+1:
			return relay.ErrBehind
		}
		if change.Item != nil {
			if err := p.dir.Create(); err != nil {
				return err
			}
			err = p.dir.WriteItem(*change.Item)
		} else {
			err = p.Delete(ctx, *change.Deleted)
		}
		if err != nil {
			return err
		}
		own.Sequence = change.Ledger.Sequence
		return p.writeLedger(own)
	})
}

func (p part) deposed(own, theirs relay.Ledger) error {
	return fmt.Errorf("host %s: %w of cluster %q: host %s took its place", theirs.Store, relay.ErrDeposed,
		p.dir.Cluster, own.Store)
}

// items returns all items.
func (p part) items() (items []engine.Item, err error) {
	for _, folder := range []string{statedir.Documents, statedir.Records} {
		names, err := p.dir.Names(folder)
		if err != nil {
			return nil, err
		}
		for name := range names {
			item, err := statedir.ReadItem(p.dir.Document(folder, name))
			if notFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			item.Key = statedir.AnyKey(folder, name)
			items = append(items, item)
		}
	}
	return items, nil
}

// dump returns everything stored.
func (p part) dump(ctx context.Context) (contents relay.Contents, err error) {
	err = p.alone(ctx, ledgerLock, func() (err error) {
		if contents.Ledger, err = p.ledger(); err == nil {
			contents.Items, err = p.items()
		}
		return err
	})
	return contents, err
}

// restore replaces everything stored.
func (p part) restore(ctx context.Context, contents relay.Contents) error {
	return p.alone(ctx, ledgerLock, func() error {
		own, err := p.ledger()
		if err != nil {
			return err
		}
		switch {
		case own.Epoch > contents.Ledger.Epoch:
			return p.deposed(own, contents.Ledger)
		case contents.Over != nil && own.Host == own.Store && !own.Equal(*contents.Over):
			return fmt.Errorf("host %s: %w", own.Host, relay.ErrChanged)
		case own.Newer(contents.Ledger):
			return nil // it was brought up to date meanwhile
		}
		next := contents.Ledger
		next.Host = own.Host
		// A crash in the middle leaves a copy to which no change applies, so that it is restored again.
		if err := p.writeLedger(
			relay.Ledger{Host: own.Host, Store: next.Store, Epoch: next.Epoch, Sequence: -1},
		); err != nil {
			return err
		}
		keep := map[string]bool{}
		for _, item := range contents.Items {
			path := p.dir.Item(item.Key)
			keep[path] = true
			if has, err := statedir.ReadItem(path); err == nil && has.Revision == item.Revision &&
				bytes.Equal(has.Data, item.Data) {
				continue // a store that moves is restored again and again until nothing has changed meanwhile
			}
			if err := p.dir.WriteItem(item); err != nil {
				return err
			}
		}
		present, err := p.items()
		if err != nil {
			return err
		}
		for _, item := range present {
			if path := p.dir.Item(item.Key); !keep[path] && item.Kind.Name != domain.ClusterKind.Name {
				if err := statedir.DeleteItem(path); err != nil {
					return err
				}
			}
		}
		return p.writeLedger(next)
	})
}
