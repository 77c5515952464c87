package gpus

import (
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

func TestFlattenGPUWithXID(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	got := flattenGPU(domain.GPU{XID: new(79), XIDAt: &at})
	if resourcekit.Value(got.XID) != 79 || got.XIDAt.ValueString() != "2026-11-22T12:00:00Z" {
		t.Errorf("XID %v at %s", got.XID, got.XIDAt)
	}
}
