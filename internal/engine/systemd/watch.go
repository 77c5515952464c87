package systemd

import (
	"context"
	"sync"
	"time"
)

// watchAgain is the pause before a host with a lost connection is watched again.
const watchAgain = time.Second

// Watch reports changes on all hosts, from when it returns. A lost host is watched again as soon as it is back, which
// counts as a change too.
func (e *Engine) Watch(ctx context.Context) (<-chan struct{}, error) {
	p, err := e.place(ctx)
	if err != nil {
		return nil, err
	}
	watched := map[string]*host{p.ledger.Host: p.store}
	for name, of := range p.hosts {
		if watched[name], err = e.named(name, of); err != nil {
			return nil, err
		}
	}
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default: // a change is pending already
		}
	}
	var begun, ended sync.WaitGroup
	for _, h := range watched {
		begun.Add(1)
		ended.Go(func() { e.watch(ctx, h, sync.OnceFunc(begun.Done), changed) })
	}
	begun.Wait()
	go func() {
		ended.Wait()
		close(changes)
	}()
	return changes, ctx.Err()
}

// watch calls begun when it watches a host, or can't, and changed after each change from then on, until ctx is done.
func (e *Engine) watch(ctx context.Context, h *host, begun, changed func()) {
	first := true
	for ctx.Err() == nil {
		// The error is reported to callers that ask the host something.
		_ = h.Watch(ctx, e.ref.Name, func() {
			if first {
				first = false
				begun()
				return
			}
			changed()
		})
		first = false
		begun()
		changed()
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}
