//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lab is a set of machines that form a cluster of one engine.
type lab struct {
	*bench
	engine string
	// docker is the value of DOCKER_HOST, if any.
	docker string
	// settings are provider attributes; beside is configuration to add next to the cluster.
	settings, beside string
	// pooled is the host whose GPUs are in the pool.
	pooled string
}

// workspace creates a workspace with a cluster of the machines. hosts is the cluster's hosts attribute; "" leaves hosts
// to the engine.
func (l *lab) workspace(ctx context.Context, name, hosts string) (*workspace, error) {
	dir := filepath.Join(l.work, name)
	w := &workspace{bench: l.bench, name: name, dir: dir, docker: l.docker, hosts: hosts}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, err
	}
	if err := l.configure(w, 0, "", false); err != nil {
		return nil, err
	}
	_, err := w.terraform(ctx, "init")
	return w, err
}

// configure writes a configuration with a group that runs this, or only the cluster if members is 0. With pooled, a
// part of the members have GPUs.
func (l *lab) configure(w *workspace, members int, runs string, pooled bool) error {
	w.members = members
	config := fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

provider "trainyard" {
  %s
}

resource "trainyard_cluster" "bench" {
  name   = %q
  engine = %q
  hosts  = %s
}
`, l.settings, w.name, l.engine, cmp.Or(w.hosts, "null")) + l.beside
	if members > 0 {
		attributes := `grace_period = "1s", restart = { condition = "always", delay = "0s" }, ` +
			fmt.Sprintf(`update = { parallelism = %d }`, swarmParallel)
		roles := role("worker", members, port, attributes)
		if pooled {
			config += gpuPool(fmt.Sprintf("hosts = [%q]", l.pooled))
			roles = pooledRoles(members, port, attributes)
		}
		config += fmt.Sprintf(`
resource "trainyard_group" "job" {
  cluster   = trainyard_cluster.bench
  name      = "job"
  framework = "none"
  %s
  roles = {
%s  }
  completion = { when = "never" }
}
`, runs, roles)
	}
	return os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600)
}

// applied applies a group of this many members, and waits until all of them run; with 0, only the cluster.
func (l *lab) applied(ctx context.Context, w *workspace, members int, runs string) error {
	if err := l.configure(w, members, runs, false); err != nil {
		return err
	}
	_, err := w.apply(ctx)
	return err
}

// close destroys what exists, and deletes the workspace.
func (l *lab) close(ctx context.Context, w *workspace) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := w.destroy(ctx)
	if err := errors.Join(err, os.RemoveAll(w.dir)); err != nil {
		return &cleanupError{err}
	}
	return nil
}

// labPlan holds the measurements of a plan without changes.
type labPlan struct {
	members int
	took    sample
	calls   engineCalls
	memory  uint64 // the provider's peak
}

// plans measures plans without changes of groups of these sizes, one at a time, since groups that exist at the same
// time would be listed together. It pauses after each apply.
func (l *lab) plans(ctx context.Context, w *workspace, sizes []int, runs string, rest time.Duration,
	calls func(context.Context, *workspace) (engineCalls, error)) ([]labPlan, error) {
	var plans []labPlan
	for _, size := range sizes {
		l.say("%s: creating a group of %s", l.engine, count(size))
		if err := l.configure(w, size, runs, true); err != nil {
			return nil, err
		}
		if _, err := w.apply(ctx); err != nil {
			return nil, err
		}
		if err := pause(ctx, rest); err != nil {
			return nil, err
		}
		p := labPlan{members: size}
		for range l.runs {
			took, err := w.plan(ctx)
			if err != nil {
				return nil, err
			}
			p.took = append(p.took, took)
		}
		var err error
		if p.calls, err = calls(ctx, w); err != nil {
			return nil, err
		}
		if p.memory, err = l.peak(func() error { _, err := w.plan(ctx); return err }); err != nil {
			return nil, err
		}
		plans = append(plans, p)
		if _, err := w.destroy(ctx); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// timed calls do, and adds how long it took to a sample.
func timed(do func() error, into *sample) error {
	begin := time.Now()
	err := do()
	*into = append(*into, time.Since(begin))
	return err
}
