package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Answer is what the agent of a host told, or why it did not; then there is nothing in the report but what is known of the host anyway.
type Answer struct {
	Report
	Why string
}

// Running is what runs of a cluster's members.
type Running struct {
	Observed []domain.Observed
	// Instances are how agents know the members that run, by their names: the mark of an instance, or a container. A member that runs on no
	// host has none, and Noun is what it is of which there is none then.
	Instances map[string]string
	Noun      string
}

// Usage turns what the agents of a cluster's hosts told into what is used of its hosts, GPUs and members.
func Usage(answers map[string]Answer, running Running) engine.Usage {
	usage := engine.Usage{
		Hosts: make(map[string]engine.HostUsage, len(answers)), GPUs: map[string]engine.GPUUsage{}, Members: make(map[string]engine.MemberUsage, len(running.Observed)),
	}
	gpus := GPUs(answers, running)
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		usage.Hosts[name] = answers[name].host()
		for _, gpu := range gpus[name].GPUs {
			if _, shown := usage.GPUs[gpu.UUID]; !shown {
				usage.GPUs[gpu.UUID] = answers[name].device(name, gpu)
			}
		}
	}
	for _, o := range running.Observed {
		usage.Members[o.Name] = running.member(o, answers[o.Host]).Of(o)
	}
	return usage
}

// GPUs returns the GPUs that agents found, by host, with the members that use them.
func GPUs(answers map[string]Answer, running Running) map[string]domain.HostGPUs {
	members := make(map[string]string, len(running.Instances))
	for member, instance := range running.Instances {
		members[instance] = member
	}
	found := make(map[string]domain.HostGPUs, len(answers))
	for host, answer := range answers {
		gpus := answer.GPUs
		if answer.Why != "" {
			gpus = domain.HostGPUs{SampledAt: time.Now(), Unknown: answer.Why}
		}
		for _, gpu := range gpus.GPUs {
			for i := range gpu.Processes {
				gpu.Processes[i].Member = members[gpu.Processes[i].Instance]
			}
		}
		found[host] = gpus
	}
	return found
}

func (a Answer) host() engine.HostUsage {
	h := a.Host
	u := engine.HostUsage{
		CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, Load: h.Load, DiskMiB: h.DiskMiB, ReceivedBps: h.ReceivedBps, SentBps: h.SentBps,
		TotalCPUs: float64(h.TotalCPUs), TotalMemoryMiB: h.TotalMemoryMiB, TotalDiskMiB: h.TotalDiskMiB,
		SampledAt: a.SampledAt, GPUsReason: a.GPUs.Unknown,
	}
	if a.Why != "" {
		u.SampledAt, u.Reason, u.GPUsReason = time.Now(), a.Why, a.Why
	}
	return u
}

func (a Answer) device(host string, gpu domain.GPU) engine.GPUUsage {
	d := a.Devices[gpu.UUID]
	u := engine.GPUUsage{
		Host: host, TotalMemoryMiB: gpu.MemoryMiB, Utilisation: d.Utilisation, MemoryMiB: d.MemoryMiB, TemperatureC: d.TemperatureC, PowerW: d.PowerW,
		SampledAt: a.GPUs.SampledAt, Reason: cmp.Or(gpu.Trouble, gpu.Unknown),
	}
	if gpu.Processes == nil {
		return u
	}
	u.Members = []string{}
	for _, p := range gpu.Processes {
		if p.Member != "" && !slices.Contains(u.Members, p.Member) {
			u.Members = append(u.Members, p.Member)
		}
	}
	slices.Sort(u.Members)
	return u
}

func (r Running) member(o domain.Observed, of Answer) engine.MemberUsage {
	instance := r.Instances[o.Name]
	if instance == "" {
		return engine.MemberUsage{SampledAt: time.Now(), Reason: "no " + r.Noun + ": the member is " + string(o.State)}
	}
	used, found := of.Instances[instance]
	if !found {
		return engine.MemberUsage{SampledAt: time.Now(), Reason: cmp.Or(of.Why, "its "+r.Noun+" was not found on host "+o.Host)}
	}
	return engine.MemberUsage{CPUs: used.CPUs, MemoryMiB: used.MemoryMiB, GPUMemoryMiB: used.GPUMemoryMiB, SampledAt: of.SampledAt}
}
