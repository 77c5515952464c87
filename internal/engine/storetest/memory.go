package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Memory is a store in memory, for tests. Its zero value is empty.
type Memory struct {
	// Changed is called after each change of a watched item, unless it is nil.
	Changed func()

	mu    sync.Mutex
	items map[engine.Key]engine.Item
}

// Get returns an item.
func (m *Memory) Get(_ context.Context, key engine.Key) (engine.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, found := m.items[key]
	if !found {
		return engine.Item{}, engine.ErrNotFound
	}
	return item, nil
}

// List returns the items of a kind.
func (m *Memory) List(_ context.Context, kind domain.Kind) ([]engine.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []engine.Item
	for key, item := range m.items {
		if key.Kind == kind {
			items = append(items, item)
		}
	}
	return items, nil
}

// Put stores an item.
func (m *Memory) Put(_ context.Context, item engine.Item) (engine.Item, error) {
	if err := item.Check(engine.Traits{}); err != nil {
		return item, err
	}
	stored, err := m.put(item)
	if err == nil {
		m.changed(item.Kind)
	}
	return stored, err
}

func (m *Memory) put(item engine.Item) (engine.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, found := m.items[engine.Key{Kind: domain.ClusterKind}]; !found && item.Kind != domain.ClusterKind {
		return item, fmt.Errorf("the cluster: %w", engine.ErrNotFound)
	}
	if found := m.items[item.Key].Revision; found != item.Revision {
		return item, fmt.Errorf("%w: expected revision %d of %s, found %d", engine.ErrConflict, item.Revision, item.Key,
			found)
	}
	item.Revision++
	item.Where = item.String()
	if m.items == nil {
		m.items = map[engine.Key]engine.Item{}
	}
	m.items[item.Key] = item
	return item, nil
}

// Delete removes an item.
func (m *Memory) Delete(_ context.Context, key engine.Key) error {
	m.mu.Lock()
	delete(m.items, key)
	if key.Kind == domain.ClusterKind {
		m.items = nil
	}
	m.mu.Unlock()
	m.changed(key.Kind)
	return nil
}

func (m *Memory) changed(kind domain.Kind) {
	if kind.Watched && m.Changed != nil {
		m.Changed()
	}
}

// Drop removes an item, and no others with it.
func (m *Memory) Drop(key engine.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, key)
}

// Set stores an item as it is, replacing what was there before.
func (m *Memory) Set(item engine.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[engine.Key]engine.Item{}
	}
	m.items[item.Key] = item
}
