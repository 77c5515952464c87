package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// ReadingOnce returns an engine whose store is read once, see [ReadOnce].
func ReadingOnce(e Engine) Engine { return readingOnce{e, ReadOnce(e)} }

type readingOnce struct {
	Engine
	store Store
}

// Get returns an item.
func (r readingOnce) Get(ctx context.Context, key Key) (Item, error) { return r.store.Get(ctx, key) }

// List returns the items of a kind.
func (r readingOnce) List(ctx context.Context, kind domain.Kind) ([]Item, error) {
	return r.store.List(ctx, kind)
}

// ReadOnce returns a store that reads each item, and each list of a kind, once. Failed reads are repeated; writes go to
// the underlying store and don't change what was read.
func ReadOnce(s Store) Store {
	return &onceStore{Store: s, lists: map[domain.Kind]listing{}, items: map[Key]listing{}}
}

// listing reads the items of a kind, or a single item.
type listing = func(ctx context.Context) ([]Item, error)

type onceStore struct {
	Store

	mu    sync.Mutex
	lists map[domain.Kind]listing
	items map[Key]listing
}

// List returns the items of a kind.
func (s *onceStore) List(ctx context.Context, kind domain.Kind) ([]Item, error) {
	s.mu.Lock()
	read, found := s.lists[kind]
	if !found {
		read = Once(func(ctx context.Context) ([]Item, error) { return s.Store.List(ctx, kind) })
		s.lists[kind] = read
	}
	s.mu.Unlock()
	return read(ctx)
}

// Get returns an item. Kinds that plans list are looked up in the list, as readers of one item need the others too; if
// the list can't be read, the item is read by itself.
func (s *onceStore) Get(ctx context.Context, key Key) (Item, error) {
	if key.Kind.Planned && key.Kind != domain.ClusterKind {
		if items, err := s.List(ctx, key.Kind); err == nil {
			return find(items, key)
		}
	}
	s.mu.Lock()
	read, found := s.items[key]
	if !found {
		read = Once(func(ctx context.Context) ([]Item, error) {
			item, err := s.Store.Get(ctx, key)
			return []Item{item}, err
		})
		s.items[key] = read
	}
	s.mu.Unlock()
	items, err := read(ctx)
	if err != nil {
		return Item{}, err
	}
	return find(items, key)
}

func find(items []Item, key Key) (Item, error) {
	i := slices.IndexFunc(items, func(item Item) bool { return item.Key == key })
	if i < 0 {
		return Item{}, ErrNotFound
	}
	return items[i], nil
}
