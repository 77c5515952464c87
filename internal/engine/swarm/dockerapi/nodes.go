package dockerapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Nodes are the nodes of the Swarm by ID.
type Nodes map[string]swarm.Node

// NewNodes returns nodes by ID.
func NewNodes(nodes []swarm.Node) Nodes {
	view := make(Nodes, len(nodes))
	for _, node := range nodes {
		view[node.ID] = node
	}
	return view
}

// Host returns the name of a node's host: the declared one, see [HostsOf], or else that of the machine, "" for an
// unknown node.
func (v Nodes) Host(id string, declared map[string]string) string {
	if name, found := declared[id]; found {
		return name
	}
	return HostName(v[id])
}

// Platform returns a node's platform, such as linux/x86_64.
func (v Nodes) Platform(id string) string {
	platform := v[id].Description.Platform
	return platform.OS + "/" + platform.Architecture
}

// Awaited reports whether news of a node can be expected: not if it is down, but if a new leader has not heard from it
// yet. A task without a node counts too.
func (v Nodes) Awaited(id string) bool {
	node, found := v[id]
	return id == "" || found && node.Status.State != swarm.NodeStateDown
}

// Trouble describes what is wrong with the node of a host, or returns "".
func (v Nodes) Trouble(host, id string) string {
	node, found := v[id]
	switch {
	case !found:
		return fmt.Sprintf("host %s is not part of the Swarm", host)
	case node.Status.State != swarm.NodeStateReady:
		return fmt.Sprintf("host %s is %s", host, node.Status.State)
	case node.Spec.Availability == swarm.NodeAvailabilityDrain:
		return fmt.Sprintf("host %s is drained", host)
	case node.Spec.Availability == swarm.NodeAvailabilityPause:
		return fmt.Sprintf("host %s is paused", host)
	}
	return ""
}

// Meets reports whether a node meets the constraints of a service.
func (v Nodes) Meets(id string, service swarm.ServiceSpec) bool {
	return spec.Admits(service, id, v[id].Spec.Labels)
}

// HostName is the name of a node's machine. A cluster may declare the host under another one.
func HostName(node swarm.Node) string { return strings.ToLower(node.Description.Hostname) }

// IsManager reports whether a node is specified as a manager.
func IsManager(node swarm.Node) bool { return node.Spec.Role == swarm.NodeRoleManager }

// IsReachable reports whether a node is a manager that the others reach.
func IsReachable(node swarm.Node) bool {
	return node.ManagerStatus != nil && node.ManagerStatus.Reachability == swarm.ReachabilityReachable
}

// NodeOf returns the node of one of the hosts by its stored ID, or by its name. A node that is down has a successor if
// its machine, which goes by the host's name, left the Swarm and joined it again while the node is still listed.
func NodeOf(nodes []swarm.Node, hosts map[string]domain.Host, host string) (swarm.Node, bool) {
	id := hosts[host].ID
	i := slices.IndexFunc(nodes, func(node swarm.Node) bool { return id != "" && node.ID == id })
	if i >= 0 {
		if next, joined := successor(nodes, nodes[i]); joined && HostName(next) == host && !isStored(hosts, next.ID) {
			return next, true
		}
		return nodes[i], true
	}
	if named := Named(nodes, host); len(named) == 1 {
		return named[0], true
	}
	return swarm.Node{}, false
}

// isStored reports whether a host is stored with this ID.
func isStored(hosts map[string]domain.Host, id string) bool {
	for _, host := range hosts {
		if host.ID == id {
			return true
		}
	}
	return false
}

// IsSucceeded reports whether the only ready node with the name of a node that is down may be the same machine.
func IsSucceeded(nodes []swarm.Node, node swarm.Node) bool {
	_, joined := successor(nodes, node)
	return joined
}

// successor returns the only ready node with the name of one that is down.
func successor(nodes []swarm.Node, node swarm.Node) (swarm.Node, bool) {
	if node.Status.State != swarm.NodeStateDown {
		return swarm.Node{}, false
	}
	named := Named(nodes, HostName(node))
	if len(named) != 1 || named[0].Status.State != swarm.NodeStateReady {
		return swarm.Node{}, false
	}
	return named[0], true
}

// Named returns the nodes with a host's name, only the ready ones if there are any: a node that has left and joined
// again leaves one with the same name behind.
func Named(nodes []swarm.Node, host string) []swarm.Node {
	var named, ready []swarm.Node
	for _, node := range nodes {
		if HostName(node) != host {
			continue
		}
		named = append(named, node)
		if node.Status.State == swarm.NodeStateReady {
			ready = append(ready, node)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return named
}

// HostsOf returns the names that a cluster's hosts are declared under, by node ID.
func HostsOf(cluster domain.Cluster) map[string]string {
	names := make(map[string]string, len(cluster.Hosts))
	for name, host := range cluster.Hosts {
		if host.ID != "" {
			names[host.ID] = name
		}
	}
	return names
}

// NodesOf returns the node IDs of a cluster's hosts by host name, as far as they are part of the Swarm.
func NodesOf(cluster domain.Cluster, nodes []swarm.Node) map[string]string {
	ids := map[string]string{}
	for name := range cluster.Hosts {
		if node, found := NodeOf(nodes, cluster.Hosts, name); found {
			ids[name] = node.ID
		}
	}
	return ids
}
