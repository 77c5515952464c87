//go:build linux

package members

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

func keep(in dockerapi.Swarm) engine.Store { return store.NewItems(in) }

// stored returns the members of a cluster with a stored document, see [swarmtest.Stored].
func stored(t *testing.T, cluster string) (Members, *testbed.Proxy) {
	t.Helper()
	in, proxy := swarmtest.Stored(t, cluster, keep)
	return New(in, images.New(in, images.NewTags()), NewMemory()), proxy
}

// remembered returns the members with each list of the Swarm read at most once.
func (e Members) remembered() Members {
	e.Reads = e.Reads.Remembered(e.Cluster)
	e.Items = keep(e.Swarm)
	return e
}
