//go:build linux

package swarmtest

import (
	"context"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// Storage returns a Swarm of a single manager with the storage of a new cluster, and the proxy through which that
// manager is reached. A second one on the same cluster represents a concurrent run.
func Storage(t *testing.T, cluster string, keep func(dockerapi.Swarm) engine.Store) (dockerapi.Swarm, *testbed.Proxy) {
	t.Helper()
	c, proxy := Connect(t, testbed.Shared(t, One), cluster)
	in := dockerapi.Swarm{Cluster: cluster, Connection: c, Reads: dockerapi.Live(c)}
	in.Items = keep(in)
	t.Cleanup(func() {
		proxy.Reset()
		Must(t, engine.Delete[domain.ClusterDocument](context.WithoutCancel(t.Context()), in.Items, ""))
		WantObjects(t, c, cluster)
	})
	return in, proxy
}

// Stored is [Storage] with the cluster's document stored.
func Stored(t *testing.T, cluster string, keep func(dockerapi.Swarm) engine.Store) (dockerapi.Swarm, *testbed.Proxy) {
	t.Helper()
	in, proxy := Storage(t, cluster, keep)
	_, err := engine.Put(t.Context(), in.Items,
		domain.ClusterDocument{Spec: domain.Cluster{Name: cluster, Engine: dockerapi.EngineName}})
	Must(t, err)
	return in, proxy
}
