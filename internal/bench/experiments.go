//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const (
	// cardRuns are requested at once on one card, half of them of each agent. Each uses cardRunMiB, and of cardMiB, all
	// of them can allocate allocatableMiB: as published, 37 fit, and the 38th runs out of memory.
	cardRuns       = 50
	cardRunMiB     = 1_199
	cardMiB        = 46_068
	allocatableMiB = 44_685
	// cardCPUs is the limit of a run's processors: eight runs use two, even if some wait or start, and more gain
	// nothing. As published, throughput is highest with eight.
	cardCPUs = 0.3
	// A run needs about 2.4 s of a processor, and 8 s with its limit; the paper's take 508 s alone. So times to settle
	// are shorter than the defaults, 20 s and 1 min.
	qEpisodes, dqnEpisodes         = 800, 130
	cardSettle, cardProgressSettle = "200ms", "2s"

	cardLook, cardLongest = 500 * time.Millisecond, 15 * time.Minute
	// cardWidest is the index in cardWays of the way that others are compared with.
	cardWidest = 2
)

// cardWay is a way to run them. published says what the paper says of it; its seconds are computed from the paper's
// table of medians.
type cardWay struct {
	name, pool, attributes string
	makespan, mean         float64 // in seconds; 0 if the paper says nothing
	published              string
	// full reports whether the card has all the runs that it takes, from when on they may learn.
	full func(running, ranOut int) bool
}

// running returns a [cardWay.full] for this many runs.
func running(want int) func(running, ranOut int) bool {
	return func(running, _ int) bool { return running >= want }
}

// bySlots starts runs while there are slots. byMemory is the module's default, with a shorter time to settle: it also
// measures free memory before each start, so a card takes at most two runs a second.
const (
	bySlots  = "admission = { free_gpu_memory = false }\n"
	byMemory = "admission = { settle = \"" + cardSettle + "\" }\n"
)

var cardWays = []cardWay{
	{
		name: "8", attributes: bySlots + "  max_parallel = 8", makespan: 8238, mean: 4620,
		published: "most results per hour", full: running(8),
	},
	{name: "8, by free memory", attributes: byMemory + "  max_parallel = 8", full: running(8)},
	{
		name: "37 slots", attributes: bySlots, makespan: 8230, mean: 6649, published: "37 fit, and gain nothing",
		full: running(37),
	},
	{
		name: "`progress`", attributes: bySlots + fmt.Sprintf("  progress = { settle = %q }", cardProgressSettle),
		full: running(1),
	},
	{
		name: "38 slots", pool: "reserve_percent = 0", attributes: bySlots, published: "the 38th dies",
		full: func(_, ranOut int) bool { return ranOut > 0 },
	},
}

// cardCourse is how the runs went in one way.
type cardCourse struct {
	most, finished, ranOut int
	makespan, mean         time.Duration
	// best is the number of runs at a time with the highest throughput that progress has measured, 0 if none. It has
	// settled if it was not going to try others.
	best    int
	settled bool
}

// experiments runs fifty agents of the module on one card of a fake driver, in each way.
func (b *bench) experiments(ctx context.Context) (_ []fmt.Stringer, err error) {
	python, _, err := pythonOf(ctx, "rl")
	if err != nil {
		return nil, err
	}
	card, err := b.startCard(ctx, python)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, card.stop()) }()
	w, err := b.workspace(ctx, "lab", 0, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err := os.CopyFS(filepath.Join(w.dir, "modules"), os.DirFS("modules")); err != nil {
		return nil, err
	}
	courses := make([][]cardCourse, len(cardWays))
	for run := range b.runs {
		for i, way := range cardWays {
			b.say("experiments: run %d of %d, %s", run+1, b.runs, way.name)
			course, err := w.experiment(ctx, card, way)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way.name, err)
			}
			b.say("experiments: %+v", course)
			courses[i] = append(courses[i], course)
		}
	}
	return cardTables(courses), nil
}

// sharedCard is a fake driver's card, and a Python whose processes allocate its memory.
type sharedCard struct {
	device        fakenvml.Device
	python, taken string
	gate          string // a FIFO for which all wait before they learn
	stop          func() error
}

// startCard puts a card in the place of the GPUs that agents see, until it is stopped.
func (b *bench) startCard(ctx context.Context, python string) (*sharedCard, error) {
	before, err := os.ReadFile(b.gpus.control)
	if err != nil {
		return nil, err
	}
	c := &sharedCard{
		device: fakenvml.Device{
			UUID: "GPU-a40a40a4-0000-4000-8000-000000000000", Name: "NVIDIA A40", PCIBusID: "00000000:3B:00.0",
			MemoryMiB: cardMiB,
		},
		python: filepath.Join(b.work, "allocating-python"), taken: filepath.Join(b.work, "card"),
		gate: filepath.Join(b.work, "gate"),
	}
	if err := errors.Join(
		os.WriteFile(c.python, fakenvml.Allocating(python, cardRunMiB, allocatableMiB), 0o700), //nolint:gosec // a program
		os.WriteFile(c.taken, nil, 0o600), syscall.Mkfifo(c.gate, 0o600), b.setGPUs(fakenvml.Text(c.device)),
	); err != nil {
		return nil, err
	}
	following, cancel := context.WithCancel(ctx)
	var trouble error
	var done sync.WaitGroup
	done.Go(func() {
		fakenvml.FollowAllocations(following, c.taken, func() int64 { return 0 },
			func(used int64, processes []fakenvml.Process) {
				shown := c.device
				shown.UsedMiB, shown.Processes = used, processes
				trouble = errors.Join(trouble, b.setGPUs(fakenvml.Text(shown)))
			})
	})
	c.stop = func() error {
		cancel()
		done.Wait()
		return errors.Join(trouble, b.setGPUs(string(before)))
	}
	return c, nil
}

// setGPUs replaces what agents see.
func (b *bench) setGPUs(text string) error {
	next := b.gpus.control + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil { //nolint:gosec // agents may be other users
		return err
	}
	return os.Rename(next, b.gpus.control)
}

// experiment runs all experiments in one way, and removes them.
func (w *workspace) experiment(ctx context.Context, card *sharedCard, way cardWay) (course cardCourse, err error) {
	file := filepath.Join(w.dir, "main.tf")
	cluster := configuration(w.name, 0, false)
	config := cluster + fmt.Sprintf(`
resource "trainyard_gpu_pool" "a40" {
  cluster             = trainyard_cluster.bench
  name                = "a40"
  devices             = { local = [%q] }
  sharing             = "slots"
  memory_mib_per_slot = %d
  %s
}

module "pricing" {
  source    = "./modules/experiments"
  cluster   = trainyard_cluster.bench
  name      = "pricing"
  seeds     = range(%d)
  python    = %q
  env       = { CARD = %q, GATE = %q }
  gpus      = { pool = trainyard_gpu_pool.a40.name }
  resources = { cpus = 0.02, limits = { cpus = %g } }
  results   = { on_destroy = "delete" }
  runs = {
    q-learning = { environment = { agent = "q_learning", episodes = %d }, learning = { epsilon_frames = 12000 } }
    dqn = {
      environment = { agent = "dqn", episodes = %d }
      learning = { learning_rate = 0.001, replay_start = 300, epsilon_frames = 2000, hidden_units = 64 }
    }
  }
  %s
}
`, card.device.UUID, cardRunMiB, way.pool, cardRuns/2, card.python, card.taken, card.gate, cardCPUs,
		qEpisodes, dqnEpisodes, way.attributes)
	if err := errors.Join(
		os.WriteFile(file, []byte(config), 0o600),
		os.WriteFile(card.taken, nil, 0o600), // later processes may have the PIDs of earlier runs
	); err != nil {
		return course, err
	}
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		if _, err := w.terraform(ctx, args...); err != nil {
			return course, err
		}
	}
	if course, err = w.awaitExperiments(ctx, card.gate, way.full); err != nil {
		return course, err
	}
	if err := os.WriteFile(file, []byte(cluster), 0o600); err != nil {
		return course, err
	}
	_, err = w.apply(ctx) // removes them
	return course, err
}

// awaitExperiments lets all experiments learn once the card is full, waits until they have ended, and returns how they
// went.
func (w *workspace) awaitExperiments(
	ctx context.Context, gate string, full func(running, ranOut int) bool,
) (course cardCourse, err error) {
	e, err := process.Open(domain.ClusterRef{Name: w.name}, engine.Settings{StateDir: w.stateDir().Root},
		process.Program{File: w.bench.provider, Version: "bench"})
	if err != nil {
		return course, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cardLongest, errors.New("not all experiments end in time"))
	defer cancel()
	var begin time.Time
	for most := 0; ; {
		found, err := reconcile.Reconciler{Engine: e}.SweepRuns(ctx, "pricing")
		if err != nil {
			return course, err
		}
		running, ended, ranOut := 0, 0, 0
		for _, run := range found.Runs {
			if run.State == domain.RunRunning {
				running++
			}
			if run.State.Ended() {
				ended++
			}
			ranOut += run.OutOfMemory
		}
		most = max(most, running)
		if ended == cardRuns {
			course = courseOf(found.Runs, begin)
			course.most, course.best, course.settled = most, found.Parallelism.Best, found.Parallelism.Settled
			return course, nil
		}
		if begin.IsZero() && full(running, ranOut) {
			open, err := os.OpenFile(gate, os.O_RDWR, 0)
			if err != nil {
				return course, err
			}
			defer open.Close()
			begin = time.Now()
		}
		if err := pause(ctx, cardLook); err != nil {
			return course, context.Cause(ctx)
		}
	}
}

// courseOf returns how runs went that have ended. Times count from begin.
func courseOf(runs map[string]domain.Run, begin time.Time) (course cardCourse) {
	var sum time.Duration
	for _, run := range runs {
		course.ranOut += run.OutOfMemory
		if run.State != domain.RunSucceeded || run.Value == nil || run.FinishedAt == nil {
			continue
		}
		took := run.FinishedAt.Sub(begin)
		course.finished++
		course.makespan = max(course.makespan, took)
		sum += took
	}
	course.mean = sum / time.Duration(max(course.finished, 1))
	return course
}
