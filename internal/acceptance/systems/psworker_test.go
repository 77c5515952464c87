//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// trained is a member's line: the loss of each hundredth step, and finally the quality of the model.
type trained struct {
	Step     int      `json:"step"`
	Loss     *float64 `json:"loss"`
	Accuracy *float64 `json:"accuracy"`
	Seconds  float64  `json:"seconds"`
	Time     float64  `json:"time"`
}

// results are the outputs of the configurations here.
type results struct {
	Phase struct{ Value string }
	Ended struct{ Value map[string]string }
	Log   struct{ Value []string }
}

// inLab is this machine as a cluster.
const inLab = `
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "lab" {
  name = "lab"
}
`

// watched returns the configuration of the data sources about the group that the module "mnist" creates.
func watched(group string) string {
	return fmt.Sprintf(`
data "trainyard_group" "mnist" {
  cluster    = trainyard_cluster.lab
  name       = %q
  depends_on = [module.mnist]
}

data "trainyard_logs" "chief" {
  cluster    = trainyard_cluster.lab
  member     = module.mnist.chief
  tail       = 0
  depends_on = [module.mnist]
}

output "phase" { value = data.trainyard_group.mnist.phase }
output "ended" { value = { for name, member in data.trainyard_group.mnist.members : name => member.state } }
output "log"   { value = data.trainyard_logs.chief.lines }
`, group)
}

// A coordinator trains with a real TensorFlow: two parameter servers and two workers. One of the servers dies halfway,
// and the training resumes from its checkpoint. It completes, which ends the others, and TensorBoard shows it. The
// members themselves have no TensorBoard.
func TestSystemPSWorker(t *testing.T) {
	t.Parallel()
	const steps = 1200 // enough to meet the training in the middle
	w := newTensorFlow(t)
	logs := filepath.Join(t.TempDir(), "logs")
	training := inLab + fmt.Sprintf(`
module "mnist" {
  source      = "./modules/ps-worker"
  cluster     = trainyard_cluster.lab
  name        = "mnist"
  framework   = "tensorflow"
  train_steps = %d
  wait_for    = "running"
  log_dir     = %q
  tensorboard = { port = 18006 }
  env         = { SAY_EVERY = "0.2", SAVE_EVERY = "0.5", PYTHONPATH = %q }
  ps          = { port = 18000 }
  worker      = { port = 19000 }
  chief       = { port = 17000 }
}
`, steps, logs, withoutTensorBoard(t)) + watched("mnist")
	w.Write("main.tf", training)
	w.Must("get")
	begin := time.Now()
	w.Must("apply", "-auto-approve")
	labOf(t, w).expectResumed("mnist-ps-1", "mnist-chief-0", logs)
	w.Write("main.tf", strings.Replace(training, `"running"`, `"completed"`, 1))
	w.Must("apply", "-auto-approve")
	expectTrained(w, steps, time.Since(begin))
	expectTensorBoard(w, "http://127.0.0.1:18006", logs)
	w.ExpectNoChange("after the training")

	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after the destroy")
	if files, err := filepath.Glob(filepath.Join(logs, "checkpoint*")); err != nil || len(files) == 0 {
		t.Errorf("the checkpoints are not in %s, or gone with the group: %v", logs, err)
	}
}

// The example at the start of the module's README trains as it is.
func TestSystemPSWorkerReadme(t *testing.T) {
	w := newTensorFlow(t)
	w.Write("main.tf", readmeOf(t, "ps-worker")+watched("ps-worker"))
	w.Must("get")
	begin := time.Now()
	w.Must("apply", "-auto-approve")
	expectTrained(w, 2000, time.Since(begin))
	w.ExpectNoChange("after the training")
}

// expectTrained fails unless the group has completed with a good model after these steps of all workers, and the
// parameter servers have ended with it.
func expectTrained(w *acctest.Workspace, steps int, applied time.Duration) {
	w.Helper()
	var outputs results
	if err := json.Unmarshal([]byte(w.Must("output", "-json")), &outputs); err != nil {
		w.Fatal(err)
	}
	var losses []float64
	var last trained
	for _, entry := range trainedOf(outputs.Log.Value) {
		if entry.Loss != nil {
			losses = append(losses, *entry.Loss)
		}
		last = entry
	}
	log := strings.Join(outputs.Log.Value, "\n")
	if len(losses) < 2 || losses[len(losses)-1] >= losses[0] {
		w.Errorf("the loss is %v, want it to fall:\n%s", losses, log)
	}
	// Each worker may have a step in flight when the last one is done.
	if last.Accuracy == nil || *last.Accuracy < 0.9 || last.Step < steps || last.Step > steps+2 {
		w.Fatalf("the chief ends with %+v, want an accuracy of more than 0.9 at step %d:\n%s", last, steps, log)
	}
	if outputs.Phase.Value != "completed" {
		w.Errorf("the phase is %s, want completed", outputs.Phase.Value)
	}
	for member, state := range outputs.Ended.Value {
		if strings.Contains(member, "-ps-") && state != "stopped" {
			w.Errorf("%s is %s, want it stopped, as the chief has completed", member, state)
		}
	}
	w.Logf("%d members: step %d, accuracy %.1f %%, trained in %.1f s, applied in %.1f s",
		len(outputs.Ended.Value), last.Step, 100**last.Accuracy, last.Seconds, applied.Seconds())
}

// expectTensorBoard fails unless TensorBoard, at an address, shows the curves of a run in a folder.
func expectTensorBoard(w *acctest.Workspace, address, folder string) {
	w.Helper()
	address += "/data/plugin/scalars/tags"
	acctest.Eventually(w, "TensorBoard to show curves in "+folder, func() bool {
		request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, address, nil)
		if err != nil {
			w.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false // it is starting
		}
		defer response.Body.Close()
		var curves map[string]map[string]any // by run, by name
		if json.NewDecoder(response.Body).Decode(&curves) != nil {
			return false
		}
		for _, shown := range curves {
			if len(shown) > 0 {
				return true
			}
		}
		return false
	})
}
