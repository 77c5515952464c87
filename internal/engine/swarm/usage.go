package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// usageInterval is the time between the two readings that make a rate.
const usageInterval = 250 * time.Millisecond

// Usage samples the hosts whose Engines can be reached: the members by the Engine's own counters, the host by the agent on it.
func (e *Engine) Usage(ctx context.Context) (engine.Usage, error) {
	document, err := e.Cluster(ctx)
	if err != nil {
		return engine.Usage{}, err
	}
	observed, err := e.Observe(ctx, "")
	if err != nil {
		return engine.Usage{}, err
	}
	services, err := e.reads.services(ctx)
	if err != nil {
		return engine.Usage{}, err
	}
	tasks, err := e.reads.tasks(ctx)
	if err != nil {
		return engine.Usage{}, err
	}
	m, err := e.manager(ctx)
	if err != nil {
		return engine.Usage{}, err
	}
	engines, err := e.engines(ctx, m)
	if err != nil {
		return engine.Usage{}, err
	}

	var mu sync.Mutex
	usage := engine.Usage{Hosts: map[string]engine.HostUsage{}, Members: map[string]engine.MemberUsage{}}
	containers := running(e.cluster.Name, services, byService(tasks))
	sampled := map[string]engine.MemberUsage{} // by the container's ID
	err = inParallel(ctx, document.Spec.HostNames(), func(ctx context.Context, name string) error {
		host := document.Spec.Hosts[name]
		use, members := sampleHost(ctx, engines[host.ID], e.cluster.Name, name)
		use.TotalCPUs, use.TotalMemoryMiB = host.Capacity.CPUs, host.Capacity.MemoryMiB
		mu.Lock()
		defer mu.Unlock()
		usage.Hosts[name] = use
		maps.Copy(sampled, members)
		return nil
	})
	if err != nil {
		return engine.Usage{}, err
	}
	for _, o := range observed {
		usage.Members[o.Name] = memberUsage(o, containers, sampled, usage.Hosts[o.Host]).Of(o)
	}
	return usage, nil
}

// memberUsage returns what was sampled of a member, or why nothing was.
func memberUsage(o domain.Observed, containers map[string]string, sampled map[string]engine.MemberUsage, host engine.HostUsage) engine.MemberUsage {
	id, runs := containers[o.Name]
	if !runs {
		return engine.MemberUsage{SampledAt: time.Now(), Reason: "no container: the member is " + string(o.State)}
	}
	if use, found := sampled[id]; found {
		return use
	}
	reason := host.Reason
	if reason == "" {
		reason = "its container was not found on host " + o.Host
	}
	return engine.MemberUsage{SampledAt: time.Now(), Reason: reason}
}

// running returns the IDs of the containers of members that run, by the members' names.
func running(cluster string, services []swarm.Service, tasks map[string][]swarm.Task) map[string]string {
	containers := map[string]string{}
	for _, service := range services {
		if !ours(service, cluster) || identityOf(service).group == "" {
			continue
		}
		for _, member := range membersOf(service, tasks[service.ID]) {
			for _, task := range member.tasks {
				if task.Status.State == swarm.TaskStateRunning && task.Status.ContainerStatus != nil {
					containers[member.name] = task.Status.ContainerStatus.ContainerID
				}
			}
		}
	}
	return containers
}

// sampleHost samples a host and the containers of the cluster's members on it, by their IDs. What can't be read is left nil, with the reason.
func sampleHost(ctx context.Context, reached client.APIClient, cluster, name string) (engine.HostUsage, map[string]engine.MemberUsage) {
	if reached == nil {
		return unknownUsage(name, errors.New("its Engine can't be reached: declare the host with its address")), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	list, err := reached.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelCluster+"="+cluster))})
	if err != nil {
		return unknownUsage(name, err), nil
	}
	agent := ""
	var members []string
	for _, c := range list {
		switch c.Labels[labelKind] {
		case kindAgent:
			agent = c.ID
		case "":
			members = append(members, c.ID)
		}
	}
	var use engine.HostUsage
	samples := make([]engine.MemberUsage, len(members))
	asks := []func(ctx context.Context){func(ctx context.Context) { use = askAgent(ctx, reached, agent, name) }}
	for i, id := range members {
		asks = append(asks, func(ctx context.Context) { samples[i] = sampleContainer(ctx, reached, id) })
	}
	_ = inParallel(ctx, asks, func(ctx context.Context, ask func(ctx context.Context)) error {
		ask(ctx)
		return nil
	})
	sampled := make(map[string]engine.MemberUsage, len(members))
	for i, id := range members {
		sampled[id] = samples[i]
	}
	return use, sampled
}

// unknownUsage is that of a host of which nothing is known.
func unknownUsage(host string, why error) engine.HostUsage {
	return engine.HostUsage{SampledAt: time.Now(), Reason: fmt.Sprintf("host %s: %v", host, why)}
}

// askAgent has the agent on a host measure it.
func askAgent(ctx context.Context, reached client.APIClient, agent, name string) engine.HostUsage {
	report, err := askReport(ctx, reached, agent)
	if err != nil {
		return unknownUsage(name, err)
	}
	host := report.Host
	return engine.HostUsage{CPUs: &host.CPUs, MemoryMiB: &host.MemoryMiB, SampledAt: host.SampledAt}
}

// askReport returns what an agent measures, asked by an exec into its container: that needs no port.
func askReport(ctx context.Context, reached client.APIClient, agent string) (telemetry.Report, error) {
	if agent == "" {
		return telemetry.Report{}, fmt.Errorf("no agent of the cluster runs there")
	}
	exec, err := reached.ContainerExecCreate(ctx, agent, container.ExecOptions{
		Cmd: []string{programPath, "agent", "sample"}, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return telemetry.Report{}, err
	}
	attached, err := reached.ContainerExecAttach(ctx, exec.ID, container.ExecAttachOptions{})
	if err != nil {
		return telemetry.Report{}, err
	}
	defer attached.Close()
	defer context.AfterFunc(ctx, attached.Close)() // it knows of no context
	var out, complaint bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &complaint, attached.Reader); err != nil {
		return telemetry.Report{}, err
	}
	if out.Len() == 0 {
		return telemetry.Report{}, fmt.Errorf("the agent answered: %s", complaint.String())
	}
	return telemetry.ReadReport(out.Bytes())
}

// sampleContainer returns what a container uses, between two readings of its Engine's counters.
func sampleContainer(ctx context.Context, reached client.APIClient, id string) engine.MemberUsage {
	first, err := readStats(ctx, reached, id)
	if err == nil {
		timer := time.NewTimer(usageInterval)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	var second container.StatsResponse
	if err == nil {
		second, err = readStats(ctx, reached, id)
	}
	if err != nil {
		return engine.MemberUsage{SampledAt: time.Now(), Reason: err.Error()}
	}
	elapsed := second.Read.Sub(first.Read)
	if elapsed <= 0 {
		return engine.MemberUsage{SampledAt: second.Read, Reason: "its Engine gave the same reading twice"}
	}
	cpus := float64(second.CPUStats.CPUUsage.TotalUsage-first.CPUStats.CPUUsage.TotalUsage) / float64(elapsed.Nanoseconds())
	memory := float64(second.MemoryStats.Usage-cache(second.MemoryStats)) / mebibyte
	return engine.MemberUsage{CPUs: &cpus, MemoryMiB: &memory, SampledAt: second.Read}
}

func readStats(ctx context.Context, reached client.APIClient, id string) (stats container.StatsResponse, err error) {
	response, err := reached.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return stats, err
	}
	defer response.Body.Close()
	return stats, json.NewDecoder(response.Body).Decode(&stats)
}

// cache is the part of a container's memory that the kernel would give back, as docker stats leaves it out.
func cache(m container.MemoryStats) uint64 {
	for _, name := range []string{"total_inactive_file", "inactive_file"} { // control groups of version 1 and 2
		if n, found := m.Stats[name]; found && n < m.Usage {
			return n
		}
	}
	return 0
}
