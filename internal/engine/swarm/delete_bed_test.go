package swarm

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
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
	leave(t, e, spec.Configs([]domain.MemberSpec{{Cluster: "files", Group: "job", Files: []domain.File{{Name: "hosts", Content: "a\n"}}}})[0])
	must(t, e.removeFiles(t.Context()))
	wantObjects(t, e, want...)
}
