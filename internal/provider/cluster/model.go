package cluster

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/resourcekit"
)

// Model is trainyard_cluster as Terraform keeps it.
type Model struct {
	ID       types.String         `tfsdk:"id"`
	Name     types.String         `tfsdk:"name"`
	Engine   types.String         `tfsdk:"engine"`
	Endpoint types.String         `tfsdk:"endpoint"`
	Hosts    map[string]HostModel `tfsdk:"hosts"`
	Network  *NetworkModel        `tfsdk:"network"`
	Agent    *agentModel          `tfsdk:"agent"`
	Timeouts timeouts.Value       `tfsdk:"timeouts"`
}

// HostModel is a host as Terraform keeps it.
type HostModel struct {
	Address          *string           `tfsdk:"address"`
	Labels           map[string]string `tfsdk:"labels"`
	Capacity         *CapacityModel    `tfsdk:"capacity"`
	Role             *string           `tfsdk:"role"`
	Availability     *string           `tfsdk:"availability"`
	AdvertiseAddress *string           `tfsdk:"advertise_address"`
	Socket           *string           `tfsdk:"socket"`
}

// CapacityModel is the capacity of a host.
type CapacityModel struct {
	CPUs      types.Float64 `tfsdk:"cpus"`
	MemoryMiB *int64        `tfsdk:"memory_mib"`
}

// NetworkModel is the network of a cluster's members.
type NetworkModel struct {
	Subnet     types.String `tfsdk:"subnet"`
	Encrypted  *bool        `tfsdk:"encrypted"`
	Attachable *bool        `tfsdk:"attachable"`
}

type agentModel struct {
	Enabled *bool   `tfsdk:"enabled"`
	Image   *string `tfsdk:"image"`

	MetricsPort *int64 `tfsdk:"metrics_port"`
}

type identity struct {
	Name types.String `tfsdk:"name"`
}

// key returns what reaches the cluster.
func (m Model) key() domain.ClusterRef { return resourcekit.KeyOf(m.Name, m.Engine, m.Endpoint) }

// expand returns the cluster as it is specified; what is left out is zero.
func (m Model) expand(diags *diag.Diagnostics) domain.Cluster {
	cluster := domain.Cluster{Engine: resourcekit.DefaultEngine}
	resourcekit.Expand(&cluster, m, diags)
	cluster.ID = "" // Terraform's is the name
	return cluster
}

// completed returns the cluster as it is specified, with something in the place of what is left to the engine.
func (m Model) completed(diags *diag.Diagnostics) domain.Cluster {
	cluster := m.expand(diags)
	if len(cluster.Hosts) == 0 {
		cluster.Hosts = map[string]domain.Host{"local": {}}
	}
	for name, host := range cluster.Hosts {
		given := resourcekit.Value(m.Hosts[name].Capacity)
		if given.CPUs.IsNull() {
			host.Capacity.CPUs = 1
		}
		if given.MemoryMiB == nil {
			host.Capacity.MemoryMiB = 1
		}
		cluster.Hosts[name] = host
	}
	return cluster
}

// managers returns the addresses of the managers among the hosts, in the order of the hosts' names.
func managers(hosts map[string]domain.Host) []string {
	var addresses []string
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if host := hosts[name]; host.Role == domain.HostManager && host.Address != "" {
			addresses = append(addresses, host.Address)
		}
	}
	return addresses
}

// over returns the network as it is specified, with what is left out as it is stored.
func (m *NetworkModel) over(stored *domain.Network) *domain.Network {
	if m == nil {
		return stored
	}
	network := resourcekit.Value(stored)
	if !m.Subnet.IsNull() {
		network.Subnet = m.Subnet.ValueString()
	}
	if m.Encrypted != nil {
		network.Encrypted = *m.Encrypted
	}
	if m.Attachable != nil {
		network.Attachable = *m.Attachable
	}
	return &network
}

// Meaning returns how hosts are measured.
func (m *agentModel) Meaning() any {
	if m == nil {
		return nil
	}
	return domain.Agent{Disabled: m.Enabled != nil && !*m.Enabled, Image: resourcekit.Value(m.Image), MetricsPort: int(resourcekit.Value(m.MetricsPort))}
}

// Spelled returns how hosts are measured, in the same words where it is the same.
func (m *agentModel) Spelled(meaning any) any {
	agent, _ := meaning.(domain.Agent)
	if m.Meaning() == meaning {
		return m
	}
	spelled := &agentModel{Image: resourcekit.OrNull(agent.Image), MetricsPort: resourcekit.OrNull(int64(agent.MetricsPort))}
	if agent.Disabled || m != nil && m.Enabled != nil {
		spelled.Enabled = new(!agent.Disabled)
	}
	return spelled
}

// flattenNetwork returns a network; open stands for a subnet that is left to the engine.
func flattenNetwork(network *domain.Network, open types.String) *NetworkModel {
	if network == nil {
		return nil
	}
	subnet := open
	if network.Subnet != "" {
		subnet = types.StringValue(network.Subnet)
	}
	return &NetworkModel{Subnet: subnet, Encrypted: &network.Encrypted, Attachable: &network.Attachable}
}

// keepKnown hands over to hosts what the engine knows of the stored ones of the same names.
func keepKnown(hosts, stored map[string]domain.Host) {
	for name, host := range hosts {
		host.ID, host.Joined = stored[name].ID, stored[name].Joined
		hosts[name] = host
	}
}

// memoryTolerance is the part of a machine's memory by which what the kernel reports varies with its version and
// its settings: that is no change of the machine.
const memoryTolerance = 0.02

func similar(a, b int64) bool {
	return math.Abs(float64(a-b)) <= memoryTolerance*float64(max(a, b))
}

// keepMemory leaves the memory of hosts as it is stored, where the configuration does not say it and the machine's
// own is about the same.
func keepMemory(completed, stored map[string]domain.Host, config map[string]HostModel) {
	for name, host := range completed {
		before, found := stored[name]
		if found && resourcekit.Value(config[name].Capacity).MemoryMiB == nil && similar(host.Capacity.MemoryMiB, before.Capacity.MemoryMiB) {
			host.Capacity.MemoryMiB = before.Capacity.MemoryMiB
			completed[name] = host
		}
	}
}

// sameCluster reports whether a stored cluster is what is specified. How it is reached does not matter, nor what the
// engine knows of it, nor a network that the specification leaves open.
func sameCluster(stored, spec domain.Cluster) bool {
	if resourcekit.IDOf(stored.Ref()) != resourcekit.IDOf(spec.Ref()) || len(stored.Hosts) != len(spec.Hosts) || !sameNetwork(stored.Network, spec.Network) {
		return false
	}
	for name, host := range stored.Hosts {
		other, found := spec.Hosts[name]
		if !found || !similar(host.Capacity.MemoryMiB, other.Capacity.MemoryMiB) {
			return false
		}
		host.ID, host.Joined = other.ID, other.Joined
		host.Capacity.MemoryMiB = other.Capacity.MemoryMiB
		host.Labels, other.Labels = resourcekit.CompactMap(host.Labels), resourcekit.CompactMap(other.Labels)
		if !reflect.DeepEqual(host, other) {
			return false
		}
	}
	return true
}

func sameNetwork(stored, spec *domain.Network) bool {
	if stored == nil || spec == nil {
		return spec == nil
	}
	wanted := *spec
	if wanted.Subnet == "" {
		wanted.Subnet = stored.Subnet
	}
	return *stored == wanted
}
