//go:build linux

package swarm_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
)

// Examples with other projects' real software also train on a Swarm: their members find each other on three nodes.
func TestSystemExamplesOnSwarm(t *testing.T) {
	acceptance.Test(t)
	for name, example := range map[string]struct {
		group string
		// env is the environment of all members, with the example's variables.
		env string
	}{
		"dask": {"digits", `{ DASK_SCHEDULER_ADDRESS = "tcp://{{ address \"scheduler\" 0 }}" }`},
		"mpi":  {"digits", "{}"},
		"ray":  {"search", `{ RAY_USAGE_STATS_ENABLED = "0" }`},
	} {
		t.Run(name, func(t *testing.T) {
			folder := acceptance.Python(t, name)
			environment, err := pythonenv.Of(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			w := newSwarmWorkspace(newSwarmLab(t, sharedBed(t), name+"-lab"))
			w.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, name)))
			var hosts strings.Builder
			for _, node := range w.bed.Nodes {
				fmt.Fprintf(&hosts, "  %s = { address = %q }\n", node.Name, node.Host())
			}
			w.Write("terraform.tfvars", fmt.Sprintf("engine = \"swarm\"\nhosts = {\n%s}\n", &hosts))
			// This machine, which all nodes share, provides what the image would contain.
			w.Write("system_override.tf", fmt.Sprintf(`
resource "trainyard_image" %q {
  count = 0
}

resource "trainyard_group" %q {
  image = %q
  env   = merge({ PATH = "%s:/usr/bin:/bin" }, %s)
  mounts = [
%s
  ]
}`, name, example.group, memberImage, folder, example.env, environment.Mounts()))
			w.Must("apply", "-auto-approve")
			var outputs struct {
				Phase    struct{ Value string }
				Accuracy struct{ Value float64 }
			}
			w.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
			if outputs.Phase.Value != "completed" || outputs.Accuracy.Value < 0.9 {
				t.Errorf("%+v; want it completed with an accuracy of more than 0.9", outputs)
			}
			t.Logf("trained to an accuracy of %.1f %%", 100*outputs.Accuracy.Value)
			w.ExpectNoChange("after the training")
			w.Must("destroy", "-auto-approve")
		})
	}
}
