package daemons

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// agentsPatience bounds a query to all agents of a cluster.
const agentsPatience = 50 * time.Second

// Agents are the agents of a cluster, which measure its hosts and what runs there.
type Agents struct {
	dockerapi.Swarm

	members members.Members
	// gpus reads the GPUs of all hosts.
	gpus func(ctx context.Context) (map[string]domain.HostGPUs, error)
}

// NewAgents returns the agents of a cluster, which report on its members.
func NewAgents(in dockerapi.Swarm, members members.Members) Agents {
	e := Agents{Swarm: in, members: members}
	e.gpus = e.readGPUs
	return e
}

// Once returns the agents with the GPUs read at most once.
func (e Agents) Once() Agents {
	e.gpus = engine.Once(e.gpus)
	return e
}

// collect returns the agents' reports on the cluster's hosts, and what runs. One agent queries all others, by an exec
// into its container, which needs neither a port nor the address of any other host; it queries them again if a
// running member is missing from a report.
func (e Agents) collect(
	ctx context.Context, window time.Duration,
) (map[string]telemetry.Answer, telemetry.Running, error) {
	running := telemetry.Running{Noun: "container"}
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil {
		return nil, running, err
	}
	if running.Observed, err = e.members.Observe(ctx, ""); err != nil {
		return nil, running, err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, running, err
	}
	engines, err := e.Engines(ctx, m)
	if err != nil {
		return nil, running, err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return nil, running, err
	}
	asked := worthAsking(engines, m, dockerapi.NewNodes(nodes))
	answers, err := e.Answers(ctx, document.Spec, engines, asked, telemetry.Query{Window: window})
	if err != nil {
		return nil, running, err
	}
	if window > 0 && running.Unmeasured(answers) {
		if again, err := e.Answers(ctx, document.Spec, engines, asked,
			telemetry.Query{Window: window, New: true}); err == nil {
			answers = again // otherwise the first answers are better than none
		}
	}
	return answers, running, ctx.Err()
}

// Answers returns the agents' answers to a query, by host name. The query goes through the Engine of one of the nodes
// in asked.
func (e Agents) Answers(
	ctx context.Context, cluster domain.Cluster, engines map[string]client.APIClient, asked []string, q telemetry.Query,
) (map[string]telemetry.Answer, error) {
	reports, why := telemetry.Reports{}, "the cluster has no agents: agent.enabled is false"
	if !cluster.Agent.Disabled {
		var err error
		if reports, why, err = e.gather(ctx, cluster, engines, asked, q); err != nil {
			return nil, err
		}
	}
	answers := make(map[string]telemetry.Answer, len(cluster.Hosts))
	for name, host := range cluster.Hosts {
		report, found := reports.Reports[host.ID]
		answer := telemetry.Answer{Report: report}
		if !found {
			answer.Host.TotalCPUs, answer.Host.TotalMemoryMiB = int(host.Capacity.CPUs), host.Capacity.MemoryMiB
			answer.Why = fmt.Sprintf("host %s: %s", name, cmp.Or(reports.Failures[host.ID], why))
		}
		if answer.GPUs.Unknown != "" {
			answer.GPUs.Unknown += withoutRuntime(ctx, engines[host.ID])
		}
		answers[name] = answer
	}
	return answers, nil
}

// worthAsking returns the nodes whose agents can be queried through their Engine, best first: the manager that just
// answered, then ready nodes, managers before workers, since one agent answers for all. An Engine that is down may use
// up all the time before it fails.
func worthAsking(engines map[string]client.APIClient, m dockerapi.Manager, nodes dockerapi.Nodes) []string {
	var first, managers, workers, others []string
	for _, id := range slices.Sorted(maps.Keys(engines)) {
		switch reached := engines[id]; {
		case reached == m:
			first = append(first, id)
		case nodes[id].Status.State == swarm.NodeStateReady && dockerapi.IsManager(nodes[id]):
			managers = append(managers, id)
		case nodes[id].Status.State == swarm.NodeStateReady:
			workers = append(workers, id)
		case nodes.Awaited(id):
			others = append(others, id)
		}
	}
	return slices.Concat(first, managers, workers, others)
}

// runningAgent is the container of an agent, and the address that the Swarm gave it on the cluster's network.
type runningAgent struct{ container, Address string }

// runningAgents returns the running agents by node ID. It goes by the tasks of their service: a member's image may give
// its container an agent's labels, but not a task.
func runningAgents(cluster string, services []swarm.Service, tasks map[string][]swarm.Task) map[string]runningAgent {
	found := map[string]runningAgent{}
	i := slices.IndexFunc(services, func(s swarm.Service) bool { return isAgent(s, cluster) })
	if i < 0 {
		return found
	}
	for node, task := range dockerapi.NewestByNode(tasks[services[i].ID]) {
		status, runs := task.Status.ContainerStatus, task.Status.State == swarm.TaskStateRunning
		address, attached := addressOn(spec.NetworkName(cluster), task)
		if runs && attached && status != nil && status.ContainerID != "" {
			found[node] = runningAgent{status.ContainerID, address}
		}
	}
	return found
}

// addressOn returns the address of a task on a network.
func addressOn(network string, task swarm.Task) (address string, attached bool) {
	for _, attachment := range task.NetworksAttachments {
		if attachment.Network.Spec.Name != network {
			continue
		}
		for _, text := range attachment.Addresses {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				return prefix.Addr().String(), true
			}
		}
	}
	return "", false
}

// readAgents returns [runningAgents] from a manager's lists.
func readAgents(ctx context.Context, from dockerapi.Reads, cluster string) (map[string]runningAgent, error) {
	services, tasks, err := from.ServicesWithTasks(ctx)
	return runningAgents(cluster, services, tasks), err
}

// askAgents makes the first agent that can, of those on the nodes, query all agents; why is the reason for agents that
// are neither in the reports nor in the failures. Agents' addresses come from the Swarm, never from an agent.
func (e Agents) askAgents(
	ctx context.Context, from dockerapi.Reads, engines map[string]client.APIClient, nodes []string, q telemetry.Query,
) (reports telemetry.Reports, why string) {
	agents, err := readAgents(ctx, from, e.Cluster)
	if err != nil {
		return reports, fmt.Sprintf("finding the cluster's agents: %v", err)
	}
	var peers []telemetry.Peer
	for _, node := range slices.Sorted(maps.Keys(agents)) {
		peers = append(peers, telemetry.Peer{Node: node, Address: agents[node].Address})
	}
	var failures []error
	for _, node := range nodes {
		agent, runs := agents[node]
		if !runs {
			continue // a drained node runs none
		}
		reports, err := askThrough(ctx, engines[node], agent.container, peers, q)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		return reports, "no agent of the cluster is running there"
	}
	if len(failures) == 0 {
		return reports, "no agent of the cluster is running on a host with a reachable Docker Engine"
	}
	return reports, fmt.Sprintf("querying the cluster's agents: %v", errors.Join(failures...))
}

// askThrough makes the agent in a container query its peers. It runs the container's own program, which may be at any
// path in a user's image.
func askThrough(
	ctx context.Context, reached client.APIClient, agent string, peers []telemetry.Peer, q telemetry.Query,
) (telemetry.Reports, error) {
	inspected, err := reached.ContainerInspect(ctx, agent)
	if err != nil {
		return telemetry.Reports{}, err
	}
	command := []string{inspected.Path, "agent", "sample", "--keys", KeysPath, "--window", q.Window.String()}
	for _, peer := range peers {
		command = append(command, "--peer", peer.String())
	}
	if q.New {
		command = append(command, "--new")
	}
	exec, err := reached.ContainerExecCreate(ctx, agent, container.ExecOptions{
		Cmd:          command,
		AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return telemetry.Reports{}, err
	}
	attached, err := reached.ContainerExecAttach(ctx, exec.ID, container.ExecAttachOptions{})
	if err != nil {
		return telemetry.Reports{}, err
	}
	defer attached.Close()
	defer context.AfterFunc(ctx, attached.Close)() // reading takes no context
	// Reports are encoded again, together with the reasons for missing ones.
	out, complaint := &bounded.Buffer{Most: 2 * bounded.Reports}, &bounded.Tail{Most: bounded.Complaint}
	err = dockerapi.Demultiplex(out, complaint, bounded.Reader(attached.Reader, 4*bounded.Reports))
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return telemetry.Reports{}, fmt.Errorf("the agent answered %w", err)
	}
	if err != nil {
		return telemetry.Reports{}, err
	}
	if len(out.Bytes()) == 0 {
		return telemetry.Reports{}, fmt.Errorf("the agent returned no report: %s", complaint)
	}
	return telemetry.ReadReports(out.Bytes())
}

// GPUs returns the GPUs that the agents report on their hosts.
func (e Agents) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e Agents) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	answers, running, err := e.collect(ctx, 0)
	if err != nil {
		return nil, err
	}
	return telemetry.GPUs(answers, running), nil
}

// nvidiaRuntime is the name that NVIDIA's toolkit gives to the runtime that passes GPUs to containers.
const nvidiaRuntime = "nvidia"

// withoutRuntime returns advice if an Engine's default runtime may be why its containers see no GPUs; "" if it is not,
// or unknown.
func withoutRuntime(ctx context.Context, reached client.APIClient) string {
	if reached == nil {
		return ""
	}
	info, err := reached.Info(ctx)
	if err != nil {
		return ""
	}
	return runtimeAdvice(info)
}

// runtimeAdvice says how to configure an Engine's runtimes so that containers of a Swarm see its GPUs; "" if nothing
// needs to be done.
func runtimeAdvice(info system.Info) string {
	if info.DefaultRuntime == nvidiaRuntime {
		return ""
	}
	how := "nvidia-ctk runtime configure --runtime=docker --set-as-default, and restart the Engine"
	if _, installed := info.Runtimes[nvidiaRuntime]; !installed {
		how = "install NVIDIA's container toolkit, then " + how
	}
	return fmt.Sprintf(
		". Swarm services run in the Engine's default runtime, which is %q there: to use its GPUs, set it to %q (%s)",
		info.DefaultRuntime, nvidiaRuntime, how,
	)
}
