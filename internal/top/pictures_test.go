//go:build linux

package top_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/terminal"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// The programs of the recorded cluster: a parameter server, a worker that diverges once its file exists, and a run.
const (
	serves = `echo "serving on port $TRAINYARD_PORT"; while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.05; done`
	trains = `step=0; while [ ! -e "$0" ]; do step=$((step+20)); printf "step %d: loss 0.%03d\n" $step $((90000/(step+95)))
i=0; while [ $i -lt 15000 ]; do i=$((i+1)); done; sleep 0.1; done; echo "step $step: loss is NaN, giving up" >&2; exit 1`
	tries = `sleep $SECONDS_TO_TRAIN; echo "accuracy=$ACCURACY"`
)

// TestPictures records a cluster with two GPUs as an animated SVG, if a folder for it is given: the cluster, a worker
// that fails, its log, and a sweep. Guides show it, top.svg, and a still of the sweep, sweep.svg.
func TestPictures(t *testing.T) {
	folder := os.Getenv(terminal.Pictures)
	if folder == "" {
		t.Skipf("%s names no folder for the recording", terminal.Pictures)
	}
	nvml := fakenvml.New(t)
	cards := []fakenvml.Device{
		{
			UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
			MemoryMiB: 46_068, TemperatureC: 41, PowerMW: 71_000,
		},
		{
			UUID: "GPU-a40a40a4-0000-4000-8000-000000000001", Name: "NVIDIA A40", PCIBusID: "00000000:86:00.0",
			MemoryMiB: 46_068, TemperatureC: 39, PowerMW: 68_000,
		},
	}
	nvml.Set(cards...)
	stateDir, e := newLab(t, acctest.ProviderWithGPUs(t, nvml))
	diverges := filepath.Join(t.TempDir(), "diverges")
	shell := func(script string, args ...string) domain.Template {
		return domain.Template{Command: append([]string{"/bin/sh", "-c", script}, args...)}
	}
	r := reconcile.Reconciler{Engine: e}
	_, err := r.PutPool(t.Context(), domain.GPUPool{Cluster: "lab", Name: "a40", Select: &domain.DeviceSelector{}},
		true, nil)
	must(t, err)
	never := domain.Restart{Condition: domain.RestartNever}
	must(t, r.Update(t.Context(), domain.Group{
		Cluster: "lab", Name: "mnist", Framework: "tensorflow", RestartScope: domain.ScopeMember,
		WaitFor: domain.WaitRunning,
		Roles: map[string]domain.Role{
			"ps": {Replicas: new(2), Template: shell(serves)},
			"worker": {
				Replicas: new(2), Template: shell(trains, diverges+"-{{ .Index }}"),
				GPUs: &domain.GPURequest{Pool: "a40"}, Restart: never,
			},
		},
	}))
	compute(t, nvml, cards, e)

	term := startIn(t, 100, 24, "--endpoint", stateDir, "--interval", "1s")
	recording := term.Record()
	term.Sees("local:1", "%", "mnist-worker-1", "NVIDIA A40")
	recording.Watch("mnist-worker-1", "running", "MiB")

	_, err = r.PutSweep(t.Context(), domain.Sweep{
		Cluster: "lab", Name: "optimizer", Template: shell(tries), MaxParallel: new(2),
		Objective: &domain.Objective{Pattern: `accuracy=([0-9.]+)`},
		Runs: map[string]map[string]string{
			"adagrad": {"ACCURACY": "0.887", "SECONDS_TO_TRAIN": "3"},
			"adam":    {"ACCURACY": "0.968", "SECONDS_TO_TRAIN": "4"},
			"adamw":   {"ACCURACY": "0.974", "SECONDS_TO_TRAIN": "4"},
			"rmsprop": {"ACCURACY": "0.951", "SECONDS_TO_TRAIN": "600"},
			"sgd":     {"ACCURACY": "0.913", "SECONDS_TO_TRAIN": "600"},
		},
	}, true)
	must(t, err)
	must(t, os.WriteFile(diverges+"-1", nil, 0o600))
	cards[1].Processes, cards[1].Utilisation, cards[1].UsedMiB = nil, 0, 0
	nvml.Set(cards...)
	recording.Watch("local:1", "0 %", "no members")
	recording.Watch("mnist-worker-1", "failed")
	term.Press("3")
	recording.Watch("loss is NaN, giving up")
	term.Press("2")
	recording.Watch("adam ", "succeeded", "0.968")
	recording.Watch("adamw", "succeeded", "0.974")
	sweep := term.Record()
	sweep.Watch("adamw", "succeeded", "0.974")
	term.Press("1")
	recording.Watch("mnist-worker-1", "failed")
	term.Press("q")
	term.Ends()
	for name, picture := range map[string]string{
		"top.svg":   recording.SVG("terraform-provider-trainyard top"),
		"sweep.svg": sweep.SVG("A sweep in terraform-provider-trainyard top"),
	} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(picture), 0o600))
	}
}

// compute makes the workers' processes those of the cards.
func compute(t *testing.T, nvml *fakenvml.Control, cards []fakenvml.Device, e engine.Engine) {
	t.Helper()
	acctest.Eventually(t, "the workers to run", func() bool {
		observed, err := e.Observe(t.Context(), "mnist")
		must(t, err)
		processes, err := proctree.Scan()
		must(t, err)
		found := 0
		for _, o := range observed {
			if running := processes[o.Instance]; o.Role == "worker" && o.Instance != "" && len(running) > 0 {
				card := &cards[o.Index]
				card.Processes = []fakenvml.Process{{PID: running[0].PID, MiB: 30_720}}
				card.UsedMiB, card.Utilisation, card.TemperatureC, card.PowerMW = 31_114, 93-6*o.Index, 66-3*o.Index,
					271_000-9_000*o.Index
				found++
			}
		}
		return found == len(cards)
	})
	nvml.Set(cards...)
}
