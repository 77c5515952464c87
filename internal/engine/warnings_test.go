package engine_test

import (
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestWarnings: the last warning with a summary counts, until it is withdrawn.
func TestWarnings(t *testing.T) {
	engine.Warn(t.Context(), engine.Warning{Summary: "nobody", Detail: "asks"})
	ctx, warnings := engine.WithWarnings(t.Context())
	for _, w := range []engine.Warning{{"b", "1"}, {"a", "1"}, {"b", "2"}, {"c", "1"}, {"c", ""}, {"d", ""}} {
		engine.Warn(ctx, w)
	}
	if got, want := warnings.All(), []engine.Warning{{"a", "1"}, {"b", "2"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
