package sweep

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
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
