//go:build linux

package node

import (
	"context"
	"errors"
	"testing"
)

// TestWatches: concurrent watchers of a cluster share one watch, which ends with the last of them, or for all if it is
// lost.
func TestWatches(t *testing.T) {
	var w watches
	lab := watchKey{cluster: "lab"}
	var begun int
	var source chan struct{}
	var watching context.Context
	begin := func(ctx context.Context) (<-chan struct{}, error) {
		begun++
		watching, source = ctx, make(chan struct{})
		context.AfterFunc(ctx, func() { close(source) })
		return source, nil
	}
	first, leave := context.WithCancel(t.Context())
	a, err := w.watch(first, lab, begin)
	if err != nil {
		t.Fatal(err)
	}
	second, leaveToo := context.WithCancel(t.Context())
	b, err := w.watch(second, lab, begin)
	if err != nil || begun != 1 {
		t.Fatalf("there are %d watches, %v", begun, err)
	}
	source <- struct{}{}
	<-a
	<-b
	leave()
	for range a { // until it is closed
	}
	source <- struct{}{}
	<-b
	if watching.Err() != nil {
		t.Error("it ended with the first")
	}
	leaveToo()
	<-watching.Done()
	for range b {
	}

	if _, err := w.watch(t.Context(), lab, func(context.Context) (<-chan struct{}, error) {
		return nil, errors.New("refused")
	}); err == nil {
		t.Error("there is no error")
	}
	lost := make(chan struct{})
	c, err := w.watch(t.Context(), lab, func(context.Context) (<-chan struct{}, error) { return lost, nil })
	if err != nil {
		t.Fatal(err)
	}
	close(lost)
	for range c {
	}
}
