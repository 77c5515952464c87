//go:build linux

package swarm

import (
	"context"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// documentsOn returns an engine for the items of its own cluster on a bed, and the proxy through which it reaches its
// manager. A second engine on the same cluster represents a concurrent run.
func documentsOn(t *testing.T, bed *testbed.Bed, cluster string) (*Engine, *testbed.Proxy) {
	t.Helper()
	proxy := testbed.NewProxy(t, bed.Nodes[0])
	e, err := Open(domain.ClusterRef{Engine: Name, Name: cluster, Endpoint: proxy.Host()}, engine.Settings{},
		daemons.Program{})
	must(t, err)
	t.Cleanup(func() {
		proxy.Reset()
		must(t, engine.Delete[domain.ClusterDocument](context.WithoutCancel(t.Context()), e, ""))
		swarmtest.WantObjects(t, e.Connection, e.Cluster)
	})
	return e, proxy
}

func must(t *testing.T, err error) {
	t.Helper()
	swarmtest.Must(t, err)
}
