package daemons

import (
	"context"
	"slices"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

const (
	// agentArrival is how long to wait for an agent that is to start, and agentWaking for a running one to answer.
	agentArrival = 15 * time.Second
	agentWaking  = 3 * time.Second
	// agentSettling is how long to wait for agents while one of them has run for less than that. Engines gossip its
	// address, and if a message is lost, they learn it at their next synchronisation, after up to 30 seconds.
	agentSettling = 40 * time.Second
	// agentRetry is the pause before agents are queried again.
	agentRetry = 200 * time.Millisecond
)

// gather queries the agents of a cluster, and waits for those that were just started: an apply that creates a cluster
// continues with its GPUs right away.
func (e Agents) gather(
	ctx context.Context, cluster domain.Cluster, engines map[string]client.APIClient, nodes []string, q telemetry.Query,
) (reports telemetry.Reports, why string, err error) {
	from := e.Reads
	ask := func(ctx context.Context) (telemetry.Reports, string) {
		return e.askAgents(ctx, from, engines, nodes, q)
	}
	patience := func(ctx context.Context, silent []string) (time.Duration, error) {
		from = e.Live().Reads.Remembered(e.Cluster) // the next round queries the agents found here
		return e.patienceFor(ctx, from, silent)
	}
	return gatherBy(ctx, cluster, ask, patience)
}

// gatherBy queries agents by ask, and repeats that for as long as patienceFor allows for the silent ones; why is the
// reason for hosts without a report. Silent agents never lose the reports of the others.
func gatherBy(
	ctx context.Context, cluster domain.Cluster, ask func(context.Context) (telemetry.Reports, string),
	patienceFor func(ctx context.Context, silent []string) (time.Duration, error),
) (reports telemetry.Reports, why string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agentsPatience, dockerapi.ErrSilent)
	defer cancel()
	var since time.Time // when the current patience began
	for before := time.Duration(0); ; {
		latest, whyNot := ask(ctx)
		if ctx.Err() != nil && len(reports.Reports) > 0 {
			return reports, why, nil // this round was cut short, the previous one was complete
		}
		reports, why = latest, whyNot
		silent := silentNodes(cluster, reports)
		if len(silent) == 0 {
			return reports, why, nil
		}
		patience, err := patienceFor(ctx, silent)
		if patience != before {
			before, since = patience, time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return reports, why, nil
		case err != nil || time.Since(since) >= patience:
			return reports, why, err
		}
		select {
		case <-time.After(agentRetry):
		case <-ctx.Done():
		}
	}
}

// silentNodes returns the nodes of a cluster's hosts without a complete report: an agent that was just started may not
// know the GPUs yet.
func silentNodes(cluster domain.Cluster, reports telemetry.Reports) []string {
	var silent []string
	for _, host := range cluster.Hosts {
		if report, answered := reports.Reports[host.ID]; !answered || report.Starting {
			silent = append(silent, host.ID)
		}
	}
	return silent
}

// patienceFor returns how long to wait for the silent nodes' agents.
func (e Agents) patienceFor(ctx context.Context, from dockerapi.Reads, silent []string) (time.Duration, error) {
	services, err := from.Services(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(services, func(s swarm.Service) bool { return isAgent(s, e.Cluster) })
	if i < 0 {
		return 0, nil
	}
	tasks, err := from.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	nodes, err := from.Nodes(ctx)
	if err != nil {
		return 0, err
	}
	return agentPatience(services[i], dockerapi.TasksByService(tasks)[services[i].ID], dockerapi.NewNodes(nodes),
		silent, time.Now()), nil
}

// agentPatience returns how long to wait for the silent nodes' agents, by the state of their service in the Swarm.
func agentPatience(
	service swarm.Service, own []swarm.Task, view dockerapi.Nodes, silent []string, now time.Time,
) time.Duration {
	newest := dockerapi.NewestByNode(own)
	runs := func(task swarm.Task) bool {
		return task.Status.State == swarm.TaskStateRunning && task.DesiredState == swarm.TaskStateRunning
	}
	answer := agentWaking
	for _, task := range newest {
		if runs(task) && now.Sub(task.Status.Timestamp) < agentSettling {
			answer = agentSettling
		}
	}
	var patience time.Duration
	for _, id := range silent {
		task, ordered := newest[id]
		switch {
		case view[id].Status.State != swarm.NodeStateReady, ordered && dockerapi.Ended(task):
		case ordered && runs(task):
			patience = max(patience, answer)
		case view[id].Spec.Availability == swarm.NodeAvailabilityActive && view.Meets(id, service.Spec):
			patience = max(patience, agentArrival)
		}
	}
	return patience
}
