//go:build linux

package swarm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// leastAccuracy is the minimum accuracy of the quickstart's model, which is usually about 0.97.
const leastAccuracy = 0.9

// The quickstart on a Swarm of three nodes is the same configuration with another engine: it completes, the next plan
// is empty, logs of each member and the hosts' usage are available, and its workers are spread.
func TestAccQuickstartOnSwarm(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 3, Managers: 1, Heartbeat: testbed.Steady})
	l := newSwarmLab(t, bed, "lab") // the example's name
	w := newSwarmWorkspace(l)
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "quickstart")))
	trainer, err := os.ReadFile(acctest.Build(t, acctest.Trainer))
	l.must(err)
	l.must(os.WriteFile(filepath.Join(w.Dir, "digits-trainer"), trainer, 0o755)) //nolint:gosec // a program
	var hosts []string
	for _, node := range bed.Nodes {
		hosts = append(hosts, fmt.Sprintf("%s = { address = %q }", node.Name, node.Host()))
	}
	w.Write("terraform.tfvars",
		fmt.Sprintf("engine = \"swarm\"\nhosts = { %s }\nsteps = 300\n", strings.Join(hosts, ", ")))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the training")

	var shown tfjson.State
	var attributes map[string]map[string]any
	// On a busy machine, an agent may answer too late for a single read.
	acctest.Eventually(t, "all hosts to be measured", func() bool {
		shown, attributes = tfjson.State{}, map[string]map[string]any{}
		l.must(json.Unmarshal([]byte(w.Must("show", "-json")), &shown))
		for _, r := range shown.Values.RootModule.Resources {
			attributes[r.Address] = r.AttributeValues
		}
		used := asMap(t, attributes["data.trainyard_utilisation.now"]["hosts"])
		for _, node := range bed.Nodes {
			host, _ := used[node.Name].(map[string]any)
			for _, attribute := range []string{"cpus_used", "memory_used_mib", "sampled_at"} {
				if host[attribute] == nil {
					t.Logf("%s of host %s is not known: %v", attribute, node.Name, host)
					w.Must("apply", "-refresh-only", "-auto-approve")
					return false
				}
			}
		}
		return true
	})
	if phase := shown.Values.Outputs["phase"].Value; phase != "completed" {
		t.Errorf("the group is %v", phase)
	}
	if accuracy, known := shown.Values.Outputs["accuracy"].Value.(float64); !known || accuracy < leastAccuracy {
		t.Errorf("the accuracy is %v, want %v or more", shown.Values.Outputs["accuracy"].Value, leastAccuracy)
	}
	reconciler := l.reconcilerAt(bed.Nodes[0])
	workersOn := map[string]int{}
	for member, host := range asMap(t, attributes["trainyard_group.digits"]["placements"]) {
		name, _ := host.(string)
		if strings.HasPrefix(member, "digits-worker-") {
			workersOn[name]++
		}
		lines, err := reconciler.Engine.Logs(t.Context(), member, engine.LogOptions{})
		if err != nil || len(lines) == 0 {
			t.Errorf("the log of %s is %q (%v)", member, lines, err)
		}
	}
	if len(workersOn) != len(bed.Nodes) {
		t.Errorf("the hosts have so many of 4 workers: %v", workersOn)
	}
}

// asMap returns a value in a state that is a map.
func asMap(t *testing.T, value any) map[string]any {
	t.Helper()
	m, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("%v is a %[1]T, not a map", value)
	}
	return m
}
