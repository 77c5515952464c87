//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
)

const (
	// Three workers on three hosts, as published. Two workloads together use less than two processors, which leaves
	// room for both engines.
	multiworkers   = 3
	multiworkerCPU = 0.3
	// multiworkerEpochs is the number of epochs of 70 steps. Of the 12 published ones, each takes as long as the
	// others.
	multiworkerEpochs = 3
	// multiworkerRuns is how often both engines are measured, in turns.
	multiworkerRuns = 5
	// multiworkerBar is the factor by which a Swarm may be slower than bare hosts.
	multiworkerBar = 1.10
)

// multiworkerPublished is how long all 12 epochs took on bare hosts and on a Swarm according to the paper, by number of
// workloads.
var multiworkerPublished = map[int]string{1: "150 → 185 s, +23 %", 2: "250 → 318 s, +27 %"}

// multiworkerModule is the module's path, from the root of the repository.
const multiworkerModule = "modules/multiworker"

// multiworker trains one workload, and then two at a time, on bare hosts and on a Swarm. The two run in turns.
func (b *bench) multiworker(ctx context.Context) ([]fmt.Stringer, error) {
	if strings.HasPrefix(b.work, "/tmp/") {
		return nil, fmt.Errorf("hosts have a /tmp of their own, and can't see %s: "+
			"set TMPDIR to another folder, such as /var/tmp", b.work)
	}
	programs := exec.CommandContext(ctx, "internal/tools/python.sh", "tensorflow")
	programs.Stderr = os.Stderr
	folder, err := programs.Output()
	if err != nil {
		return nil, fmt.Errorf("installing TensorFlow: %w", err)
	}
	python, err := pythonenv.Of(ctx, strings.TrimSpace(string(folder)))
	if err != nil {
		return nil, err
	}
	r := multiworkerResults{
		took: map[string]map[int]sample{systemd.Name: {}, "swarm": {}}, joined: map[string]sample{},
		checksums: map[int64]bool{},
	}
	for range min(b.runs, multiworkerRuns) {
		if err := b.multiworkerOnHosts(ctx, python, r.record); err != nil {
			return nil, err
		}
		if err := b.multiworkerOnSwarm(ctx, python, r.record); err != nil {
			return nil, err
		}
	}
	return r.tables(), nil
}

// multiworkerResults are those of all runs. Times until all workers have joined are of one workload.
type multiworkerResults struct {
	took       map[string]map[int]sample // by engine and number of workloads
	joined     map[string]sample         // by engine
	checksums  map[int64]bool
	accuracies []float64
}

// workloadEnd is the final line of a workload's worker 0, and the time from its start until all workers had joined.
type workloadEnd struct {
	Seconds  float64 `json:"seconds"`
	Checksum int64   `json:"checksum"`
	Accuracy float64 `json:"accuracy"`
	Joined   float64 `json:"joined"`
}

// record adds how this many workloads on an engine ended.
func (r *multiworkerResults) record(engine string, workloads int, of []workloadEnd) {
	var longest float64
	for _, end := range of {
		longest = max(longest, end.Seconds)
		r.checksums[end.Checksum] = true
		r.accuracies = append(r.accuracies, end.Accuracy)
		if workloads == 1 {
			r.joined[engine] = append(r.joined[engine], time.Duration(end.Joined*float64(time.Second)))
		}
	}
	r.took[engine][workloads] = append(r.took[engine][workloads], time.Duration(longest*float64(time.Second)))
}

// noteWorkloads notes how this many workloads on an engine ended.
type noteWorkloads func(engine string, workloads int, of []workloadEnd)

func (b *bench) multiworkerOnHosts(ctx context.Context, python pythonenv.Environment, ended noteWorkloads) (err error) {
	h, err := b.startHostsWith(ctx, multiworkers, python.Folders)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.bed.Close()) }()
	h.beside = ""
	return h.workloads(ctx, h.addresses(), "", python, ended)
}

func (b *bench) multiworkerOnSwarm(ctx context.Context, python pythonenv.Environment, ended noteWorkloads) (err error) {
	s, err := b.startSwarm(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.bed.Close()) }()
	empty, err := s.load(ctx, "bench:empty", v1.Config{Labels: map[string]string{"version": "empty"}})
	if err != nil {
		return err
	}
	return s.workloads(ctx, s.addresses(), empty, python, ended)
}

// workloads trains one workload on the machines, then two, and reports how they ended.
func (l *lab) workloads(
	ctx context.Context, hosts, image string, python pythonenv.Environment, ended noteWorkloads,
) (err error) {
	w, err := l.workspace(ctx, "multiworker", hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close(ctx, w)) }()
	if err := os.CopyFS(filepath.Join(w.dir, "module"), os.DirFS(multiworkerModule)); err != nil {
		return err
	}
	if _, err := w.apply(ctx); err != nil { // only the cluster
		return err
	}
	for _, workloads := range []int{1, 2} {
		l.say("%s: training by %d workloads of %d workers", l.engine, workloads, multiworkers)
		if err := l.configure(w, 0, "", false); err != nil {
			return err
		}
		var config strings.Builder
		for n := range workloads {
			config.WriteString(l.workloadConfig(n, workloads, image, python))
		}
		if err := appendTo(filepath.Join(w.dir, "main.tf"), config.String()); err != nil {
			return err
		}
		for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
			if _, err := w.terraform(ctx, args...); err != nil {
				return err
			}
		}
		ends, err := l.workloadEnds(ctx, w)
		if err != nil {
			return err
		}
		ended(l.engine, workloads, ends)
		if err := l.configure(w, 0, "", false); err != nil {
			return err
		}
		if _, err := w.apply(ctx); err != nil { // removes them
			return err
		}
	}
	return nil
}

// workloadConfig returns the configuration of a workload, given its number from 0. On a Swarm, the second has its own
// network.
func (l *lab) workloadConfig(n, workloads int, image string, python pythonenv.Environment) string {
	engine := ""
	if image != "" {
		engine = fmt.Sprintf("image  = %q\n  mounts = [\n%s\n  ]\n", image, python.Mounts())
		if n > 0 {
			engine += "  network = { subnet = \"10.10.0.0/24\" }\n"
		}
	}
	return fmt.Sprintf(`
module "w%[1]d%[2]d" {
  source   = "./module"
  cluster  = trainyard_cluster.bench
  name     = "w%[1]d%[2]d"
  python   = %[3]q
  epochs   = %[4]d
  wait_for = "completed"
  timeouts = { create = "1h" }
  worker = {
    replicas  = %[5]d
    port      = %[6]d
    placement = { strategy = "one_per_host" }
    resources = { limits = { cpus = %[7]g } }
  }
  %[8]s
}

data "trainyard_logs" "w%[1]d%[2]d" {
  cluster    = module.w%[1]d%[2]d.cluster
  member     = module.w%[1]d%[2]d.chief
  depends_on = [module.w%[1]d%[2]d]
}

locals {
  w%[1]d%[2]d = [for line in data.trainyard_logs.w%[1]d%[2]d.lines : jsondecode(line) if can(jsondecode(line).event)]
}

output "w%[1]d%[2]d" {
  value = merge([for line in local.w%[1]d%[2]d : line if line.event == "trained"][0],
    { joined = [for line in local.w%[1]d%[2]d : line.seconds if line.event == "joined"][0] })
}
`, workloads, n, python.Python, multiworkerEpochs, multiworkers, 5001+100*n, multiworkerCPU, engine)
}

// workloadEnds reads how the workloads ended.
func (l *lab) workloadEnds(ctx context.Context, w *workspace) ([]workloadEnd, error) {
	show := l.command(ctx, "output", "-json")
	show.Dir = w.dir
	var failed bytes.Buffer
	show.Stderr = &failed
	text, err := show.Output()
	if err != nil {
		return nil, fmt.Errorf("terraform output: %w\n%s", err, failed.String())
	}
	var outputs map[string]struct{ Value workloadEnd }
	if err := json.Unmarshal(text, &outputs); err != nil {
		return nil, err
	}
	var ends []workloadEnd
	for _, output := range outputs {
		ends = append(ends, output.Value)
	}
	return ends, nil
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func (r *multiworkerResults) tables() []fmt.Stringer {
	t := &table{head: []string{"workloads", "bare hosts", "Swarm", "cost of the Swarm", "published", "bar", ""}}
	for _, workloads := range []int{1, 2} {
		bare, swarm := r.took[systemd.Name][workloads], r.took["swarm"][workloads]
		ratio := swarm.ratio(bare)
		t.add(count(workloads), bare.seconds(), swarm.seconds(), percentMore(ratio), multiworkerPublished[workloads],
			"≤ "+percentMore(multiworkerBar), verdict(ratio <= multiworkerBar))
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("%d workers of %g processors each, one a host, with batches of 64.", multiworkers,
			multiworkerCPU)),
		note(fmt.Sprintf("%d epochs of 70 steps, of the 12 published ones, which take equally long: without the first "+
			"step, in which TensorFlow compiles. Of two workloads, the longer.",
			multiworkerEpochs)),
		note(fmt.Sprintf("From the start of one workload's worker 0 until all have joined, including TensorFlow's own "+
			"start: %s on bare hosts, %s on the Swarm. Published: 23 s of sleep and scan before that.",
			r.joined[systemd.Name].seconds(), r.joined["swarm"].seconds())),
		note(fmt.Sprintf("Accuracy: %s, on the module's own images. Published, after 12 epochs: 0.81–0.82 with one "+
			"workload, 0.77–0.83 with two.", spreadOf(r.accuracies, "%.3f"))),
		note(fmt.Sprintf("Medians of %d runs, in turns on fresh machines.", len(r.took["swarm"][1]))),
		note(fmt.Sprintf("Bar: the same weights everywhere: %s.", verdict(len(r.checksums) == 1))),
	}
}

// percentMore formats by how much a ratio exceeds 1.
func percentMore(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }
