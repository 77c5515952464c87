package sweepctl

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestEmptyRun: a run with an empty name, as of an unset variable, is not the whole sweep.
func TestEmptyRun(t *testing.T) {
	for _, name := range []string{"pause", "resume", "cancel", "results", "ls"} {
		if _, err := parse([]string{name, "lr/"}, engine.Registry{}); err == nil ||
			!strings.Contains(err.Error(), `"lr/" names no run: use SWEEP or SWEEP/RUN`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
