package swarm

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// TestRemoveFilesLeavesItems: what goes before the items takes none of them along.
func TestRemoveFilesLeavesItems(t *testing.T) {
	e, _ := stored(t, "files")
	want := []string{"cluster 1"}
	for _, kind := range append([]domain.Kind{domain.GPUPoolKind}, storetest.Kinds...) {
		key := engine.Key{Kind: kind, Name: "job"}
		puts(t, e, key, 1)
		want = append(want, objectOf(key, 1))
	}
	leave(t, e, configObject(domain.MemberSpec{Cluster: "files", Group: "job"}, "hosts", "a\n"))
	must(t, e.removeFiles(t.Context()))
	wantObjects(t, e, want...)
}
