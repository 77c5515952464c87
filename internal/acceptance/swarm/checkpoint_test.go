//go:build linux

package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// The example "checkpoint" on a Swarm, with a volume whose driver leads to the same folder on all hosts. The worker is
// killed, and then its host is drained: it continues from its last checkpoint, the second time on another host.
func TestSystemCheckpointOnSwarm(t *testing.T) {
	environment, err := pythonenv.Of(t.Context(), acceptance.Python(t, "dask"))
	if err != nil {
		t.Fatal(err)
	}
	acceptance.Test(t)
	bed := ownBed(t, three)
	w := newSwarmWorkspace(newSwarmLab(t, bed, "checkpoint-lab"))
	w.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "checkpoint")))
	var hosts strings.Builder
	for _, node := range bed.Nodes {
		fmt.Fprintf(&hosts, "%s = { address = %q }\n", node.Name, node.Host())
	}
	shared := t.TempDir()
	w.Write("terraform.tfvars", fmt.Sprintf(`
engine = "swarm"
hosts = {
%s}
python = %q
driver = { name = "local", options = { type = "none", o = "bind", device = %q } }
`, &hosts, environment.Python, shared))
	// This machine, which all nodes share, provides what the image would contain. The worker is not on the only
	// manager: if that is drained, so is the controller, which moves members.
	train := func(waitFor string) {
		w.Write("digits_override.tf", fmt.Sprintf(`
resource "trainyard_image" "digits" {
  count = 0
}

resource "trainyard_group" "digits" {
  image    = %q
  wait_for = %q
  roles    = { worker = { replicas = 1, placement = { hosts = ["node2", "node3"] } } }
  mounts = [
    { type = "volume", source = "checkpoints", target = local.folder, read_only = false, driver = var.driver },
%s
  ]
}`, memberImage, waitFor, environment.Mounts()))
	}

	train("completed")
	w.Must("apply", "-auto-approve")
	var outputs struct {
		Phase   struct{ Value string }
		Trained struct{ Value acceptance.Checkpoint }
	}
	w.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	whole := outputs.Trained.Value
	if outputs.Phase.Value != "completed" || whole.Accuracy < 0.9 {
		t.Fatalf("%+v; want it completed with an accuracy of more than 0.9", outputs)
	}
	w.ExpectNoChange("after the training")
	w.Must("destroy", "-auto-approve")
	saved := filepath.Join(shared, "digits.npz")
	w.must(os.Remove(saved)) // fails if the checkpoint was removed with the group, or is elsewhere

	const endless, member = "-var=epochs=1000000", "digits-worker-0"
	train("running")
	w.Must("apply", "-auto-approve", endless)
	begun := func(starts, epoch int) {
		t.Helper()
		acctest.Eventually(t, fmt.Sprintf("epoch %d, after start %d", epoch, starts), func() bool {
			return acceptance.Resumed(t, w.wholeLog(member), starts, epoch, whole)
		})
	}
	begun(1, 3)
	w.kill(w.hostOf(member), member)
	begun(2, whole.Epoch)
	second := w.hostOf(member)
	w.updateNode(second, func(spec *dockerswarm.NodeSpec) { spec.Availability = dockerswarm.NodeAvailabilityDrain })
	acctest.Eventually(t, "a training that goes on from there on another host", func() bool {
		for _, line := range w.wholeLog(member) {
			var entry acceptance.Checkpoint
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Event == "resumed" && entry.Epoch >= whole.Epoch {
				// For a moment there are both the old task and one without a host.
				tasks := w.tasksOf(w.service(member).ID)
				return len(tasks) == 1 && tasks[0].NodeID != "" && w.hostOf(member) != second
			}
		}
		return false
	})
	w.updateNode(second, func(spec *dockerswarm.NodeSpec) { spec.Availability = dockerswarm.NodeAvailabilityActive })
	w.Must("destroy", "-auto-approve", endless)
	w.expectNothing()
	if _, err := os.Stat(saved); err != nil {
		t.Errorf("the checkpoint is gone with the group: %v", err)
	}
}

// wholeLog returns everything that a member printed, on any host. It is empty while an Engine is too busy to answer.
func (l *swarmLab) wholeLog(member string) []string {
	l.Helper()
	lines, err := l.engine().Logs(l.Context(), member, engine.LogOptions{})
	if !errors.Is(err, context.DeadlineExceeded) && !reconcile.Passes(err) {
		l.must(err)
	}
	return lines
}
