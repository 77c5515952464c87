//go:build linux

package swarm_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/pkg/stdcopy"
)

// explainIfFailed logs what became of the cluster's members if the test has failed.
func (l *swarmLab) explainIfFailed() {
	if l.Failed() {
		l.logMembers()
		l.logController()
	}
}

// logMembers logs each service of the cluster with its tasks, including ended ones.
func (l *swarmLab) logMembers() {
	ctx := context.WithoutCancel(l.Context())
	docker := l.bed.Nodes[0].Client()
	services, err := docker.ServiceList(ctx, dockerswarm.ServiceListOptions{
		Filters: filters.NewArgs(filters.Arg("label", "trainyard.cluster="+l.name)),
	})
	if err != nil {
		l.Log(err)
		return
	}
	tasks, err := docker.TaskList(ctx, dockerswarm.TaskListOptions{})
	if err != nil {
		l.Log(err)
	}
	slices.SortFunc(tasks, func(a, b dockerswarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	var text strings.Builder
	for _, service := range services {
		fmt.Fprintf(&text, "%s: %v, placement %+v\n", service.Spec.Name, service.Spec.Labels,
			service.Spec.TaskTemplate.Placement)
		for _, task := range tasks {
			if task.ServiceID != service.ID {
				continue
			}
			status := task.Status
			fmt.Fprintf(&text, "  %s on %s: %s since %s, to be %s: %s %s\n", task.CreatedAt.Format(time.TimeOnly),
				task.NodeID, status.State, status.Timestamp.Format(time.TimeOnly), task.DesiredState, status.Message,
				status.Err)
		}
	}
	l.Log("\n" + text.String())
}

// logController logs the output of all controllers of the cluster, including ended ones.
func (l *swarmLab) logController() {
	ctx := context.WithoutCancel(l.Context())
	for _, node := range l.bed.Nodes {
		found, err := node.Client().ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
			filters.Arg("label", "com.docker.swarm.service.name=trainyard-"+l.name+"-controller"),
		)})
		if err != nil {
			l.Log(err)
		}
		for _, c := range found {
			output, err := node.Client().ContainerLogs(ctx, c.ID,
				container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: "40"})
			if err != nil {
				l.Log(err)
				continue
			}
			var text bytes.Buffer
			_, err = stdcopy.StdCopy(&text, &text, output)
			_ = output.Close()
			l.Logf("the controller on %s (%v):\n%s", node.Name, err, text.String())
		}
	}
}
