//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
)

const (
	// The processors of a worker and of a parameter server: two parameter servers and four workers use two. Where
	// there are more parameter servers, workers have only leanCPUs, so that everything still fits into two.
	workerCPUs, psCPUs, leanCPUs = 0.4, 0.2, 0.3
	// psBatch is the number of examples per step, large enough that most of the work is the workers'. With the
	// paper's 20, two parameter servers of today would be as busy as the first worker.
	psBatch = 800
	// smallBatch is that of a curve of parameter servers. With psBatch, these are never the limit, and more of them
	// only make workers wait for more answers, as another curve shows.
	smallBatch = 200
	// The processors of a host: three hosts use two.
	hostCPUs = 0.66
	// psWorkerPatience limits the time until all workers train.
	psWorkerPatience = 5 * time.Minute
)

// formation is the composition of a training.
type formation struct {
	workers, ps int
	hosts       int     // 0 for this machine, with the engine process
	cpus        float64 // processors of a worker
	batch       int     // examples per step
}

// psWorker trains with the module ps-worker and a real TensorFlow: the curves of B. Krasuski's paper, and the
// policy that should find their knee.
func (b *bench) psWorker(ctx context.Context) (_ []fmt.Stringer, err error) {
	p := &psWorkerBench{bench: b, rates: map[formation][]float64{}}
	var folders []string
	if p.python, folders, err = pythonOf(ctx, "tensorflow"); err != nil {
		return nil, err
	}
	mounts := append(folders, b.work) // the agent's library is there
	p.bed, err = testbed.StartHosts(ctx, testbed.HostOptions{Hosts: mostPSHosts, Mounts: mounts, CPUs: hostCPUs})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.bed.Close()) }()
	for run := range b.runs {
		// Curves in turns, so that the machine's other load is the same for all of a run.
		for _, f := range p.formations() {
			b.say("ps-worker: run %d of %d, %d workers, %d ps, %d hosts", run+1, b.runs, f.workers, f.ps, f.hosts)
			rate, err := p.measure(ctx, f)
			if err != nil {
				return nil, fmt.Errorf("%+v: %w", f, err)
			}
			p.rates[f] = append(p.rates[f], rate)
		}
		b.say("ps-worker: run %d of %d, the policy", run+1, b.runs)
		found, err := p.followPolicy(ctx)
		if err != nil {
			return nil, err
		}
		p.found = append(p.found, found)
	}
	return p.tables(), nil
}

// psWorkerBench is what the trainings share, and their results.
type psWorkerBench struct {
	*bench
	python string
	bed    *testbed.Hosts
	rates  map[formation][]float64 // steps per second, by run
	found  []psPolicy              // by run
}

// pythonOf returns the path of Python in an environment of internal/tools, and the folders needed to run it. It
// installs the environment if necessary.
func pythonOf(ctx context.Context, environment string) (python string, folders []string, err error) {
	install := exec.CommandContext(ctx, "internal/tools/python.sh", environment)
	install.Stderr = os.Stderr
	programs, err := install.Output()
	if err != nil {
		return "", nil, fmt.Errorf("the environment %s can't be installed: %w", environment, err)
	}
	bin := strings.TrimSpace(string(programs))
	python = filepath.Join(bin, "python3")
	prefix, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.base_prefix)").Output()
	if err != nil {
		return "", nil, err
	}
	folders = []string{filepath.Dir(bin)}
	if base := strings.TrimSpace(string(prefix)); base != "/usr" { // hosts have their own /usr
		folders = append(folders, base)
	}
	return python, folders, nil
}

// cluster returns the configuration of the cluster "lab" with this many hosts, or on this machine with 0, and a
// function that opens it.
func (p *psWorkerBench) cluster(w *workspace, hosts int) (string, func() (engine.Engine, error)) {
	if hosts == 0 {
		return "resource \"trainyard_cluster\" \"lab\" {\n  name = \"lab\"\n}\n", func() (engine.Engine, error) {
			return process.Open(domain.ClusterRef{Name: w.name}, engine.Settings{StateDir: w.stateDir().Root},
				process.Program{File: p.provider, Version: "bench"})
		}
	}
	h := hostsBench{bed: &testbed.Hosts{Hosts: p.bed.Hosts[:hosts]}}
	config := fmt.Sprintf(`
provider "trainyard" {
  ssh = { identity_files = [%q], known_hosts_files = [%q] }
}

resource "trainyard_cluster" "lab" {
  name   = "lab"
  engine = "systemd"
  hosts  = %s
}
`, p.bed.KeyFile, p.bed.KnownHosts, h.addresses())
	return config, func() (engine.Engine, error) {
		ref := domain.ClusterRef{Engine: systemd.Name, Name: w.name, Endpoint: "ssh://ops@" + p.bed.Hosts[0].SSH}
		ssh := engine.SSHCredentials{IdentityFiles: []string{p.bed.KeyFile}, KnownHosts: []string{p.bed.KnownHosts}}
		return systemd.Open(ref, engine.Settings{SSH: ssh}, systemd.Program{File: p.provider})
	}
}

// train creates a workspace and applies a training with additional attributes of the module.
func (p *psWorkerBench) train(ctx context.Context, f formation, attributes string) (*workspace, engine.Engine, error) {
	dir, err := os.MkdirTemp(p.work, "ps-worker-")
	if err != nil {
		return nil, nil, err
	}
	w := &workspace{bench: p.bench, name: "lab", dir: dir}
	if err := os.CopyFS(filepath.Join(dir, "modules"), os.DirFS("modules")); err != nil {
		return nil, nil, err
	}
	cluster, open := p.cluster(w, f.hosts)
	if err := p.configure(w, cluster, f, attributes); err != nil {
		return nil, nil, err
	}
	if _, err := w.terraform(ctx, "init"); err != nil {
		return nil, nil, err
	}
	if _, err := w.apply(ctx); err != nil {
		return w, nil, err
	}
	e, err := open()
	return w, e, err
}

// configure writes a training's configuration.
func (p *psWorkerBench) configure(w *workspace, cluster string, f formation, attributes string) error {
	limits := func(cpus float64) string {
		return fmt.Sprintf("resources = { cpus = 0.05, limits = { cpus = %g } }, placement = { strategy = \"spread\" }",
			cpus)
	}
	replicas := ""
	if f.workers > 0 {
		replicas = fmt.Sprintf("replicas = %d, ", f.workers)
	}
	config := fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
%s
module "mnist" {
  source     = "./modules/ps-worker"
  cluster = trainyard_cluster.lab
  name    = "mnist"
  python  = %q
  batch_size = %d
  ps      = { replicas = %d, port = 18200, %s }
  worker  = { %sport = 19200, %s }
%s}
`, cluster, p.python, f.batch, f.ps, limits(psCPUs), replicas, limits(f.cpus), attributes)
	return os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600)
}

// measure returns the steps per second of a training once all of its workers train.
func (p *psWorkerBench) measure(ctx context.Context, f formation) (rate float64, err error) {
	begin := time.Now()
	w, e, err := p.train(ctx, f, "  env     = { SAY_EVERY = \"0.5\" }\n")
	if w != nil {
		defer func() { err = errors.Join(err, p.end(ctx, w)) }()
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, psWorkerPatience+p.training,
		errors.New("not all workers train in time"))
	defer cancel()
	for {
		logs, err := p.workerLogs(ctx, e, f.workers)
		if err != nil {
			return 0, cmp.Or(context.Cause(ctx), err)
		}
		if rate, span := rateOfAll(logs); span >= p.training {
			p.say("ps-worker: %.0f steps a second; all trained after %.0f s", rate,
				(time.Since(begin) - span).Seconds())
			return rate, nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// end destroys a training and its cluster.
func (p *psWorkerBench) end(ctx context.Context, w *workspace) error {
	l := lab{bench: p.bench}
	return l.close(ctx, w)
}

// trainLine is a line from a worker.
type trainLine struct {
	Step     int      `json:"step"`
	Accuracy *float64 `json:"accuracy"`
	Time     float64  `json:"time"`
}

// workerLogs returns the lines of this many workers, by index.
func (p *psWorkerBench) workerLogs(ctx context.Context, e engine.Telemetry, workers int) ([][]trainLine, error) {
	logs := make([][]trainLine, workers)
	for i := range logs {
		lines, err := e.Logs(ctx, domain.MemberName("mnist", "worker", i), engine.LogOptions{})
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			var one trainLine
			if json.Unmarshal([]byte(line), &one) == nil && one.Time > 0 {
				logs[i] = append(logs[i], one)
			}
		}
	}
	return logs, nil
}

// rateOfAll returns the steps per second of all workers together from the first step of the last worker on, according
// to the first worker, and over which time. It is 0 while any of them has printed nothing.
func rateOfAll(logs [][]trainLine) (rate float64, span time.Duration) {
	begin := 0.0
	for _, lines := range logs {
		if len(lines) == 0 {
			return 0, 0
		}
		begin = max(begin, lines[0].Time)
	}
	var first, last *trainLine
	for i := range logs[0] {
		if one := &logs[0][i]; one.Time >= begin {
			first, last = cmp.Or(first, one), one
		}
	}
	if first == last {
		return 0, 0
	}
	seconds := last.Time - first.Time
	return float64(last.Step-first.Step) / seconds, time.Duration(seconds * float64(time.Second))
}
