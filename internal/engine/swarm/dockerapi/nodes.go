package dockerapi

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Nodes is what there is to know of the nodes of the Swarm, by ID.
type Nodes map[string]swarm.Node

// NewNodes returns nodes by ID.
func NewNodes(nodes []swarm.Node) Nodes {
	view := make(Nodes, len(nodes))
	for _, node := range nodes {
		view[node.ID] = node
	}
	return view
}

// Host returns the name of a node's host, "" for none.
func (v Nodes) Host(id string) string {
	node, found := v[id]
	if !found {
		return ""
	}
	return HostName(node)
}

// Platform is that of a node, such as linux/x86_64.
func (v Nodes) Platform(id string) string {
	platform := v[id].Description.Platform
	return platform.OS + "/" + platform.Architecture
}

// Awaited reports whether a node is to be heard of: one that is down is not, and one of which a new leader has not
// heard yet is. A task without a node has none to wait for.
func (v Nodes) Awaited(id string) bool {
	node, found := v[id]
	return id == "" || found && node.Status.State != swarm.NodeStateDown
}

// Trouble says in words why the node of a host is not as it should be, or "".
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

// HostName is the name of a node's host.
func HostName(node swarm.Node) string { return strings.ToLower(node.Description.Hostname) }

// Ended reports whether a task will not run any more.
func Ended(task swarm.Task) bool {
	switch task.Status.State {
	case swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateRejected, swarm.TaskStateShutdown, swarm.TaskStateOrphaned:
		return true
	}
	return false
}
