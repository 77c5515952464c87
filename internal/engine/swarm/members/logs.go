package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// logPatience bounds the wait for the log of one task: that of a host that is down never comes.
const logPatience = 15 * time.Second

// Logs returns the end of a member's log, across the instances that the Swarm still keeps, oldest first. It starts
// after an instance whose log is unavailable.
func (e Members) Logs(ctx context.Context, member string, options engine.LogOptions) ([]string, error) {
	services, tasks, err := e.Reads.ServicesWithTasks(ctx)
	if err != nil {
		return nil, err
	}
	instances, found := logged(e.Cluster, member, services, tasks)
	if !found {
		return nil, fmt.Errorf("member %q of cluster %q: %w", member, e.Cluster, engine.ErrNotFound)
	}
	var lines []string
	most := options.Lines().Most
	left := most
	for _, task := range slices.Backward(instances) {
		wanted := options
		if options.Tail > 0 {
			wanted.Tail = options.Tail - len(lines)
		}
		wanted.Most = max(left, 1)
		own, err := e.taskLog(ctx, task, wanted)
		if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
			return nil, fmt.Errorf("the log of member %q has %w", member, &bounded.Error{Most: most})
		}
		if err != nil && len(lines) > 0 && ctx.Err() == nil {
			return lines, nil // earlier ones may have been on a host that is down
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log of member %q: %w", member, err)
		}
		for _, line := range own {
			left -= int64(len(line))
		}
		lines = append(own, lines...)
		if options.Tail > 0 && len(lines) >= options.Tail {
			break
		}
	}
	return lines, nil
}

// logged returns the tasks of a member that have a log, oldest first, and whether the member exists.
func logged(
	cluster, member string, services []swarm.Service, tasks map[string][]swarm.Task,
) (instances []swarm.Task, found bool) {
	for _, service := range services {
		if !spec.BelongsTo(service, cluster) {
			continue
		}
		for _, o := range membersOf(service, tasks[service.ID]) {
			if o.name == member {
				instances, found = o.tasks, true
			}
		}
	}
	instances = slices.DeleteFunc(slices.Clone(instances), func(t swarm.Task) bool {
		return t.Status.ContainerStatus == nil || t.Status.ContainerStatus.ContainerID == ""
	})
	return instances, found
}

// taskLog returns the end of the log of one instance.
func (e Members) taskLog(ctx context.Context, task swarm.Task, options engine.LogOptions) ([]string, error) {
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	asked := container.LogsOptions{ShowStdout: true, ShowStderr: true}
	if options.Tail > 0 {
		asked.Tail = strconv.Itoa(options.Tail)
	}
	if !options.Since.IsZero() {
		asked.Since = options.Since.Format(time.RFC3339Nano)
	}
	stream, err := m.TaskLogs(ctx, task.ID, asked)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	lines := options.Lines()
	err = dockerapi.Demultiplex(lines, lines, stream)
	return lines.All(), err
}
