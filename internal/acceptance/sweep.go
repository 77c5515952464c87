//go:build linux

package acceptance

import (
	"fmt"
	"strings"
)

// TheSweep is the sweep "lr" of the cluster, and TheRuns the data source about it.
const (
	TheSweep = "trainyard_sweep.lr"
	TheRuns  = "data.trainyard_sweep.lr"
)

// Runs returns the configuration of a sweep with these attributes whose runs take a step each, by key.
func Runs(steps map[string]string, attributes string) string {
	var list strings.Builder
	for key, step := range steps {
		fmt.Fprintf(&list, "    %q = { STEP = %q }\n", key, step)
	}
	return fmt.Sprintf(`
resource "trainyard_sweep" "lr" {
  cluster = trainyard_cluster.lab
  name    = "lr"
  command = [local.member, "print:{{ .Role }} has {{ .Env.STEP }}", "{{ .Env.STEP }}"]
  runs    = {
%s  }
  %s
}
`, list.String(), attributes)
}

// ReadRuns reads the state of the sweep.
const ReadRuns = `
data "trainyard_sweep" "lr" {
  cluster    = trainyard_cluster.lab
  name       = trainyard_sweep.lr.name
  depends_on = [trainyard_sweep.lr]
}
`
