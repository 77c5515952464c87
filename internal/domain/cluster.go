package domain

import (
	"maps"
	"net/netip"
	"path"
	"slices"
)

// Cluster is the specification of a named set of hosts run by one engine. It is stored with the cluster.
type Cluster struct {
	Name   string `json:"name"`
	Engine string `json:"engine"`
	// Endpoint is where the engine is reached; empty if the engine needs none, or for its default.
	Endpoint string          `json:"endpoint,omitempty"`
	Hosts    map[string]Host `json:"hosts"`
	// Network is the members' network, for engines that create one.
	Network *Network `json:"network,omitempty"`
	Agent   Agent    `json:"agent,omitzero"`
	// ID is the engine's identifier for the cluster as a whole, such as the ID of a Swarm; empty if the hosts can't be
	// mistaken for another cluster's. Only the engine sets it.
	ID string `json:"id,omitempty"`
}

// Ref returns the reference to the cluster.
func (c Cluster) Ref() ClusterRef {
	return ClusterRef{Engine: c.Engine, Name: c.Name, Endpoint: c.Endpoint}
}

// ClusterRef is what it takes to reach a cluster.
type ClusterRef struct{ Engine, Name, Endpoint string }

// Host is a machine of a cluster.
type Host struct {
	// Address is where the host is reached. If members share their host's address, members use it, without a port; for
	// engines that run on each host, Trainyard connects to it, such as ssh://ops@gpu1.
	Address string `json:"address,omitempty"`
	// Labels are matched by a role's placement.
	Labels map[string]string `json:"labels,omitempty"`
	// Capacity is what the members on this host may request in total.
	Capacity Capacity `json:"capacity"`
	// Role and Availability are left unchanged if empty.
	Role         HostRole         `json:"role,omitempty"`
	Availability HostAvailability `json:"availability,omitempty"`
	// AdvertiseAddress is where the other hosts reach this one; if it is empty, the engine chooses.
	AdvertiseAddress string `json:"advertise_address,omitempty"`
	// Socket is the path of the engine's socket on the host, for a controller that runs there in a container. If it is
	// "", the engine finds it.
	Socket string `json:"socket,omitempty"`
	// ID is the engine's identifier for the host. Joined is true if Trainyard added the host to the cluster, and so
	// will remove it again. Only the engine sets them.
	ID     string `json:"id,omitempty"`
	Joined bool   `json:"joined,omitempty"`
}

// HostRole is the role of a host in its cluster.
type HostRole string

// The roles of hosts.
const (
	// HostManager stores the state of the cluster.
	HostManager HostRole = "manager"
	// HostWorker only runs members.
	HostWorker HostRole = "worker"
)

// HostRoles lists the valid values.
var HostRoles = []HostRole{HostManager, HostWorker}

// HostAvailability says whether a host takes members; the names are Docker's.
type HostAvailability string

// The availabilities of hosts.
const (
	HostActive HostAvailability = "active"
	// HostPaused keeps its members and takes no new ones; HostDrained keeps none.
	HostPaused  HostAvailability = "pause"
	HostDrained HostAvailability = "drain"
)

// HostAvailabilities lists the valid values.
var HostAvailabilities = []HostAvailability{HostActive, HostPaused, HostDrained}

// Agent says how the hosts of a cluster are measured.
type Agent struct {
	// Disabled runs no agents: neither the GPUs of the hosts nor the usage of hosts and members are known.
	Disabled bool `json:"disabled,omitempty"`
	// Image is the image of agents that run in containers; empty means the controller's.
	Image string `json:"image,omitempty"`
	// MetricsPort is the port on which each host's agent serves Prometheus metrics; the controller uses the next port.
	// 0 disables both.
	MetricsPort int `json:"metrics_port,omitempty"`
}

// Network is the network that the members of a cluster share.
type Network struct {
	// Subnet is its address range in CIDR notation; if it is empty, the engine chooses.
	Subnet string `json:"subnet,omitempty"`
	// Encrypted encrypts traffic between hosts. Attachable lets standalone containers join.
	Encrypted  bool `json:"encrypted,omitempty"`
	Attachable bool `json:"attachable,omitempty"`
}

// Capacity is an amount of a host's resources.
type Capacity struct {
	// CPUs is a number of CPUs and may be fractional.
	CPUs float64 `json:"cpus"`
	// MemoryMiB is an amount of memory in MiB.
	MemoryMiB int64 `json:"memory_mib"`
}

// HostNames returns the names of the cluster's hosts, sorted.
func (c Cluster) HostNames() []string {
	return slices.Sorted(maps.Keys(c.Hosts))
}

// Validate returns what is wrong with the specification, regardless of the engine.
func (c Cluster) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"name"}, "cluster", c.Name)
	if len(c.Hosts) == 0 {
		ps.Add(Path{"hosts"}, "No hosts", "a cluster needs at least one host; leave hosts out to use this machine")
	}
	for _, name := range c.HostNames() {
		host, at := c.Hosts[name], Path{"hosts", Key(name)}
		CheckHostName(&ps, at, name)
		if host.Capacity.CPUs <= 0 {
			ps.Add(at.At("capacity", "cpus"), "Invalid capacity",
				"host %q has %v CPUs; it must be above 0. Leave it out to use what the machine has", name,
				host.Capacity.CPUs)
		}
		if host.Capacity.MemoryMiB <= 0 {
			ps.Add(at.At("capacity", "memory_mib"), "Invalid capacity",
				"host %q has %d MiB of memory; it must be above 0. Leave it out to use what the machine has", name,
				host.Capacity.MemoryMiB)
		}
		if host.Role != "" && !slices.Contains(HostRoles, host.Role) {
			ps.Add(at.At("role"), "Unknown role", "host %q has the unknown role %q; use one of %q", name, host.Role,
				HostRoles)
		}
		if host.Socket != "" &&
			(!path.IsAbs(host.Socket) || path.Clean(host.Socket) != host.Socket || host.Socket == "/") {
			ps.Add(at.At("socket"), "Invalid socket path",
				"%q is not the absolute path of a file; use one such as \"/run/user/1000/docker.sock\"", host.Socket)
		}
		if host.Availability != "" && !slices.Contains(HostAvailabilities, host.Availability) {
			ps.Add(at.At("availability"), "Unknown availability",
				"host %q has the unknown availability %q; use one of %q", name, host.Availability, HostAvailabilities)
		}
	}
	c.Agent.validate(&ps)
	if c.Network != nil && c.Network.Subnet != "" {
		at := Path{"network", "subnet"}
		switch subnet, err := netip.ParsePrefix(c.Network.Subnet); {
		case err != nil:
			ps.Add(at, "Invalid subnet", "%q is not a valid CIDR range, such as \"10.20.0.0/20\"", c.Network.Subnet)
		case subnet != subnet.Masked():
			ps.Add(at, "Invalid subnet", "%q is an address within a range; use the range itself, %q", c.Network.Subnet,
				subnet.Masked())
		}
	}
	return ps
}
