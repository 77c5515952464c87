//go:build linux

package systems_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// runMiB is the GPU memory that a run uses, as the paper has measured it.
const runMiB = 1_199

// card is a fake driver's card that experiments share.
type card struct {
	*experiments
	device fakenvml.Device
	// attributes are those of the module for runs that use the card. They wait for gate, a FIFO, so none ends early.
	attributes string
	gate       string
}

// newCard returns a card of which others use some memory, and on which runs can allocate up to a limit.
func newCard(t *testing.T, limitMiB, foreignMiB int64) *card {
	t.Helper()
	control, device := fakenvml.New(t), acceptance.A40()
	device.UsedMiB = foreignMiB
	control.Set(device)
	folder := t.TempDir()
	python, taken, gate := filepath.Join(folder, "python"), filepath.Join(folder, "card"), filepath.Join(folder, "gate")
	if err := errors.Join(
		os.WriteFile(python, fakenvml.Allocating("python3", runMiB, limitMiB), 0o700), //nolint:gosec // it is a program
		os.WriteFile(taken, nil, 0o600), syscall.Mkfifo(gate, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	acceptance.DriveCard(t, taken, func() int64 { return foreignMiB },
		func(used int64, processes []fakenvml.Process) {
			shown := device
			shown.UsedMiB, shown.Processes = used, processes
			control.Set(shown)
		})
	return &card{
		experiments: newExperimentsOf(t, func() string { return acctest.ProviderWithGPUs(t, control) }),
		device:      device, gate: gate,
		attributes: fmt.Sprintf("  python = %q\n  env    = { CARD = %q, GATE = %q }\n", python, taken, gate),
	}
}

// pool is the pool of the card, with more attributes.
func (c *card) pool(attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_gpu_pool" "a40" {
  cluster = trainyard_cluster.lab
  name    = "a40"
  devices = { local = [%q] }
  sharing = "slots"
  %s
}`, c.device.UUID, attributes)
}

// open lets all runs begin to learn, also those that start later.
func (c *card) open() {
	c.Helper()
	gate, err := os.OpenFile(c.gate, os.O_RDWR, 0)
	if err != nil {
		c.Fatal(err)
	}
	c.t.Cleanup(func() { _ = gate.Close() })
}

// expectAll waits until this many runs have succeeded, and returns their keys. None may fail for good.
func (c *card) expectAll(count int) (keys []string) {
	c.Helper()
	acctest.Eventually(c, fmt.Sprintf("all %d to succeed", count), func() bool {
		keys = nil
		for key, run := range c.runs() {
			if run.State == domain.RunFailed || run.State == domain.RunOutOfMemory || run.Failures > 0 {
				c.Fatalf("%s is %+v", key, run)
			}
			if run.State == domain.RunSucceeded {
				keys = append(keys, key)
			}
		}
		return len(keys) == count
	})
	return keys
}

// ranOut returns how many attempts have run out of memory.
func (c *card) ranOut() (count int) {
	c.Helper()
	for _, run := range c.runs() {
		count += run.OutOfMemory
	}
	return count
}

// Fifty runs are requested on one card, for which their pool promises more than it has: all fifty deliver results, and
// those that ran out of memory are reported separately, and retried without counting as failures. The hook is called
// once for each run, and not for attempts that ran out of memory.
func TestSystemExperimentsCard(t *testing.T) {
	const cardMiB, fit = 44_685, 37
	c, hook := newCard(t, cardMiB, 0), newHook(t)
	c.Write("main.tf", pricing(`
    q-learning = { environment = { episodes = 120 }, learning = { epsilon_frames = 4000 } }`, fmt.Sprintf(`
  seeds     = range(50)
  gpus      = { pool = trainyard_gpu_pool.a40.name, memory_mib = 900 }
  retry     = { max_attempts = 1, out_of_memory = 100 }
  results   = { on_destroy = "delete" }
  on_finish = { url = %q, timeout = "5m" }

  admission = { free_gpu_memory = false }
%s`, hook.URL, c.attributes))+c.pool("memory_mib_per_slot = 900\n  reserve_percent = 0"))
	c.Must("get")
	c.Must("apply", "-auto-approve")
	acctest.Eventually(t, "the card to be full, and those too many to wait", func() bool {
		return c.counts()[domain.RunRunning] == fit && c.ranOut() > 0
	})
	c.open()
	keys := c.expectAll(50)
	c.ExpectNoChange("once all have ended")
	ends := map[string]int{}
	for key, run := range c.runs() {
		ends[fmt.Sprintf("%s %d succeeded", key, run.Attempts)] = 1
	}
	hook.expect(ends)
	files := acceptance.Fetched(t, "pricing", "--endpoint", c.StateDir)
	learnt, random := 0.0, 0.0
	for key, run := range expectLearnt(t, files, 1.2, keys...) {
		learnt, random = learnt+run.Result.FinalReward/50, random+run.Result.RandomReward/50
		if run.GPUs != c.device.UUID || run.StartedBy != "ada" || run.Experiments != "pricing" {
			t.Errorf("%s has left %+v, want it of the card, started by ada", key, run)
		}
	}
	if learnt < 3*random {
		t.Errorf("the agents earn %.0f on average, and %.0f at random", learnt, random)
	}
	t.Logf("50 of 50, %.0f an episode on average, %.0f at random; %d attempts ran out of memory", learnt, random,
		c.ranOut())
	c.Must("destroy", "-auto-approve")
	hook.expect(ends)
}

// With the module's defaults, except for a shorter settle, a run starts where 1199 MiB and 3 % of the card are free,
// whoever uses the rest, and not before the previous one has allocated its memory. Without the reserve, one more would
// be admitted: it would run out of memory, as none does.
func TestSystemExperimentsAdmission(t *testing.T) {
	const reserveMiB, over, fit = 1_383, 600, 2 // 3 % of 46,068 MiB, rounded up
	const freeMiB = fit*runMiB + reserveMiB + over
	const settle = 20 * time.Second // for a run to allocate its memory, also on a busy machine
	c := newCard(t, fit*runMiB, acceptance.A40().MemoryMiB-freeMiB)
	c.Write("main.tf", pricing(`
    q-learning = { environment = { episodes = 120 }, learning = { epsilon_frames = 4000 } }`, fmt.Sprintf(`
  seeds   = range(3)
  gpus    = { pool = trainyard_gpu_pool.a40.name }
  results = { on_destroy = "delete" }

  admission = { settle = %q }
%s`, settle, c.attributes))+c.pool("memory_mib_per_slot = 1199\n  on_foreign_process = \"ignore\""))
	c.Must("get")
	c.Must("apply", "-auto-approve")
	c.expectListed("q-learning-seed-2 ", " queued ", fmt.Sprintf("%d MiB of its memory are free, and a run needs %d "+
		"with the reserve", reserveMiB+over, runMiB+reserveMiB))
	runs := c.runs()
	first, second := runs["q-learning-seed-0"], runs["q-learning-seed-1"]
	if c.counts()[domain.RunRunning] != fit || first.StartedAt == nil || second.StartedAt == nil ||
		second.StartedAt.Sub(*first.StartedAt) < settle {
		t.Errorf("the runs are %+v, want two of them running, the second one started %s after the first", runs, settle)
	}
	c.open()
	keys := c.expectAll(3) // before their results are fetched
	expectLearnt(t, acceptance.Fetched(t, "pricing", "--endpoint", c.StateDir), 1.2, keys...)
	if ranOut := c.ranOut(); ranOut > 0 {
		t.Errorf("%d attempts ran out of memory", ranOut)
	}
	c.ExpectNoChange("once all have ended")
}

// With progress, the number of runs at a time follows the episodes that the module's own program logs.
func TestSystemExperimentsProgress(t *testing.T) {
	e := newExperiments(t)
	e.Write("main.tf", pricing(`
    endless = { environment = { episodes = 10000000 } }`, `
  seeds    = range(4)
  progress = { settle = "5s" }
  results  = { on_destroy = "delete" }`))
	e.Must("get")
	e.Must("apply", "-auto-approve")
	acctest.Eventually(t, "one run to be measured, and another one to be tried beside it", func() bool {
		p := e.found().Parallelism
		if p.Unknown != "" {
			t.Fatalf("nothing can be measured: %s", p.Unknown)
		}
		return p.Throughput[1] > 0 && e.counts()[domain.RunRunning] > 1
	})
	e.ExpectNoChange("while the number of runs is searched")
	e.Must("destroy", "-auto-approve")
	e.ExpectNobody("after the destroy")
}
