//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// workspace is a Terraform configuration with its own state directory: one cluster, with one group or none.
type workspace struct {
	bench   *bench
	name    string
	dir     string
	members int
	// docker is the value of DOCKER_HOST, if any.
	docker string
	// hosts is the value of the cluster's hosts, if any.
	hosts string
	// path is the value of PATH, if it isn't this process's: a destroy looks for members' programs, too.
	path string
}

// cleanupTimeout limits the clean-up of a workspace.
const cleanupTimeout = 10 * time.Minute

// cleanupError says what could not be cleaned up.
type cleanupError struct{ err error }

func (e *cleanupError) Error() string { return "cleaning up: " + e.err.Error() }
func (e *cleanupError) Unwrap() error { return e.err }

// workspace creates a workspace with a group of this many members, or only a cluster with 0. With pooled, a part of the
// members have GPUs.
func (b *bench) workspace(ctx context.Context, name string, members int, pooled bool) (*workspace, error) {
	w := &workspace{bench: b, name: name, dir: filepath.Join(b.work, name), members: members}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(configuration(name, members, pooled)),
		0o600); err != nil {
		return nil, err
	}
	_, err := w.terraform(ctx, "init")
	return w, err
}

// port is the first member's port, below those that machines assign by themselves.
const port = 20000

func configuration(cluster string, members int, pooled bool) string {
	config := fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}

resource "trainyard_cluster" "bench" {
  name = %q
}
`, cluster)
	if members == 0 {
		return config
	}
	roles := role("worker", members, port, "")
	if pooled {
		config += gpuPool("")
		roles = pooledRoles(members, port, "")
	}
	return config + fmt.Sprintf(`
resource "trainyard_group" "job" {
  cluster   = trainyard_cluster.bench
  name      = "job"
  framework = "tensorflow"
  command   = ["/bin/sleep", "infinity"]
  roles = {
%s  }
  completion = { when = "never" }
}
`, roles)
}

// role returns the configuration of a role with additional attributes.
func role(name string, replicas, port int, attributes string) string {
	return fmt.Sprintf("    %s = { replicas = %d, port = %d, %s }\n", name, replicas, port, attributes)
}

// stateDir returns the state directory of the workspace's cluster.
func (w *workspace) stateDir() statedir.Dir {
	return statedir.Dir{Root: filepath.Join(w.dir, "state"), Cluster: w.name}
}

// terraform runs a Terraform command and returns how long it took.
func (w *workspace) terraform(ctx context.Context, args ...string) (time.Duration, error) {
	return w.terraformWith(ctx, nil, args...)
}

// terraformWith is terraform with additional environment variables.
func (w *workspace) terraformWith(ctx context.Context, env []string, args ...string) (time.Duration, error) {
	cmd := w.bench.command(ctx, append(args, "-no-color")...)
	cmd.Dir = w.dir
	cmd.Env = append(cmd.Env, "TRAINYARD_STATE_DIR="+w.stateDir().Root)
	if w.docker != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+w.docker)
	}
	if w.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+w.path)
	}
	cmd.Env = append(cmd.Env, env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return took, fmt.Errorf("%s %s (%s): %w\n%s", filepath.Base(w.bench.tf), strings.Join(args, " "), w.name, err,
			output.String())
	}
	return took, nil
}

// command returns a Terraform command that is interrupted when ctx is done, but not by the terminal.
func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.tf, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TF_") && !strings.HasPrefix(variable, "TRAINYARD_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TF_CLI_CONFIG_FILE="+b.cli, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = cleanupTimeout
	return cmd
}

// version returns the name and version of Terraform or OpenTofu.
func (b *bench) version(ctx context.Context) (string, error) {
	output, err := b.command(ctx, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", b.tf, err)
	}
	first, _, _ := strings.Cut(string(output), "\n")
	return first, nil
}

// apply applies the configuration.
func (w *workspace) apply(ctx context.Context) (time.Duration, error) {
	return w.terraform(ctx, "apply", "-auto-approve")
}

// destroy destroys everything.
func (w *workspace) destroy(ctx context.Context) (time.Duration, error) {
	return w.terraform(ctx, "destroy", "-auto-approve")
}

// plan plans, and fails if there is any change.
func (w *workspace) plan(ctx context.Context, args ...string) (time.Duration, error) {
	return w.terraform(ctx, append([]string{"plan", "-detailed-exitcode"}, args...)...)
}

// close destroys what exists, even after an interruption, kills remaining processes, and deletes the workspace.
func (w *workspace) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := os.Stat(w.stateDir().Path())
	if err == nil {
		_, err = w.destroy(ctx)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	left, killErr := endProcesses(ctx, w.dir)
	if left > 0 {
		err = errors.Join(err,
			fmt.Errorf("%s: %d processes were still there after the destroy, and were killed", w.name, left))
	}
	if err := errors.Join(err, killErr, os.RemoveAll(w.dir)); err != nil {
		return &cleanupError{err}
	}
	return nil
}
