package acctest

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// EndCluster destroys a cluster and everything in it at the end of a test.
func EndCluster(t testing.TB, e engine.Engine) {
	t.Helper()
	ctx := Bounded(t)
	if _, err := engine.Cluster(ctx, e); err != nil {
		return
	}
	observed, err := e.Observe(ctx, "")
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, o := range observed {
		names = append(names, o.Name)
	}
	if len(names) > 0 {
		if err := e.Remove(ctx, names); err != nil {
			t.Error(err)
		}
	}
	if err := e.Dissolve(ctx); err != nil {
		t.Error(err)
	}
}
