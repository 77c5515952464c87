//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// documentsLock guards the moment between reading an item's revision and replacing it.
const (
	documentsLock  = "documents"
	documentsRetry = 2 * time.Millisecond
)

// store keeps items as files of a state directory.
type store struct {
	dir statedir.Dir
	// remembered are the watched items, which are read repeatedly.
	remembered *statedir.Remembered[engine.Item]
}

func newStore(dir statedir.Dir) store {
	return store{dir, statedir.Remember(dir, statedir.Documents, statedir.ReadItem)}
}

// Get returns an item.
func (s store) Get(_ context.Context, key engine.Key) (engine.Item, error) {
	item, err := statedir.ReadItem(s.dir.Item(key))
	item.Key = key
	return item, err
}

// List returns the items of a kind.
func (s store) List(_ context.Context, kind domain.Kind) ([]engine.Item, error) {
	list, read := s.dir.List, func(name string, _ statedir.Stamp) (engine.Item, error) {
		return statedir.ReadItem(s.dir.Document(statedir.Items(kind), name))
	}
	if kind.Watched {
		list, read = func(string) (map[string]statedir.Stamp, error) { return s.remembered.List() }, s.remembered.Read
	}
	listed, err := list(statedir.Items(kind))
	if err != nil {
		return nil, err
	}
	var items []engine.Item
	for name, stamp := range listed {
		key, ofKind := statedir.KeyOf(kind, name)
		if !ofKind {
			continue
		}
		item, err := read(name, stamp)
		if errors.Is(err, engine.ErrNotFound) {
			continue // deleted after it was listed
		}
		if err != nil {
			return nil, err
		}
		item.Key = key
		items = append(items, item)
	}
	return items, nil
}

// Put stores an item if its revision is the stored one.
func (s store) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	if err := item.Check(engine.Traits{}); err != nil {
		return item, err
	}
	if item.Kind == domain.ClusterKind {
		if err := s.dir.Create(); err != nil {
			return item, fmt.Errorf("creating the state directory: %w", err)
		}
	}
	next := item
	next.Revision++
	next.Where = s.dir.Item(item.Key)
	err := s.replace(ctx, func() error {
		exists, err := s.dir.Exists()
		if err != nil {
			return err
		}
		if !exists && item.Kind != domain.ClusterKind {
			return fmt.Errorf("cluster %q: %w", s.dir.Cluster, engine.ErrNotFound)
		}
		stored, err := s.Get(ctx, item.Key)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		if stored.Revision != item.Revision {
			return fmt.Errorf("%w: expected revision %d of %s, found %d", engine.ErrConflict, item.Revision, item.Key,
				stored.Revision)
		}
		return s.dir.WriteItem(next)
	})
	if err != nil {
		return item, err
	}
	return next, nil
}

// Delete removes an item. The cluster's is removed last, so that the cluster is still found after a crash.
func (s store) Delete(_ context.Context, key engine.Key) error {
	if key.Kind == domain.ClusterKind {
		if err := s.dir.RemoveItems(); err != nil {
			return err
		}
	}
	return statedir.DeleteItem(s.dir.Item(key))
}

// replace calls write while nobody else replaces an item of the cluster.
func (s store) replace(ctx context.Context, write func() error) (err error) {
	for {
		lock, err := s.dir.Lock(documentsLock, engine.Holder{Who: "a write of a document", Since: time.Now()})
		var locked *engine.LockedError
		switch {
		case err == nil:
			return errors.Join(write(), lock.Release())
		case errors.Is(err, engine.ErrNotFound):
			return fmt.Errorf("cluster %q: %w", s.dir.Cluster, err)
		case !errors.As(err, &locked):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(documentsRetry):
		}
	}
}
