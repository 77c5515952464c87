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
	// agentArrival is how long an agent is waited for that is to run, and agentWaking how long one that should answer.
	agentArrival = 15 * time.Second
	agentWaking  = 3 * time.Second
	// agentSettling is how long agents are waited for when one of them has run for less than that. Engines gossip its
	// address, and where that is lost learn of it at their next synchronisation, after up to 30 seconds.
	agentSettling = 40 * time.Second
	// agentRetry is how long agents are left alone before they are asked again.
	agentRetry = 200 * time.Millisecond
)

// gather has the agents of a cluster tell, and waits for those that have just been started: an apply that makes a
// cluster goes on to its GPUs at once.
func (e Agents) gather(ctx context.Context, cluster domain.Cluster, engines map[string]client.APIClient, nodes []string, q telemetry.Query) (reports telemetry.Reports, why string, err error) {
	from := e.Reads
	ask := func(ctx context.Context) (telemetry.Reports, string) {
		return e.askAgents(ctx, from, engines, nodes, q)
	}
	patience := func(ctx context.Context, silent []string) (time.Duration, error) {
		from = e.Live().Reads.Remembered(e.Cluster) // the next round asks the agents that this look found
		return e.patienceFor(ctx, from, silent)
	}
	return gatherBy(ctx, cluster, ask, patience)
}

// gatherBy has agents tell by asking all, and asks again as long as those that were silent are worth the patience. Why
// is why a host is not among the reports. However long some are silent, the others have told.
func gatherBy(ctx context.Context, cluster domain.Cluster, ask func(context.Context) (telemetry.Reports, string), patienceFor func(ctx context.Context, silent []string) (time.Duration, error)) (reports telemetry.Reports, why string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agentsPatience, dockerapi.ErrSilent)
	defer cancel()
	var since time.Time // when they became worth as much waiting as they are
	for before := time.Duration(0); ; {
		told, whyNot := ask(ctx)
		if ctx.Err() != nil && len(reports.Reports) > 0 {
			return reports, why, nil // this round was cut short, and the one before was not
		}
		reports, why = told, whyNot
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

// silentNodes are those of a cluster's hosts of which no agent told all: one that has just been started may not know
// the GPUs yet.
func silentNodes(cluster domain.Cluster, reports telemetry.Reports) []string {
	var silent []string
	for _, host := range cluster.Hosts {
		if report, told := reports.Reports[host.ID]; !told || report.Starting {
			silent = append(silent, host.ID)
		}
	}
	return silent
}

// patienceFor is how long the agents of nodes are worth waiting for.
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
	return agentPatience(services[i], dockerapi.TasksByService(tasks)[services[i].ID], dockerapi.NewNodes(nodes), silent, time.Now()), nil
}

// agentPatience is how long the agents of nodes are worth waiting for at a time, by what the Swarm makes of their
// service.
func agentPatience(service swarm.Service, own []swarm.Task, view dockerapi.Nodes, silent []string, now time.Time) time.Duration {
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
