package utilisation

import (
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Model is trainyard_utilisation.
type Model struct {
	Cluster    resourcekit.ClusterRead      `tfsdk:"cluster"`
	Window     types.String                 `tfsdk:"window"`
	Source     types.String                 `tfsdk:"source"`
	Prometheus *resourcekit.PrometheusModel `tfsdk:"prometheus"`
	Filter     *usageFilterModel            `tfsdk:"filter"`
	Hosts      map[string]hostUsageModel    `tfsdk:"hosts"`
	GPUs       map[string]gpuUsageModel     `tfsdk:"gpus"`
	Groups     map[string]groupUsageModel   `tfsdk:"groups"`
	Members    map[string]memberUsageModel  `tfsdk:"members"`
}

// usageFilterModel selects what the utilisation is about.
type usageFilterModel struct {
	Hosts   []string `tfsdk:"hosts"`
	GPUs    []string `tfsdk:"gpus"`
	Groups  []string `tfsdk:"groups"`
	Roles   []string `tfsdk:"roles"`
	Members []string `tfsdk:"members"`
}

func (m *usageFilterModel) expand() engine.UsageFilter {
	return engine.UsageFilter(resourcekit.Value(m))
}

// hostValues are the measured values of a host: the last ones, or those of a window.
type hostValues struct {
	CPUsUsed      types.Float64 `tfsdk:"cpus_used"`
	MemoryUsedMiB types.Float64 `tfsdk:"memory_used_mib"`
	Load          types.Float64 `tfsdk:"load"`
	DiskUsedMiB   types.Float64 `tfsdk:"disk_used_mib"`
	ReceivedBps   types.Float64 `tfsdk:"received_bytes_per_second"`
	SentBps       types.Float64 `tfsdk:"sent_bytes_per_second"`
}

// gpuValues are the measured values of a GPU.
type gpuValues struct {
	UtilisationPercent types.Float64 `tfsdk:"utilisation_percent"`
	MemoryUsedMiB      types.Float64 `tfsdk:"memory_used_mib"`
	TemperatureCelsius types.Float64 `tfsdk:"temperature_celsius"`
	PowerWatts         types.Float64 `tfsdk:"power_watts"`
}

// memberValues are the measured values of a member, or of several together.
type memberValues struct {
	CPUsUsed         types.Float64 `tfsdk:"cpus_used"`
	MemoryUsedMiB    types.Float64 `tfsdk:"memory_used_mib"`
	GPUMemoryUsedMiB types.Float64 `tfsdk:"gpu_memory_used_mib"`
	ReceivedBps      types.Float64 `tfsdk:"received_bytes_per_second"`
	SentBps          types.Float64 `tfsdk:"sent_bytes_per_second"`
}

// windowModel is the values of a window, and the age of the last ones.
type windowModel[V comparable] struct {
	Mean       V                 `tfsdk:"mean"`
	Max        V                 `tfsdk:"max"`
	P95        V                 `tfsdk:"p95"`
	SampledAt  timetypes.RFC3339 `tfsdk:"sampled_at"`
	AgeSeconds types.Float64     `tfsdk:"age_seconds"`
	Reason     *string           `tfsdk:"reason"`
}

type hostUsageModel struct {
	hostValues
	windowModel[hostValues]

	CPUs       types.Float64 `tfsdk:"cpus"`
	MemoryMiB  *int64        `tfsdk:"memory_mib"`
	DiskMiB    *int64        `tfsdk:"disk_mib"`
	GPUsReason *string       `tfsdk:"gpus_reason"`
}

type gpuUsageModel struct {
	gpuValues
	windowModel[gpuValues]

	Host      string   `tfsdk:"host"`
	MemoryMiB *int64   `tfsdk:"memory_mib"`
	Members   []string `tfsdk:"members"`
}

// usageModel is the usage of members.
type usageModel struct {
	memberValues
	windowModel[memberValues]

	TrafficReason *string `tfsdk:"traffic_reason"`
}

type memberUsageModel struct {
	usageModel

	Group string  `tfsdk:"group"`
	Role  string  `tfsdk:"role"`
	Host  *string `tfsdk:"host"`
}

type groupUsageModel struct {
	usageModel

	Roles map[string]usageModel `tfsdk:"roles"`
}

// statistic selects one value of a measure.
type statistic func(domain.Measure) types.Float64

// measured returns the last values of something, and those of the window, as read now.
func measured[V comparable](
	values func(statistic) V, sampledAt time.Time, reason string, now time.Time,
) (V, windowModel[V]) {
	last := values(func(m domain.Measure) types.Float64 { return types.Float64PointerValue(m.Last) })
	window := windowModel[V]{
		Mean:   values(func(m domain.Measure) types.Float64 { return types.Float64PointerValue(m.Mean) }),
		Max:    values(func(m domain.Measure) types.Float64 { return types.Float64PointerValue(m.Max) }),
		P95:    values(func(m domain.Measure) types.Float64 { return types.Float64PointerValue(m.P95) }),
		Reason: resourcekit.OrNull(reason),
	}
	var none V
	if last != none && !sampledAt.IsZero() {
		window.SampledAt = resourcekit.Moment(&sampledAt)
		window.AgeSeconds = types.Float64Value(max(0, now.Sub(sampledAt).Seconds()))
	}
	return last, window
}

// flatten completes the model with the usage, as read now.
func (m *Model) flatten(usage engine.Usage, now time.Time) {
	m.Hosts = make(map[string]hostUsageModel, len(usage.Hosts))
	for name, u := range usage.Hosts {
		m.Hosts[name] = flattenHostUsage(u, now)
	}
	m.GPUs = make(map[string]gpuUsageModel, len(usage.GPUs))
	for uuid, u := range usage.GPUs {
		m.GPUs[uuid] = flattenGPUUsage(u, now)
	}
	m.Members = make(map[string]memberUsageModel, len(usage.Members))
	groups := make(map[string]map[string]map[string]engine.MemberUsage, len(usage.Roles)) // by group, role and name
	of := func(group, role string) map[string]engine.MemberUsage {
		if groups[group] == nil {
			groups[group] = map[string]map[string]engine.MemberUsage{}
		}
		if groups[group][role] == nil {
			groups[group][role] = map[string]engine.MemberUsage{}
		}
		return groups[group][role]
	}
	for group, roles := range usage.Roles {
		for _, role := range roles {
			of(group, role)
		}
	}
	for name, u := range usage.Members {
		m.Members[name] = memberUsageModel{flattenMemberUsage(u, now), u.Group, u.Role, resourcekit.OrNull(u.Host)}
		of(u.Group, u.Role)[name] = u
	}
	m.Groups = make(map[string]groupUsageModel, len(groups))
	for group, byRole := range groups {
		all, roles := map[string]engine.MemberUsage{}, make(map[string]usageModel, len(byRole))
		for role, members := range byRole {
			maps.Copy(all, members)
			roles[role] = flattenMemberUsage(engine.SumUsage(members), now)
		}
		m.Groups[group] = groupUsageModel{flattenMemberUsage(engine.SumUsage(all), now), roles}
	}
}

func flattenHostUsage(u engine.HostUsage, now time.Time) hostUsageModel {
	m := hostUsageModel{
		CPUs:      types.Float64PointerValue(resourcekit.OrNull(u.TotalCPUs)),
		MemoryMiB: resourcekit.OrNull(u.TotalMemoryMiB), DiskMiB: resourcekit.OrNull(u.TotalDiskMiB),
		GPUsReason: resourcekit.OrNull(u.GPUsReason),
	}
	m.hostValues, m.windowModel = measured(func(of statistic) hostValues {
		return hostValues{of(u.CPUs), of(u.MemoryMiB), of(u.Load), of(u.DiskMiB), of(u.ReceivedBps), of(u.SentBps)}
	}, u.SampledAt, u.Reason, now)
	return m
}

func flattenGPUUsage(u engine.GPUUsage, now time.Time) gpuUsageModel {
	m := gpuUsageModel{Host: u.Host, MemoryMiB: resourcekit.OrNull(u.TotalMemoryMiB), Members: u.Members}
	m.gpuValues, m.windowModel = measured(func(of statistic) gpuValues {
		return gpuValues{of(u.Utilisation), of(u.MemoryMiB), of(u.TemperatureC), of(u.PowerW)}
	}, u.SampledAt, u.Reason, now)
	return m
}

func flattenMemberUsage(u engine.MemberUsage, now time.Time) usageModel {
	m := usageModel{TrafficReason: resourcekit.OrNull(u.WhyNoTraffic())}
	m.memberValues, m.windowModel = measured(func(of statistic) memberValues {
		return memberValues{of(u.CPUs), of(u.MemoryMiB), of(u.GPUMemoryMiB), of(u.ReceivedBps), of(u.SentBps)}
	}, u.SampledAt, u.Reason, now)
	return m
}
