//go:build linux

package swarm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// torchVariable is the path of the docker-archive with the image in which TestAccPyTorch trains, as built by
// internal/tools/torch.sh.
const torchVariable = "TRAINYARD_TEST_TORCH"

// The values in the example "pytorch".
const (
	torchRanks  = 3
	torchEpochs = 20
	torchImage  = "pytorch:bookworm"
	// torchImages is the number of images to train on.
	torchImages = 1500
)

// newTorchExample returns a workspace with the example "pytorch", for the nodes of a bed, whose Swarm it adopts.
func newTorchExample(t *testing.T, bed *testbed.Bed, variables string) *swarmWorkspace {
	t.Helper()
	w := newSwarmWorkspace(newSwarmLab(t, bed, "pytorch-lab"))
	w.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "pytorch")))
	var hosts strings.Builder
	for _, node := range bed.Nodes {
		fmt.Fprintf(&hosts, "%s = { address = %q }\n", node.Name, node.Host())
	}
	w.Write("terraform.tfvars", fmt.Sprintf("engine = \"swarm\"\nhosts = {\n%s}\n%s\n", &hosts, variables))
	return w
}

// The example also plans on a Swarm. Without an archive, its image is built.
func TestAccPyTorchPlansOnSwarm(t *testing.T) {
	acceptance.Test(t)
	w := newTorchExample(t, sharedBed(t), "")
	plan := w.plan("plan", 2)
	var planned []string
	for _, r := range plan.ResourceChanges {
		planned = append(planned, fmt.Sprintf("%s of %s", r.Change.Actions, r.Address))
	}
	if !slices.Contains(planned, "[create] of trainyard_image.pytorch[0]") ||
		!slices.Contains(planned, "[create] of trainyard_group.ddp") {
		t.Errorf("the plan holds %q, want the image and the group created", planned)
	}
}

// trained is a rank's final line.
type trained struct {
	Rank      int     `json:"rank"`
	WorldSize int     `json:"world_size"`
	Accuracy  float64 `json:"accuracy"`
	Images    int     `json:"images"`
	Seconds   float64 `json:"seconds"`
	// Checksum is the checksum of the parameters.
	Checksum int64 `json:"checksum"`
}

// Three ranks of a real PyTorch train one model with DistributedDataParallel, each on its own node.
func TestAccPyTorch(t *testing.T) {
	archive := os.Getenv(torchVariable)
	if archive == "" {
		t.Skipf("this takes an image of 1.4 GB, the docker-archive of which is named by %s: run make test-torch",
			torchVariable)
	}
	acceptance.Test(t)
	bed := ownBed(t, three)
	w := newTorchExample(t, bed, fmt.Sprintf("archive = %q\nepochs = %d", archive, torchEpochs))
	for line := range strings.Lines(w.Must("apply", "-auto-approve")) {
		if strings.Contains(line, "Creation complete") {
			t.Log(strings.TrimSpace(line))
		}
	}
	w.expectTrained()
	w.expectRanksApart()
	w.ExpectNoChange("after the training")

	w.Must("destroy", "-auto-approve")
	w.expectNothing()
	for _, node := range bed.Nodes {
		if _, err := node.Client().ImageInspect(t.Context(), torchImage); err == nil {
			t.Errorf("%s has still the image", node.Name)
		}
	}
}

// expectTrained fails unless the ranks have trained one model together, and well.
func (w *swarmWorkspace) expectTrained() {
	w.swarmLab.Helper()
	var outputs struct {
		Phase    struct{ Value string }
		Accuracy struct{ Value float64 }
		Ranks    struct{ Value []trained }
	}
	w.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	ranks := outputs.Ranks.Value
	w.swarmLab.Logf("trained in %.1f s, to an accuracy of %.1f %%", ranks[0].Seconds, 100*outputs.Accuracy.Value)
	if outputs.Phase.Value != "completed" || outputs.Accuracy.Value < 0.9 || len(ranks) != torchRanks {
		w.swarmLab.Errorf("phase %s, accuracy %v, %d ranks; want completed, more than 0.9, %d", outputs.Phase.Value,
			outputs.Accuracy.Value, len(ranks), torchRanks)
	}
	for i, rank := range ranks {
		// They start with equal parameters and end with equal ones, though each has trained on its own images.
		want := trained{
			Rank: i, WorldSize: torchRanks, Images: torchEpochs * torchImages / torchRanks, Seconds: rank.Seconds,
			Accuracy: outputs.Accuracy.Value, Checksum: ranks[0].Checksum,
		}
		if err := acceptance.Differences(want, rank); err != nil {
			w.swarmLab.Errorf("rank %d: %v", i, err)
		}
	}
}

// expectRanksApart fails unless each rank ended on its own node, in its first attempt.
func (w *swarmWorkspace) expectRanksApart() {
	w.swarmLab.Helper()
	tasks, err := w.bed.Nodes[0].Client().TaskList(w.Context(),
		dockerswarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("label", "trainyard.group=ddp"))})
	w.must(err)
	nodes, ended := map[string]bool{}, map[dockerswarm.TaskState]int{}
	for _, task := range tasks {
		nodes[task.NodeID] = true
		ended[task.Status.State]++
	}
	if want := map[dockerswarm.TaskState]int{dockerswarm.TaskStateComplete: torchRanks}; !maps.Equal(ended, want) ||
		len(nodes) != torchRanks {
		w.swarmLab.Errorf("the ranks ended as %v on %d nodes, want %v on %d", ended, len(nodes), want, torchRanks)
	}
}
