//go:build linux

package node

import (
	"context"
	"os"
	"sync"
	"syscall"
)

// watch reports changes of a cluster's part on this host.
func (p part) watch(ctx context.Context) (<-chan struct{}, error) {
	key := watchKey{cluster: p.dir.Cluster}
	if info, err := os.Stat(p.dir.Path()); err == nil {
		key.folder = info.Sys().(*syscall.Stat_t).Ino //nolint:forcetypeassert // always on Linux
	}
	return p.node.watches.watch(ctx, key, p.Watch)
}

// watchKey identifies a cluster's state directory: a recreated one has to be watched again.
type watchKey struct {
	cluster string
	folder  uint64
}

// watches shares one watch of a cluster among all watchers on one connection, as a user has only about 128 of them per
// host.
type watches struct {
	mu   sync.Mutex
	hubs map[watchKey]*hub
}

// hub is the watch of a cluster, and its watchers.
type hub struct {
	sharers map[chan struct{}]bool
	end     context.CancelFunc
}

// watch returns a channel that receives a value after each change, and is closed when ctx is done or the watch is lost.
func (w *watches) watch(
	ctx context.Context, key watchKey, begin func(context.Context) (<-chan struct{}, error),
) (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hubs[key]
	if h == nil {
		// It ends with the last watcher, not with the first.
		shared, end := context.WithCancel(context.WithoutCancel(ctx))
		changes, err := begin(shared)
		if err != nil {
			end()
			return nil, err
		}
		h = &hub{sharers: map[chan struct{}]bool{}, end: end}
		if w.hubs == nil {
			w.hubs = map[watchKey]*hub{}
		}
		w.hubs[key] = h
		go w.pass(key, h, changes)
	}
	own := make(chan struct{}, 1)
	h.sharers[own] = true
	context.AfterFunc(ctx, func() { w.leave(key, h, own) })
	return own, nil
}

// pass notifies all watchers of changes, until the watch ends.
func (w *watches) pass(key watchKey, h *hub, changes <-chan struct{}) {
	for range changes {
		w.mu.Lock()
		for sharer := range h.sharers {
			select {
			case sharer <- struct{}{}:
			default: // a change is pending already
			}
		}
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for sharer := range h.sharers {
		close(sharer)
	}
	h.sharers = nil
	h.end()
	if w.hubs[key] == h {
		delete(w.hubs, key)
	}
}

// leave removes a watcher. The last one ends the watch.
func (w *watches) leave(key watchKey, h *hub, own chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.sharers[own] {
		return
	}
	delete(h.sharers, own)
	close(own)
	if len(h.sharers) == 0 {
		h.end()
		if w.hubs[key] == h {
			delete(w.hubs, key)
		}
	}
}
