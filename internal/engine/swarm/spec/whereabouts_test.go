package spec

import (
	"strings"
	"testing"
)

// TestWhereabouts: the network's name is part of a pooled member's address if it fits into a label.
func TestWhereabouts(t *testing.T) {
	fits := strings.Repeat("a", 53)
	for name, test := range map[string]struct{ cluster, address, want string }{
		"usual":      {"lab", "spark-worker:7078", "{{.Task.Name}}.trainyard-lab:7078"},
		"no port":    {"lab", "spark-worker", "{{.Task.Name}}.trainyard-lab"},
		"still fits": {fits, "spark-worker:7078", "{{.Task.Name}}.trainyard-" + fits + ":7078"},
		"too long":   {fits + "a", "spark-worker:7078", "{{.Task.Name}}:7078"},
	} {
		if got := whereabouts(test.cluster, test.address)[variableAddress]; got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
