//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sparkJob is a training of the module spark, with the paper's mean seconds by number of static workers; 0 is its
// autoscaler.
type sparkJob struct {
	name      string
	rounds    int
	published map[int]float64
}

// The regression has fewer columns, and gets more rounds: with as many as the classification, it is mostly Spark's own
// start, which workers can't shorten.
var sparkJobs = []sparkJob{
	{"classification", 60, map[int]float64{0: 1056, 1: 1740, 2: 828}},
	{"regression", 240, map[int]float64{0: 177, 1: 328, 2: 139}},
}

// sparkCounts are the numbers of static workers. Each has 0.4 processors, so that four of them and everything else fit
// into two.
var sparkCounts = []int{1, 2, 4}

// twoWorkers is the count with which the paper compares its autoscaler; sparkSlack is the factor by which ours may be
// slower than the best count. sparkSubmits is the number of submits in a row under the policy, which scales before the
// first one and keeps its workers for the others.
const (
	twoWorkers   = 2
	sparkSlack   = 1.1
	sparkSubmits = 3
)

// The JSON endpoint of the measured Spark's master, and the size of the trainings' data.
const (
	sparkEndpoint = "http://127.0.0.1:19080/json/"
	sparkRows     = 600_000
)

// sparkSubmit is how long a submit took from the end of its first task, which waits until all of its workers are there,
// and from the start of its program, which includes Spark's own start and that wait.
type sparkSubmit struct {
	training, whole time.Duration
}

// sparkTimes is how long a job took in a run: by number of static workers, and in each submit with the policy, which
// had best workers per application.
type sparkTimes struct {
	static map[int]sparkSubmit
	policy []sparkSubmit
	best   int
}

// spark trains both jobs with static workers, and then several times in a row with the policy. It starts with one
// worker and is given the best count: as much as scaling before the submit and across runs, with what earlier runs have
// shown, can do.
func (b *bench) spark(ctx context.Context) ([]fmt.Stringer, error) {
	install := exec.CommandContext(ctx, "internal/tools/python.sh", "spark")
	install.Stderr = b.progress
	programs, err := install.Output()
	if err != nil {
		return nil, fmt.Errorf("the environment of Spark can't be installed: %w", err)
	}
	path := strings.TrimSpace(string(programs)) + ":" + os.Getenv("PATH")

	taken := make([][]sparkTimes, len(sparkJobs))
	for run := range b.runs {
		for i, job := range sparkJobs {
			times := sparkTimes{static: map[int]sparkSubmit{}}
			for _, count := range sparkCounts {
				b.say("spark: %s with %d workers, run %d of %d", job.name, count, run+1, b.runs)
				took, err := b.submit(ctx, path, job, 1, count,
					fmt.Sprintf("worker = { replicas = %d, %s }", count, sparkWorker))
				if err != nil {
					return nil, err
				}
				times.static[count] = took[0]
			}
			times.best = times.fastest()
			b.say("spark: %s by the policy, run %d of %d", job.name, run+1, b.runs)
			times.policy, err = b.submit(ctx, path, job, sparkSubmits, 1, fmt.Sprintf(`worker = { %s }
  autoscale = { max = %d, workers_per_application = %d, interval = "1s" }`,
				sparkWorker, slices.Max(sparkCounts), times.best))
			if err != nil {
				return nil, err
			}
			taken[i] = append(taken[i], times)
		}
	}
	return sparkTables(taken), nil
}

// sparkWorker are the attributes of all workers.
const sparkWorker = `memory_mib = 1536, daemon_memory_mib = 256, web_port = 0, resources = { cpus = 0.4 }`

// fastest returns the count of static workers with the fastest training.
func (t sparkTimes) fastest() int {
	return slices.MinFunc(sparkCounts, func(a, b int) int {
		return cmp.Compare(t.static[a].training, t.static[b].training)
	})
}

// submit returns how long a job took in a Spark of its own, in each of several submits in a row. The first one is made
// once this many workers are registered.
func (b *bench) submit(
	ctx context.Context, path string, job sparkJob, submits, begin int, attributes string,
) (took []sparkSubmit, err error) {
	dir, err := os.MkdirTemp(b.work, "spark-")
	if err != nil {
		return nil, err
	}
	w := &workspace{bench: b, name: "bench", dir: dir, path: path}
	if err := os.CopyFS(filepath.Join(dir, "modules"), os.DirFS("modules")); err != nil {
		return nil, err
	}
	configure := func(nth int) error {
		return os.WriteFile(filepath.Join(dir, "main.tf"), []byte(sparkConfiguration(job, nth, attributes)), 0o600)
	}
	if err := configure(1); err != nil {
		return nil, err
	}
	if _, err := w.terraform(ctx, "init"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if _, err := w.terraform(ctx, "apply", "-auto-approve", "-target=module.spark"); err != nil {
		return nil, err
	}
	if err := awaitSpark(ctx, begin); err != nil {
		return nil, err
	}
	for i := range submits {
		if err := configure(i + 1); err != nil {
			return nil, err
		}
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
		show := b.command(ctx, "output", "-json", "log")
		show.Dir = dir
		text, err := show.Output()
		if err != nil {
			return nil, err
		}
		one, err := sparkTook(text)
		if err != nil {
			return nil, err
		}
		b.say("spark: submit %d took %.1f s, %.1f s from the first task", i+1, one.whole.Seconds(), one.training.Seconds())
		took = append(took, one)
	}
	return took, nil
}

// sparkTook returns the times that a driver prints at the end of its log, a JSON list of lines.
func sparkTook(log []byte) (sparkSubmit, error) {
	var lines []string
	if err := json.Unmarshal(log, &lines); err != nil {
		return sparkSubmit{}, err
	}
	duration := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	for _, line := range slices.Backward(lines) {
		var entry struct {
			Event    string  `json:"event"`
			Seconds  float64 `json:"seconds"`
			Training float64 `json:"since_first_task"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Event == "evaluated" {
			return sparkSubmit{training: duration(entry.Training), whole: duration(entry.Seconds)}, nil
		}
	}
	return sparkSubmit{}, errors.New("the driver does not say how long it took")
}

// sparkConfiguration returns the configuration of a Spark with these attributes, and of a job's nth submit.
func sparkConfiguration(job sparkJob, nth int, attributes string) string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "bench" {
  name = "bench"
}

module "spark" {
  source  = "./modules/spark"
  cluster = trainyard_cluster.bench
  master  = { port = 19077, web_port = 19080, daemon_memory_mib = 256 }
  %s
}

module "job" {
  source  = "./modules/spark/submit"
  spark   = module.spark
  name    = "job"
  program = "%s.py"
  env     = { ROWS = "%d", ROUNDS = "%d" }
  conf    = { "spark.ui.enabled" = "false" }

  triggers = { submit = %d }
}

data "trainyard_logs" "job" {
  cluster    = trainyard_cluster.bench
  member     = module.job.driver
  depends_on = [module.job]
}

output "log" {
  value = data.trainyard_logs.job.lines
}
`, attributes, job.name, sparkRows, job.rounds, nth)
}

// sparkPatience limits how long workers may take to register, even on a busy machine.
const sparkPatience = 5 * time.Minute

// awaitSpark waits until this many workers are registered.
func awaitSpark(ctx context.Context, workers int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sparkPatience,
		fmt.Errorf("there are no %d workers on %s", workers, sparkEndpoint))
	defer cancel()
	for {
		if registered(ctx) >= workers {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// registered returns the number of workers that the master reports; 0 while it does not answer.
func registered(ctx context.Context) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, sparkEndpoint, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	var status struct {
		Alive int `json:"aliveworkers"`
	}
	if json.NewDecoder(response.Body).Decode(&status) != nil {
		return 0
	}
	return status.Alive
}
