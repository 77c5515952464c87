//go:build linux

package nodes

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestRemoveFilesLeavesItems: removing a cluster's files removes none of its items.
func TestRemoveFilesLeavesItems(t *testing.T) {
	in, _ := swarmtest.Stored(t, "files", keep)
	e := New(in, members.Members{}, daemons.Daemons{})
	want := []string{"cluster 1"}
	for _, kind := range append([]domain.Kind{domain.GPUPoolKind}, storetest.Kinds...) {
		_, err := e.Items.Put(t.Context(), engine.Item{Key: engine.Key{Kind: kind, Name: "job"}, Data: []byte("a")})
		swarmtest.Must(t, err)
		want = append(want, kind.Name+" job 1")
	}
	swarmtest.Leave(t, e.Connection, spec.Configs([]domain.MemberSpec{
		{Cluster: "files", Group: "job", Files: []domain.File{{Name: "hosts", Content: "a\n"}}},
	})[0])
	swarmtest.Must(t, e.removeFiles(t.Context()))
	swarmtest.WantObjects(t, e.Connection, e.Cluster, want...)
}
