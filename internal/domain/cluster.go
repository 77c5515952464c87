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
	// Endpoint is where the engine is reached; empty where it needs none, or its default is meant.
	Endpoint string          `json:"endpoint,omitempty"`
	Hosts    map[string]Host `json:"hosts"`
	// Network is the network of the members, for engines that make one.
	Network *Network `json:"network,omitempty"`
	Agent   Agent    `json:"agent,omitzero"`
	// ID is how the engine knows the hosts as a whole, such as the ID of a Swarm; empty where there is no taking them
	// for others. It is the engine's to set.
	ID string `json:"id,omitempty"`
}

// Ref returns what reaches the cluster.
func (c Cluster) Ref() ClusterRef {
	return ClusterRef{Engine: c.Engine, Name: c.Name, Endpoint: c.Endpoint}
}

// ClusterRef is what it takes to reach a cluster.
type ClusterRef struct{ Engine, Name, Endpoint string }

// Host is a machine of a cluster.
type Host struct {
	// Address is where the host is reached: by members, without a port, where they share their hosts' addresses;
	// by Trainyard, as an address of the host's engine such as ssh://ops@gpu1, for engines that run on each host.
	Address string `json:"address,omitempty"`
	// Labels are matched by a role's placement.
	Labels map[string]string `json:"labels,omitempty"`
	// Capacity is what the members on this host may request in all.
	Capacity Capacity `json:"capacity"`
	// Role and Availability are left as they are where they are empty.
	Role         HostRole         `json:"role,omitempty"`
	Availability HostAvailability `json:"availability,omitempty"`
	// AdvertiseAddress is where the other hosts reach this one; empty leaves the choice to the engine.
	AdvertiseAddress string `json:"advertise_address,omitempty"`
	// Socket is the path of the engine's socket on the host, for a controller that runs there in a container. If it is
	// "", the engine finds it.
	Socket string `json:"socket,omitempty"`
	// ID is how the engine knows the host, and Joined tells that Trainyard made it part of the cluster, and so takes it
	// out again. Both are the engine's to set.
	ID     string `json:"id,omitempty"`
	Joined bool   `json:"joined,omitempty"`
}

// HostRole is the part that a host has in its cluster.
type HostRole string

// The roles of hosts.
const (
	// HostManager keeps what is stored of the cluster.
	HostManager HostRole = "manager"
	// HostWorker only runs members.
	HostWorker HostRole = "worker"
)

// HostRoles lists the roles that a host may have.
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

// HostAvailabilities lists the availabilities that a host may have.
var HostAvailabilities = []HostAvailability{HostActive, HostPaused, HostDrained}

// Agent says how the hosts of a cluster are measured.
type Agent struct {
	// Disabled leaves the hosts without an agent: what they and their members use is not known, nor which GPUs there
	// are.
	Disabled bool `json:"disabled,omitempty"`
	// Image is what agents run from where they are containers; empty is that of the controller.
	Image string `json:"image,omitempty"`
	// MetricsPort is the port at which the agent of each host serves metrics to Prometheus; the controller has the next
	// one. 0 serves none.
	MetricsPort int `json:"metrics_port,omitempty"`
}

// Network is the network that the members of a cluster share.
type Network struct {
	// Subnet is its range of addresses in CIDR notation; empty leaves the choice to the engine.
	Subnet string `json:"subnet,omitempty"`
	// Encrypted encrypts what members send from host to host, and Attachable lets plain containers join.
	Encrypted  bool `json:"encrypted,omitempty"`
	Attachable bool `json:"attachable,omitempty"`
}

// Capacity is an amount of a host's resources.
type Capacity struct {
	// CPUs is a number of processors; fractions are allowed.
	CPUs float64 `json:"cpus"`
	// MemoryMiB is an amount of memory in MiB.
	MemoryMiB int64 `json:"memory_mib"`
}

// HostNames returns the names of the cluster's hosts, sorted.
func (c Cluster) HostNames() []string {
	return slices.Sorted(maps.Keys(c.Hosts))
}

// Validate returns what is wrong with the specification, whatever engine runs it.
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
			ps.Add(at.At("capacity", "cpus"), "Invalid capacity", "host %q has %v CPUs; a number above 0 is needed. Leave it out to take the machine's own", name, host.Capacity.CPUs)
		}
		if host.Capacity.MemoryMiB <= 0 {
			ps.Add(at.At("capacity", "memory_mib"), "Invalid capacity", "host %q has %d MiB of memory; a number above 0 is needed. Leave it out to take the machine's own", name, host.Capacity.MemoryMiB)
		}
		if host.Role != "" && !slices.Contains(HostRoles, host.Role) {
			ps.Add(at.At("role"), "Unknown role", "host %q can't be a %q; there are %q", name, host.Role, HostRoles)
		}
		if host.Socket != "" && (!path.IsAbs(host.Socket) || path.Clean(host.Socket) != host.Socket || host.Socket == "/") {
			ps.Add(at.At("socket"), "Invalid socket path", "%q is not the absolute path of a file; use one such as \"/run/user/1000/docker.sock\"", host.Socket)
		}
		if host.Availability != "" && !slices.Contains(HostAvailabilities, host.Availability) {
			ps.Add(at.At("availability"), "Unknown availability", "host %q can't be set to %q; there are %q", name, host.Availability, HostAvailabilities)
		}
	}
	c.Agent.validate(&ps)
	if c.Network != nil && c.Network.Subnet != "" {
		at := Path{"network", "subnet"}
		switch subnet, err := netip.ParsePrefix(c.Network.Subnet); {
		case err != nil:
			ps.Add(at, "Invalid subnet", "%q is no range of addresses in CIDR notation, such as \"10.20.0.0/20\"", c.Network.Subnet)
		case subnet != subnet.Masked():
			ps.Add(at, "Invalid subnet", "%q is an address within a range; the range is %q", c.Network.Subnet, subnet.Masked())
		}
	}
	return ps
}
