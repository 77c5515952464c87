//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// torchLine is a line that a rank of the examples "pytorch" and "pytorch-elastic" printed.
type torchLine struct {
	Event     string  `json:"event"`
	Rank      int     `json:"rank"`
	WorldSize int     `json:"world_size"`
	Epochs    int     `json:"epochs"`
	Accuracy  float64 `json:"accuracy"`
	Checksum  int64   `json:"checksum"`
	CUDA      string  `json:"CUDA_VISIBLE_DEVICES"`
	NVIDIA    string  `json:"NVIDIA_VISIBLE_DEVICES"`
}

// torchLines returns the lines of a member's rank.
func (l *lab) torchLines(member string) (lines []torchLine) {
	l.Helper()
	for _, line := range l.logs(member)[member] {
		var entry torchLine
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Event != "" {
			lines = append(lines, entry)
		}
	}
	return lines
}

// Two ranks of a real PyTorch train one model on a machine with eight GPUs of which they may use two: each has its own.
// This PyTorch has no CUDA, so it sees their names but computes on CPUs.
func TestSystemPyTorchGPUs(t *testing.T) {
	python := acceptance.Torch(t)
	acceptance.Test(t)
	control, devices := fakenvml.New(t), fakenvml.V100s("dgx", 8)
	control.Set(devices...)
	program := acctest.ProviderWithGPUs(t, control)
	w := acctest.NewWorkspace(t, program)
	l := &lab{
		T: t, files: statedir.Dir{Root: w.StateDir, Cluster: "pytorch-lab"}, port: freePorts(t), provider: program,
	}
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "pytorch")))
	allowed := []string{devices[4].UUID, devices[5].UUID}
	w.Write("terraform.tfvars",
		fmt.Sprintf("python = %q\nranks = 2\ngpus = { local = %s }\n", python, acceptance.List(allowed...)))
	w.Write("ddp_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "ddp" {
  roles = { worker = { replicas = var.ranks, port = %d, gpus = local.gpus } }
}`, l.port))

	w.Must("apply", "-auto-approve")
	var outputs struct {
		Phase      struct{ Value string }
		Ranks      struct{ Value []torchLine }
		Placements struct{ Value map[string]string }
	}
	l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
	ranks := outputs.Ranks.Value
	if outputs.Phase.Value != "completed" || len(ranks) != 2 || ranks[0].Accuracy < 0.9 ||
		ranks[0].Checksum != ranks[1].Checksum {
		t.Fatalf("%+v; want two ranks with one model and an accuracy of more than 0.9", outputs)
	}
	t.Logf("trained to an accuracy of %.1f %%", 100*ranks[0].Accuracy)
	given := map[string]bool{}
	for rank := range ranks {
		member := fmt.Sprintf("ddp-worker-%d", rank)
		joined := l.torchLines(member)[0]
		given[joined.CUDA] = true
		if place := "local " + joined.CUDA; joined.NVIDIA != joined.CUDA || outputs.Placements.Value[member] != place {
			t.Errorf("%s prints %+v, and its place is %q", member, joined, outputs.Placements.Value[member])
		}
	}
	if !given[allowed[0]] || !given[allowed[1]] {
		t.Errorf("the ranks have the cards %v, want each one of %v", sorted(given), allowed)
	}
	w.ExpectNoChange("after the training")
}

// Members of a real torchrun are added and removed: the ranks continue with as many as there are, from their last
// checkpoint.
func TestSystemPyTorchElastic(t *testing.T) {
	python := acceptance.Torch(t)
	w, l := newWorkspace(t)
	l.files.Cluster = "elastic-lab"
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "pytorch-elastic")))
	w.Write("terraform.tfvars", fmt.Sprintf("python = %q\nport = %d\nfolder = %q\n", python, l.port, t.TempDir()))
	train := func(waitFor string) {
		w.Write("digits_override.tf", l.providerBlock()+fmt.Sprintf(`
resource "trainyard_group" "digits" {
  wait_for = %q
}`, waitFor))
	}
	const endless = "-var=epochs=1000000"
	members := []string{"digits-worker-0", "digits-worker-1", "digits-worker-2"}

	train("running")
	w.Must("apply", "-auto-approve", endless, "-var=workers=1")
	l.check(l.changes("+" + members[0]))
	alone := l.awaitElastic(members[:1], 1)

	w.Must("apply", "-auto-approve", endless, "-var=workers=3")
	l.check(l.changes("+"+members[1], "+"+members[2]))
	l.awaitElastic(members, alone)

	before := l.instances()[members[2]]
	l.kill(members[2])
	acctest.Eventually(t, "a new start of "+members[2], func() bool { return l.instances()[members[2]] != before })
	again := l.awaitElastic(members, l.lastEpoch(members))
	l.check(l.changes("~" + members[2]))
	w.Must("plan", "-detailed-exitcode", endless, "-var=workers=3")
	w.Must("destroy", "-auto-approve", endless, "-var=workers=3")

	// Two ranks do the rest of the training.
	train("completed")
	last := fmt.Sprintf("-var=epochs=%d", again+20)
	w.Must("apply", "-auto-approve", last, "-var=workers=2")
	for _, member := range members[:2] {
		lines := l.torchLines(member)
		first, end := lines[0], lines[len(lines)-1]
		if first.Epochs < again || end.Event != "trained" || end.WorldSize != 2 || end.Accuracy < 0.9 {
			t.Errorf("%s began with %+v and ended with %+v, want it to go on after epoch %d", member, first, end, again)
		}
	}
	w.Must("plan", "-detailed-exitcode", last, "-var=workers=2")
}

// lastEpoch returns the last epoch that any of these members reported.
func (l *lab) lastEpoch(members []string) (last int) {
	l.Helper()
	for _, member := range members {
		for _, line := range l.torchLines(member) {
			last = max(last, line.Epochs)
		}
	}
	return last
}

// awaitElastic waits until exactly these members train together past an epoch. It returns their current epoch.
func (l *lab) awaitElastic(members []string, past int) (epoch int) {
	l.Helper()
	acctest.Eventually(l, fmt.Sprintf("%d members that train together past epoch %d", len(members), past), func() bool {
		ranks := map[int]bool{}
		for _, member := range members {
			lines := l.torchLines(member)
			if len(lines) == 0 {
				return false
			}
			last := lines[len(lines)-1]
			if last.Event != "epoch" || last.WorldSize != len(members) || last.Epochs <= past {
				return false
			}
			ranks[last.Rank] = true
			epoch = last.Epochs
		}
		return len(ranks) == len(members)
	})
	return epoch
}
