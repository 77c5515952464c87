package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Answer is the report of a host's agent, or why there is none; then the report has only what is known of the host
// anyway.
type Answer struct {
	Report
	Why string
	// Brief is why the report is about a moment, and not about the requested window; empty if it is about the window.
	Brief string
}

// Running are the running members of a cluster.
type Running struct {
	Observed []domain.Observed
	// Noun is the word for an instance, such as "container".
	Noun string
}

// Unmeasured reports whether there is a running member, or a GPU, that the agent of its host has not measured yet
// though the agent answered: it was just started, or found.
func (r Running) Unmeasured(answers map[string]Answer) bool {
	for _, answer := range answers {
		if slices.ContainsFunc(answer.GPUs.GPUs, func(gpu domain.GPU) bool {
			_, measured := answer.Devices[gpu.UUID]
			return !measured
		}) {
			return true
		}
	}
	return slices.ContainsFunc(r.Observed, func(o domain.Observed) bool {
		answer, asked := answers[o.Host]
		_, measured := answer.Instances[o.Instance]
		return o.Instance != "" && asked && answer.Why == "" && !measured
	})
}

// Usage turns the answers of a cluster's agents into the usage of its hosts, GPUs and members.
func Usage(answers map[string]Answer, running Running) engine.Usage {
	usage := engine.Usage{
		Hosts: make(map[string]engine.HostUsage, len(answers)), GPUs: map[string]engine.GPUUsage{},
		Members: make(map[string]engine.MemberUsage, len(running.Observed)),
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
	members := make(map[string]string, len(running.Observed))
	for _, o := range running.Observed {
		members[o.Instance] = o.Name
	}
	delete(members, "")
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
		CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, Load: h.Load, DiskMiB: h.DiskMiB, ReceivedBps: h.ReceivedBps,
		SentBps:   h.SentBps,
		TotalCPUs: float64(h.TotalCPUs), TotalMemoryMiB: h.TotalMemoryMiB, TotalDiskMiB: h.TotalDiskMiB,
		SampledAt: a.SampledAt, GPUsReason: a.GPUs.Unknown,
		Reason: cmp.Or(unread("its agent can't read", quantity{"cpus_used", h.CPUs},
			quantity{"memory_used_mib", h.MemoryMiB}, quantity{"load", h.Load}, quantity{"disk_used_mib", h.DiskMiB},

			quantity{
				"received_bytes_per_second", h.ReceivedBps,
			}, quantity{"sent_bytes_per_second", h.SentBps}), a.Brief),
	}
	if a.Why != "" {
		u.SampledAt, u.Reason, u.GPUsReason = time.Now(), a.Why, a.Why
	}
	return u
}

func (a Answer) device(host string, gpu domain.GPU) engine.GPUUsage {
	d := a.Devices[gpu.UUID]
	u := engine.GPUUsage{
		Host: host, TotalMemoryMiB: gpu.MemoryMiB, Utilisation: d.Utilisation, MemoryMiB: d.MemoryMiB,
		TemperatureC: d.TemperatureC, PowerW: d.PowerW,
		SampledAt: a.GPUs.SampledAt,
		Reason: cmp.Or(gpu.Trouble, gpu.Unknown, unread("its driver does not report",
			quantity{"utilisation_percent", d.Utilisation}, quantity{"memory_used_mib", d.MemoryMiB},

			quantity{"temperature_celsius", d.TemperatureC}, quantity{"power_watts", d.PowerW}), a.Brief),
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
	if o.Instance == "" {
		return engine.MemberUsage{SampledAt: time.Now(), Reason: "no " + r.Noun + ": the member is " + string(o.State)}
	}
	used, found := of.Instances[o.Instance]
	if !found {
		return engine.MemberUsage{
			SampledAt: time.Now(), Reason: cmp.Or(of.Why, "its "+r.Noun+" was not found on host "+o.Host),
		}
	}
	u := engine.MemberUsage{
		CPUs: used.CPUs, MemoryMiB: used.MemoryMiB, GPUMemoryMiB: used.GPUMemoryMiB, ReceivedBps: used.ReceivedBps,
		SentBps:   used.SentBps,
		SampledAt: of.SampledAt, Reason: of.Brief, TrafficReason: used.TrafficUnknown,
	}
	if u.ReceivedBps.Last == nil && used.TrafficUnknown == "" && used.ReceivedBytes == nil {
		u.TrafficReason = "its agent is an earlier version and does not report it: apply the cluster again"
	}
	if u.GPUMemoryMiB.Last == nil {
		u.Reason = "gpu_memory_used_mib: " + whyUnknown(of.GPUs, o.Instance)
	}
	return u
}

// whyUnknown returns why the memory that an instance uses on the GPUs of its host is unknown.
func whyUnknown(found domain.HostGPUs, instance string) string {
	if found.Unknown != "" {
		return found.Unknown
	}
	for _, gpu := range found.GPUs {
		if gpu.Processes == nil {
			return "which processes use " + gpu.UUID + " is not known: " + cmp.Or(gpu.Trouble, gpu.Unknown,
				"its driver does not report it")
		}
		if slices.ContainsFunc(gpu.Processes, func(p domain.GPUProcess) bool {
			return p.Instance == instance && p.MemoryMiB == nil
		}) {
			return "the driver does not report how much of " + gpu.UUID + " it uses"
		}
	}
	return "it was unknown at the last sample"
}

// quantity is a measure, with the name that users know.
type quantity struct {
	name string
	domain.Measure
}

// unread lists which quantities are unknown, beginning with why; "" if all are known.
func unread(why string, quantities ...quantity) string {
	var names []string
	for _, q := range quantities {
		if q.Last == nil {
			names = append(names, q.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return why + " " + strings.Join(names, ", ")
}
