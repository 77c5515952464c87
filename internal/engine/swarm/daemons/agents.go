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

// agentsPatience bounds what it takes to ask all agents of a cluster.
const agentsPatience = 50 * time.Second

// Agents are the agents of a cluster, which measure its hosts and what runs there.
type Agents struct {
	dockerapi.Swarm

	members members.Members
	// gpus reads the GPUs of all hosts.
	gpus func(ctx context.Context) (map[string]domain.HostGPUs, error)
}

// NewAgents returns the agents of a cluster, which tell of its members.
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

// told returns what the agents tell of the cluster's hosts, and what runs. One agent asks all, by an exec into its
// container: that needs neither a port nor the address of any other host. They are asked once more where one does not
// know yet of a member that runs.
func (e Agents) told(ctx context.Context, window time.Duration) (map[string]telemetry.Answer, telemetry.Running, error) {
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
		if again, err := e.Answers(ctx, document.Spec, engines, asked, telemetry.Query{Window: window, New: true}); err == nil {
			answers = again // and else what was told at first is better than nothing
		}
	}
	return answers, running, ctx.Err()
}

// Answers returns what the agents answer to a query through the Engine of one of the nodes that are asked, by the names
// of the cluster's hosts.
func (e Agents) Answers(ctx context.Context, cluster domain.Cluster, engines map[string]client.APIClient, asked []string, q telemetry.Query) (map[string]telemetry.Answer, error) {
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

// worthAsking returns the nodes with an Engine whose agent is worth asking, best first: the manager that just answered,
// then nodes that are ready. Managers precede workers, as the agent that is asked speaks for all. An Engine that is
// down may take all the time there is before it turns out not to answer.
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

// runningAgents returns the agents that run, by node ID. They are those of the service's tasks: a member's image may
// give its container an agent's labels, but no task.
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

// readAgents returns [runningAgents] as a manager tells.
func readAgents(ctx context.Context, from dockerapi.Reads, cluster string) (map[string]runningAgent, error) {
	services, tasks, err := from.ServicesWithTasks(ctx)
	return runningAgents(cluster, services, tasks), err
}

// askAgents has the agent on one of the nodes, the first that can, ask all agents; why is why one is neither among the
// reports nor the failures. The Swarm, and no agent, says at which address the agent of a node is.
func (e Agents) askAgents(ctx context.Context, from dockerapi.Reads, engines map[string]client.APIClient, nodes []string, q telemetry.Query) (reports telemetry.Reports, why string) {
	agents, err := readAgents(ctx, from, e.Cluster)
	if err != nil {
		return reports, fmt.Sprintf("the cluster's agents could not be found: %v", err)
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
		return reports, "no agent of the cluster runs there"
	}
	if len(failures) == 0 {
		return reports, "no agent of the cluster runs where its Engines can be reached"
	}
	return reports, fmt.Sprintf("the cluster's agents did not tell: %v", errors.Join(failures...))
}

// askThrough has the agent in a container ask its peers. Its program is what the container runs: an image of the user's
// own may have it anywhere.
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
	defer context.AfterFunc(ctx, attached.Close)() // it knows of no context
	// Reports are written anew, and with them why others are missing.
	out, complaint := &bounded.Buffer{Most: 2 * bounded.Reports}, &bounded.Tail{Most: bounded.Complaint}
	err = dockerapi.Demultiplex(out, complaint, bounded.Reader(attached.Reader, 4*bounded.Reports))
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		return telemetry.Reports{}, fmt.Errorf("the agent answered %w", err)
	}
	if err != nil {
		return telemetry.Reports{}, err
	}
	if len(out.Bytes()) == 0 {
		return telemetry.Reports{}, fmt.Errorf("the agent answered: %s", complaint)
	}
	return telemetry.ReadReports(out.Bytes())
}

// GPUs has the agents tell of those of their hosts.
func (e Agents) GPUs(ctx context.Context) (map[string]domain.HostGPUs, error) { return e.gpus(ctx) }

func (e Agents) readGPUs(ctx context.Context) (map[string]domain.HostGPUs, error) {
	answers, running, err := e.told(ctx, 0)
	if err != nil {
		return nil, err
	}
	return telemetry.GPUs(answers, running), nil
}

// nvidiaRuntime is what NVIDIA's toolkit calls the runtime that gives containers the GPUs that they ask for.
const nvidiaRuntime = "nvidia"

// withoutRuntime says what to do where it may be for the runtime of an Engine that its containers see no GPUs; "" where
// it is not, or can't be told.
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

// runtimeAdvice says what to do about the runtimes of an Engine for the containers of a Swarm to see its GPUs; "" where
// nothing is to be done.
func runtimeAdvice(info system.Info) string {
	if info.DefaultRuntime == nvidiaRuntime {
		return ""
	}
	how := "nvidia-ctk runtime configure --runtime=docker --set-as-default, and restart the Engine"
	if _, installed := info.Runtimes[nvidiaRuntime]; !installed {
		how = "install NVIDIA's container toolkit, then " + how
	}
	return fmt.Sprintf(". The services of a Swarm run in the default runtime of each Engine, which is %q there: to use its GPUs, make it %q (%s)", info.DefaultRuntime, nvidiaRuntime, how)
}
