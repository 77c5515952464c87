// Package nodes makes hosts nodes of a Swarm, as a cluster declares them: it turns facts about hosts into a plan of
// steps, which is pure, and carries out the steps.
package nodes

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// plan is how the hosts become a cluster, or what prevents it.
type plan struct {
	// cluster is complete.
	cluster domain.Cluster
	steps   []step
	// problems are errors, which rule out the steps, and warnings.
	problems domain.Problems
}

// plan decides how the hosts become the cluster.
//
// A cluster without hosts adopts the Swarm as it is, and manages none of its nodes. Declared hosts that are not part of
// the Swarm join it. If there is none, they form one: it is created on the endpoint's host, if there is an endpoint,
// else on the first host, by name, that is declared a manager, else on the first without a role.
func (f *facts) plan(declared domain.Cluster) plan {
	p := plan{cluster: declared}
	p.checkName()
	first := ""
	if len(declared.Hosts) == 0 {
		p.adopt(f)
	} else {
		p.match(f)
		first = p.first(f)
	}
	if p.problems.Err() != nil {
		return p
	}
	if p.cluster.Endpoint == "" {
		p.cluster.Endpoint = f.managerAddress(p.cluster, first)
	}
	p.steps = f.hostSteps(p.cluster, first)
	p.connect(f)
	p.checkSockets(f)
	sortSteps(p.steps)
	checkQuorum(&p.problems, f.nodes, p.steps, f.stored.Name == "")
	return p
}

// checkName checks that the Swarm accepts the names of the cluster's network and of its residents' services.
func (p *plan) checkName() {
	if name := p.cluster.Name; len(name) > spec.MaxClusterName {
		p.problems.Add(domain.Path{"name"}, "Invalid cluster name",
			"%q has %d characters; at most %d are allowed on a Swarm, as its services are named after it, such as %s",
			name, len(name), spec.MaxClusterName, spec.ResidentName("<name>", spec.KindController))
	}
}

// adopt makes all nodes of the Swarm hosts of the cluster.
func (p *plan) adopt(f *facts) {
	at := domain.Path{"hosts"}
	if p.cluster.Endpoint != "" {
		at = domain.Path{"endpoint"}
	}
	if f.missing != nil {
		p.problems.Add(at, "No Swarm", "no hosts are declared, so the cluster needs an existing Swarm: %v", f.missing)
		return
	}
	hosts := map[string]domain.Host{}
	for _, node := range f.nodes {
		name := dockerapi.HostName(node)
		if named := dockerapi.Named(f.nodes, name); len(named) > 1 {
			p.problems.Add(domain.Path{"hosts"}, "Hosts of the same name",
				"%d nodes of the Swarm are named %q: give each host a unique name, or declare the hosts with "+
					"their addresses",
				len(named), name)
			return
		}
		node, _ := f.known(name)
		hosts[name] = f.settled(name, domain.Host{}, node)
	}
	p.cluster.Hosts = hosts
}

// settled completes a host whose node is known.
func (f *facts) settled(name string, host domain.Host, node swarm.Node) domain.Host {
	host.ID = node.ID
	_, host.Joined = f.joined[name]
	has := capacityOf(node)
	host.Capacity.CPUs = cmp.Or(host.Capacity.CPUs, has.CPUs)
	host.Capacity.MemoryMiB = cmp.Or(host.Capacity.MemoryMiB, has.MemoryMiB)
	return host
}

// match finds the nodes, or the Engines, of the declared hosts.
func (p *plan) match(f *facts) {
	hosts := maps.Clone(p.cluster.Hosts)
	byNode := map[string]string{}
	for _, name := range p.cluster.HostNames() {
		at := domain.Path{"hosts", domain.Key(name)}
		host := hosts[name]
		p.checkHost(f, at, name, host)
		node, found := f.find(name)
		if !found {
			p.checkApart(f, at, name, host)
			has := f.engines[name].info
			host.ID, host.Joined = "", false
			host.Capacity = p.capacity(at, name, host.Capacity, capacity(int64(has.NCPU)*spec.NanoCPUs, has.MemTotal))
			hosts[name] = host
			continue
		}
		if other, taken := byNode[node.ID]; taken {
			p.problems.Add(at, "Host declared twice", "%q and %q are the same node of the Swarm, %s (%s)", other, name,
				dockerapi.HostName(node), node.ID)
			continue
		}
		byNode[node.ID] = name
		host.Capacity = p.capacity(at, name, host.Capacity, capacityOf(node))
		hosts[name] = f.settled(name, host, node)
	}
	p.cluster.Hosts = hosts
}

// memoryTolerance is the fraction by which a machine's reported memory may vary, for example with another kernel: the
// stored amount may exceed it by this much.
const memoryTolerance = 0.02

// capacity returns a declared capacity, completed with that of the machine. It adds a problem if more is declared than
// the machine has, as a Swarm never starts what needs more.
func (p *plan) capacity(at domain.Path, name string, declared, has domain.Capacity) domain.Capacity {
	if declared.CPUs > has.CPUs && has.CPUs > 0 {
		p.problems.Add(at.At("capacity", "cpus"), "Capacity exceeds the host's",
			"host %q has %v CPUs, but %v are declared", name, has.CPUs, declared.CPUs)
	}
	if float64(declared.MemoryMiB) > float64(has.MemoryMiB)*(1+memoryTolerance) && has.MemoryMiB > 0 {
		p.problems.Add(at.At("capacity", "memory_mib"), "Capacity exceeds the host's",
			"host %q has %d MiB of memory, but %d are declared", name, has.MemoryMiB, declared.MemoryMiB)
	}
	return domain.Capacity{CPUs: cmp.Or(declared.CPUs, has.CPUs), MemoryMiB: cmp.Or(declared.MemoryMiB, has.MemoryMiB)}
}

// checkHost checks a host's specification, whether or not the host is a node.
func (p *plan) checkHost(f *facts, at domain.Path, name string, host domain.Host) {
	if err := f.invalid[name]; err != nil {
		p.problems.Add(at.At("address"), "Invalid address", "%v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(host.Labels)) {
		if strings.HasPrefix(key, spec.LabelPrefix) {
			p.problems.Add(at.At("labels", domain.Key(key)), "Reserved label",
				"labels that begin with %q are reserved for Trainyard", spec.LabelPrefix)
		}
	}
}

// checkApart checks whether a host that is not a node of the Swarm can become one.
func (p *plan) checkApart(f *facts, at domain.Path, name string, host domain.Host) {
	if f.invalid[name] != nil {
		return
	}
	if named := dockerapi.Named(f.nodes, name); len(named) > 1 && host.Address == "" {
		p.problems.Add(at, "Ambiguous host name",
			"%d nodes of the Swarm are named %q: give the address of the host's Docker Engine", len(named), name)
		return
	}
	if host.Address == "" {
		if f.missing != nil {
			p.problems.Add(at.At("address"), "No Swarm",
				"host %q is not part of a Swarm, and has no address through which it could join one. "+
					"Give the address of its Docker Engine, such as ssh://user@%[1]s, or have it join a Swarm and "+
					"set the endpoint to one of its managers (%v)",
				name, f.missing)
			return
		}
		p.problems.Add(at, "Not part of the Swarm", "no node of the Swarm is named %q; there are %s. Give the "+
			"address of the host's Docker Engine, such as ssh://user@%[1]s, to have it join",
			name, domain.Enumerate(hostNames(f.nodes)))
		return
	}
	seen := f.engines[name]
	if seen.err != nil {
		p.problems.Add(at.At("address"), "Host can't be queried",
			"host %q is not part of the Swarm yet, and can't join it: %v", name, seen.err)
		return
	}
	if err := f.unfit(name, seen.info.Swarm); err != "" {
		p.problems.Add(at.At("address"), "Host can't join", "host %q %s", name, err)
	}
}

// unfit says why a host that is not a node of the cluster's Swarm can't join it, or "".
func (f *facts) unfit(name string, is swarm.Info) string {
	_, joined := f.joined[name]
	switch {
	case is.LocalNodeState == swarm.LocalNodeStateInactive, is.LocalNodeState == "":
		return ""
	case is.LocalNodeState == swarm.LocalNodeStateLocked:
		return "is part of a locked Swarm: unlock it first (docker swarm unlock)"
	case f.missing == nil && joined && f.isForgotten(name, is):
		return "" // it joins again
	case f.missing == nil:
		return "is part of another Swarm. If nothing there is needed any more, have it leave (docker swarm leave " +
			"--force); otherwise, it can't be part of this cluster"
	case is.ControlAvailable:
		return "is a manager of a Swarm that does not answer: " + is.Error
	}
	return "is part of a Swarm that none of the cluster's hosts manages. Set the cluster's endpoint to the address " +
		"of a manager; or, if the Swarm is not needed any more, have it leave (docker swarm leave --force)"
}

// isForgotten reports whether a host's Engine takes itself for a node of this very Swarm, which no longer knows it.
func (f *facts) isForgotten(name string, is swarm.Info) bool {
	if id := f.stored.Hosts[name].ID; id != "" && id == is.NodeID {
		return true
	}
	return slices.ContainsFunc(is.RemoteManagers, func(manager swarm.Peer) bool {
		_, found := f.node(manager.NodeID)
		return found
	})
}

// first returns the host on which the Swarm is created; "" if there is one already.
func (p *plan) first(f *facts) string {
	if f.missing == nil || p.problems.Err() != nil {
		return ""
	}
	var candidates []string
	for _, role := range []domain.HostRole{domain.HostManager, ""} {
		for _, name := range p.cluster.HostNames() {
			if p.cluster.Hosts[name].Role == role {
				candidates = append(candidates, name)
			}
		}
	}
	if f.endpoint == nil {
		if len(candidates) == 0 {
			p.problems.Add(domain.Path{"hosts"}, "No manager",
				"all hosts are declared as workers, but a Swarm needs a manager: role = \"manager\"")
			return ""
		}
		return candidates[0]
	}
	for _, name := range candidates {
		if f.engines[name].info.ID == f.endpoint.info.ID {
			return name
		}
	}
	p.problems.Add(domain.Path{"endpoint"}, "No Swarm",
		"the Docker Engine at the endpoint is not a Swarm manager, and not that of a host that will become one. "+
			"Omit the endpoint, or set it to the address of one of %s", domain.Enumerate(candidates))
	return ""
}

// managerAddress returns the address of a host that manages the Swarm, or will: the stored endpoint as long as it does.
func (f *facts) managerAddress(cluster domain.Cluster, first string) string {
	var addresses []string
	for _, name := range cluster.HostNames() {
		host := cluster.Hosts[name]
		node, found := f.find(name)
		manages := host.Role == domain.HostManager || name == first ||
			host.Role == "" && found && dockerapi.IsManager(node)
		if manages && host.Address != "" {
			addresses = append(addresses, host.Address)
		}
	}
	switch {
	case slices.Contains(addresses, f.stored.Endpoint):
		return f.stored.Endpoint
	case len(addresses) > 0:
		return addresses[0]
	}
	return ""
}

// addresses returns the known addresses at which the hosts reach each other, by host.
func (f *facts) addresses(hosts map[string]domain.Host) map[string]netip.Addr {
	known := map[string]netip.Addr{}
	for _, node := range f.nodes {
		if address, err := netip.ParseAddr(node.Status.Addr); err == nil && !address.IsUnspecified() {
			known[dockerapi.HostName(node)] = address
		}
		// The leader's own status may say 0.0.0.0.
		if node.ManagerStatus == nil {
			continue
		}
		if address, err := netip.ParseAddrPort(node.ManagerStatus.Addr); err == nil {
			known[dockerapi.HostName(node)] = address.Addr()
		}
	}
	for name, host := range hosts {
		if address, err := netip.ParseAddr(host.AdvertiseAddress); err == nil {
			known[name] = address
		}
	}
	return known
}

func hostNames(nodes []swarm.Node) []string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = dockerapi.HostName(node)
	}
	return names
}

// checkSockets warns about managers whose socket differs from most others', as far as that is known before the apply.
func (p *plan) checkSockets(f *facts) {
	sockets := map[string]string{}
	for name, host := range p.cluster.Hosts {
		node, found := f.known(name)
		if host.Role == domain.HostManager || host.Role == "" && found && dockerapi.IsManager(node) {
			sockets[name] = cmp.Or(daemons.DeclaredSocket(host), f.sockets[name], endpoint.DefaultSocket)
		}
	}
	socket, elsewhere := daemons.ChooseSocket(sockets)
	for _, name := range elsewhere {
		p.problems.Warn(domain.Path{"hosts", domain.Key(name), "socket"}, "Manager can't run the controller",
			"the Docker socket of host %q is at %s, that of most managers at %s: the controller can't move to "+
				"this host. "+
				"Use the same path on all managers",
			name, sockets[name], socket)
	}
}
