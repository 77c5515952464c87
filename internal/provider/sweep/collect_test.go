package sweep

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestAnnounceCollected: the announcement of an archive counts the runs that are not in it.
func TestAnnounceCollected(t *testing.T) {
	for want, c := range map[string]collected{
		"": {file: "a.tar", without: []string{"1"}},
		"The results of 2 of its 2 runs are in a.tar.": {file: "a.tar", runs: 2},
		"The results of 2 of its 3 runs are in a.tar. Without results: 1, which left none or whose host is no longer " +
			"in the cluster.": {file: "a.tar", runs: 2, without: []string{"1"}},
	} {
		var diags diag.Diagnostics
		c.announce(&diags)
		got := ""
		for _, d := range diags {
			got += d.Detail()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestKeysOf: runs that were lost from the store, but have run, have results as well.
func TestKeysOf(t *testing.T) {
	found := reconcile.Sweep{Runs: map[string]domain.Run{"b": {}, "lost": {}}}
	found.Spec.Runs = map[string]map[string]string{"a": {}, "b": {}}
	if got, want := keysOf(found), []string{"a", "b", "lost"}; !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
}
