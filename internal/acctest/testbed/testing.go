//go:build linux

package testbed

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// SkipIfShort skips a test that takes Docker Engines under -short, as in make test-unit. New and Shared call it.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("this starts Docker Engines, which takes root and time: run make test-swarm")
	}
}

// New starts a bed that ends with the test. Where none can be had the test fails: it is skipped only under -short.
func New(t testing.TB, options Options) *Bed {
	t.Helper()
	bed := start(t, options)
	t.Cleanup(func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	})
	bed.logFailure(t)
	return bed
}

var (
	sharedMutex sync.Mutex
	shared      = map[Options]*Bed{}
)

// Shared is the bed with these options that all tests of the process share; the first one starts it. A test leaves it
// as it found it. TestMain ends the process with CloseShared.
func Shared(t testing.TB, options Options) *Bed {
	t.Helper()
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	bed := shared[options]
	if bed == nil {
		bed = start(t, options)
		shared[options] = bed
	}
	bed.logFailure(t)
	return bed
}

// CloseShared closes all shared beds.
func CloseShared() error {
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	var err error
	for options, bed := range shared {
		err = errors.Join(err, bed.Close())
		delete(shared, options)
	}
	return err
}

// start starts a bed or fails the test.
func start(t testing.TB, options Options) *Bed {
	t.Helper()
	SkipIfShort(t)
	if _, _, err := options.install(t.Context()); err != nil { // not part of the bed's start
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	bed, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	return bed
}

// logFailure has a test that fails log what last went wrong in the engines, and little of it: what the test says is not to drown in it.
func (b *Bed) logFailure(t testing.TB) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, node := range b.Nodes {
			if wrong := node.errors(); wrong != "" {
				t.Logf("the engine of %s:\n%s", node.Name, wrong)
			}
		}
	})
}
