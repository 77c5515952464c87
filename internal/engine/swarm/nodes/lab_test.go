//go:build linux

package nodes

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

func keep(in dockerapi.Swarm) engine.Store { return store.NewItems(in) }

// engineOf is the part of an engine that deals with hosts and the cluster's store.
type engineOf struct {
	store.Items
	Hosts
}

// open returns the hosts of a cluster.
func open(t *testing.T, cluster domain.ClusterRef) engineOf {
	t.Helper()
	c, err := dockerapi.New(cluster, engine.Settings{})
	swarmtest.Must(t, err)
	return engineOn(dockerapi.Swarm{Cluster: cluster.Name, Connection: c, Reads: dockerapi.Live(c)})
}

func engineOn(in dockerapi.Swarm) engineOf {
	in.Items = keep(in)
	held := images.New(in, images.NewTags())
	of := members.New(in, held, members.NewMemory())
	return engineOf{store.NewItems(in), New(in, of, daemons.New(in, daemons.Program{}, held, of))}
}

// snapshot returns the engine with each list of the Swarm read at most once.
func (e engineOf) snapshot() engineOf {
	in := e.Swarm
	in.Reads = in.Reads.Remembered(in.Cluster)
	return engineOn(in)
}
