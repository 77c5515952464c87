//go:build linux

package swarm

import (
	"errors"
	"maps"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestSnapshotOfDocuments: a plan reads all documents with one list, and, as there are groups, requests the lists that
// describe them in advance.
func TestSnapshotOfDocuments(t *testing.T) {
	e, proxy := documentsOn(t, testbed.Shared(t, swarmtest.Three), "snapshot")
	_, err := engine.Put(t.Context(), e, domain.ClusterDocument{Spec: domain.Cluster{Name: "snapshot", Engine: Name}})
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.GroupDocument{Spec: domain.Group{Cluster: "snapshot", Name: "job"}})
	must(t, err)
	snapshot := e.Snapshot()
	proxy.Reset()
	for range 2 {
		_, clusterErr := engine.Cluster(t.Context(), snapshot)
		_, groupErr := engine.Get[domain.GroupDocument](t.Context(), snapshot, "job")
		_, groupsErr := engine.List[domain.GroupDocument](t.Context(), snapshot)
		must(t, errors.Join(clusterErr, groupErr, groupsErr))
	}
	observed, err := snapshot.Observe(t.Context(), "job")
	must(t, err)
	if len(observed) > 0 {
		t.Errorf("a group without members has %v", observed)
	}
	asked := map[string]int{}
	for _, call := range proxy.Calls() {
		asked[call.Path]++
	}
	if want := map[string]int{"/configs": 1, "/services": 1, "/tasks": 1, "/nodes": 1}; !maps.Equal(asked, want) {
		t.Errorf("the calls were %v", asked)
	}
	// Writes through a snapshot are not based on what it has read.
	doc, err := engine.Put(t.Context(), e, domain.GroupDocument{Spec: domain.Group{Cluster: "snapshot", Name: "new"}})
	must(t, err)
	_, err = engine.Put(t.Context(), snapshot, doc)
	must(t, err)
}
