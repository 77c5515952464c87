//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"golang.org/x/sync/errgroup"
)

// dockerStack does the same as Trainyard with the docker command: a stack of as many services with one replica each.
type dockerStack struct{ *swarmBench }

const (
	stackName = "bench"
	// stackLook is the polling interval for the state of a stack.
	stackLook = 50 * time.Millisecond
)

// docker runs a docker command on the manager.
func (d dockerStack) docker(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+d.bed.Nodes[0].Host())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, output.String())
	}
	return nil
}

// deploy deploys the stack, whose tasks run this step, without waiting for them.
func (d dockerStack) deploy(ctx context.Context, step string) error {
	var compose strings.Builder
	compose.WriteString("version: \"3.8\"\nservices:\n")
	for i := range swarmMembers {
		fmt.Fprintf(&compose, "  w%d:\n    image: %s\n    command: [%q]\n    stop_grace_period: 1s\n    networks: "+
			"[net]\n    deploy: {replicas: 1, endpoint_mode: dnsrr, restart_policy: {condition: none}}\n",
			i, d.images[0], step)
	}
	compose.WriteString("networks:\n  net:\n    driver: overlay\n    ipam: {config: [{subnet: 10.32.0.0/20}]}\n")
	file := filepath.Join(d.work, "compose.yaml")
	if err := os.WriteFile(file, []byte(compose.String()), 0o600); err != nil {
		return err
	}
	return d.docker(ctx, "stack", "deploy", "--resolve-image", "never", "--detach=true", "-c", file, stackName)
}

// update changes the services' image, a batch at a time, and waits until each batch runs.
func (d dockerStack) update(ctx context.Context) error {
	var names []string
	for i := range swarmMembers {
		names = append(names, fmt.Sprintf("%s_w%d", stackName, i))
	}
	for lot := range slices.Chunk(names, swarmParallel) {
		var group errgroup.Group
		for _, name := range lot {
			group.Go(func() error {
				return d.docker(ctx, "service", "update", "--detach=true", "--no-resolve-image", "--image", d.images[1],
					name)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := d.awaitTasks(ctx, swarm.TaskStateRunning, d.images[1], len(lot), lot); err != nil {
			return err
		}
	}
	return nil
}

// awaitTasks returns once this many tasks of the stack with an image are in a state, among these services or all.
func (d dockerStack) awaitTasks(
	ctx context.Context, state swarm.TaskState, imageID string, want int, services []string,
) error {
	docker := d.bed.Nodes[0].Client()
	selected := filters.NewArgs(filters.Arg("label", "com.docker.stack.namespace="+stackName))
	for _, service := range services {
		selected.Add("service", service)
	}
	for {
		tasks, err := docker.TaskList(ctx, swarm.TaskListOptions{Filters: selected})
		if err != nil {
			return err
		}
		there := 0
		for _, task := range tasks {
			if task.Status.State == state && task.Spec.ContainerSpec.Image == imageID {
				there++
			}
		}
		if there == want {
			return nil
		}
		if err := pause(ctx, stackLook); err != nil {
			return err
		}
	}
}

// remove removes the stack, and returns once its last container is gone.
func (d dockerStack) remove(ctx context.Context) error {
	if err := d.docker(ctx, "stack", "rm", "--detach=true", stackName); err != nil {
		return err
	}
	return d.gone(ctx, "com.docker.stack.namespace="+stackName)
}

// gone returns once no node has a container with a label any more.
func (d dockerStack) gone(ctx context.Context, label string) error {
	for _, node := range d.bed.Nodes {
		for {
			left, err := node.Client().ContainerList(ctx,
				container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
			if err != nil {
				return err
			}
			if len(left) == 0 {
				break
			}
			if err := pause(ctx, stackLook); err != nil {
				return err
			}
		}
	}
	return nil
}

// clean removes the remains of the stack.
func (d dockerStack) clean(ctx context.Context) error {
	return d.docker(ctx, "stack", "rm", stackName)
}
