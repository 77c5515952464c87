package results

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestParse: one member, and a folder that is relative to the member's own or absolute.
func TestParse(t *testing.T) {
	engines := engine.Registry{"process": engine.Driver{}}
	for args, says := range map[string]string{
		"job-worker-0":                         "",
		"--path out/deep job-worker-0":         "",
		"job-worker-0 --path /data --output -": "",
		"":                                     "one member",
		"a b":                                  "one member",
		"a --path ../b":                        "points outside",
		"a --path /data/../b":                  `".."`,
	} {
		_, err := parse(strings.Fields(args), engines)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", args, err, says)
		}
	}
}
