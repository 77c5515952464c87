package main

import (
	"context"
	"maps"
	"sync"
)

// progress is how far each partition has been read.
type progress struct {
	mu      sync.Mutex
	next    map[int32]int64
	changed chan struct{}
}

func newProgress(begin map[int32]int64) *progress {
	return &progress{next: maps.Clone(begin), changed: make(chan struct{}, 1)}
}

// note records the offset up to which a partition has been read.
func (p *progress) note(partition int32, next int64) {
	p.mu.Lock()
	p.next[partition] = next
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// reach waits until all partitions have been read up to these offsets.
func (p *progress) reach(ctx context.Context, ends map[int32]int64) error {
	for !p.reached(ends) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.changed:
		}
	}
	return nil
}

func (p *progress) reached(ends map[int32]int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, end := range ends {
		if p.next[partition] < end {
			return false
		}
	}
	return true
}
