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

// Model is the model of trainyard_cluster.
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

// HostModel is a host.
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

// key returns the reference to the cluster.
func (m Model) key() domain.ClusterRef { return resourcekit.KeyOf(m.Name, m.Engine, m.Endpoint) }

// expand returns the cluster as specified; omitted values are zero.
func (m Model) expand(diags *diag.Diagnostics) domain.Cluster {
	cluster := domain.Cluster{Engine: resourcekit.DefaultEngine}
	resourcekit.Expand(&cluster, m, diags)
	cluster.ID = "" // in Terraform it is the name
	return cluster
}

// completed returns the cluster as specified, with placeholders for what is left to the engine.
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

// managers returns the addresses of the managers, in the order of their host names.
func managers(hosts map[string]domain.Host) []string {
	var addresses []string
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if host := hosts[name]; host.Role == domain.HostManager && host.Address != "" {
			addresses = append(addresses, host.Address)
		}
	}
	return addresses
}

// over returns the network as specified, with omitted values taken from the stored one.
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

// Meaning returns the domain's agent settings.
func (m *agentModel) Meaning() any {
	if m == nil {
		return nil
	}
	return domain.Agent{
		Disabled: m.Enabled != nil && !*m.Enabled, Image: resourcekit.Value(m.Image),
		MetricsPort: int(resourcekit.Value(m.MetricsPort)),
	}
}

// Spelled returns agent settings, in the present spelling if that means the same.
func (m *agentModel) Spelled(meaning any) any {
	agent, _ := meaning.(domain.Agent)
	if m.Meaning() == meaning {
		return m
	}
	spelled := &agentModel{
		Image: resourcekit.OrNull(agent.Image), MetricsPort: resourcekit.OrNull(int64(agent.MetricsPort)),
	}
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

// keepKnown copies what the engine knows of stored hosts to the hosts of the same names.
func keepKnown(hosts, stored map[string]domain.Host) {
	for name, host := range hosts {
		host.ID, host.Joined = stored[name].ID, stored[name].Joined
		hosts[name] = host
	}
}

// memoryTolerance is by how much the reported memory of a machine may vary with kernel versions and settings without
// being a change, as a share.
const memoryTolerance = 0.02

func similar(a, b int64) bool {
	return math.Abs(float64(a-b)) <= memoryTolerance*float64(max(a, b))
}

// keepMemory keeps the stored memory of hosts for which none is configured and whose machine reports about the same.
func keepMemory(completed, stored map[string]domain.Host, config map[string]HostModel) {
	for name, host := range completed {
		before, found := stored[name]
		if found && resourcekit.Value(config[name].Capacity).MemoryMiB == nil &&
			similar(host.Capacity.MemoryMiB, before.Capacity.MemoryMiB) {
			host.Capacity.MemoryMiB = before.Capacity.MemoryMiB
			completed[name] = host
		}
	}
}

// sameCluster reports whether a stored cluster equals the specification. The endpoint, what only the engine knows, and
// a network that is left open don't count.
func sameCluster(stored, spec domain.Cluster) bool {
	if resourcekit.IDOf(stored.Ref()) != resourcekit.IDOf(spec.Ref()) || len(stored.Hosts) != len(spec.Hosts) ||
		!sameNetwork(stored.Network, spec.Network) {
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
