//go:build linux

package store

import (
	"context"
	"errors"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

// storage is what is stored of a cluster: its items and its locks.
type storage struct {
	Items
	Locks

	swarm dockerapi.Swarm
}

func keep(in dockerapi.Swarm) engine.Store { return NewItems(in) }

// storageOf returns the storage of a cluster, see [swarmtest.Storage].
func storageOf(t *testing.T, cluster string) storage {
	t.Helper()
	in, _ := swarmtest.Storage(t, cluster, keep)
	return storage{NewItems(in), NewLocks(NewItems(in), NewLeases()), in}
}

// stored is storageOf with the cluster's document stored.
func stored(t *testing.T, cluster string) (storage, *testbed.Proxy) {
	t.Helper()
	in, proxy := swarmtest.Stored(t, cluster, keep)
	return storage{NewItems(in), NewLocks(NewItems(in), NewLeases()), in}, proxy
}

// deleteItems deletes everything stored of a cluster.
func deleteItems(ctx context.Context, s engine.Store) error {
	return engine.Delete[domain.ClusterDocument](ctx, s, "")
}

func (s storage) wantObjects(t *testing.T, want ...string) {
	t.Helper()
	swarmtest.WantObjects(t, s.swarm.Connection, s.swarm.Cluster, want...)
}

func must(t *testing.T, err error) {
	t.Helper()
	swarmtest.Must(t, err)
}

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("%v, not ErrNotFound", err)
	}
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, engine.ErrConflict) {
		t.Errorf("%v, not ErrConflict", err)
	}
}
