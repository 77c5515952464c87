package controller

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// leased is a lab whose locks are leases: releasing one takes a moment, and an unreleased one
// blocks the next controller.
type leased struct {
	*lab

	taken, ended chan struct{}
}

func (l leased) Snapshot() engine.Engine { return l }

func (l leased) Guard(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (l leased) Hold(ctx context.Context, name string, holder engine.Holder) (context.Context, func() error, error) {
	held, release, err := engine.HoldFor(ctx, l, name, holder)
	l.taken <- struct{}{}
	return held, func() error {
		<-time.After(time.Second) // of the test's clock
		l.ended <- struct{}{}
		return release()
	}, err
}

// TestEndsItsLocks: a controller has released its locks when Run returns.
func TestEndsItsLocks(t *testing.T) {
	l := newLab(t, func(*domain.AutoscalingPolicy) {})
	// All of the process use the same codecs of histories, whose channels must not be made in the bubble.
	stored := newItems()
	h := newHistoryKeeper(stored)
	h.Add(decided(noon, 1, 1))
	l.must(nil, h.Flush(t.Context(), noon))
	if got := stored.counts(t); got != "1→1" {
		t.Fatalf("the history is %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		leases := leased{l, make(chan struct{}, 1), make(chan struct{}, 1)}
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() { returned <- Run(ctx, leases, Options{Cluster: "lab"}, slog.New(slog.DiscardHandler)) }()
		<-leases.taken
		synctest.Wait() // it has decided, and stored that
		stop()
		if err := <-returned; err != nil {
			t.Error(err)
		}
		if len(leases.ended) == 0 {
			t.Error("it has ended with the lock of the policies")
			<-leases.ended
		}
	})
}
