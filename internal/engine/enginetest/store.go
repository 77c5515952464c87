package enginetest

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// testStore runs the suite of stores.
func testStore(t *testing.T, h Harness) {
	s := h.Store
	if h.Brief {
		s.Dying = nil
	}
	storetest.Run(t, s)
}
