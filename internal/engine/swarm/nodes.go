package swarm

import (
	"fmt"

	"github.com/docker/docker/api/types/swarm"
)

// nodeView is what there is to know of the nodes of the Swarm, by ID.
type nodeView map[string]swarm.Node

func newNodeView(nodes []swarm.Node) nodeView {
	view := make(nodeView, len(nodes))
	for _, node := range nodes {
		view[node.ID] = node
	}
	return view
}

// host returns the name of a node's host, "" for none.
func (v nodeView) host(id string) string {
	node, found := v[id]
	if !found {
		return ""
	}
	return hostName(node)
}

// platform is that of a node, such as linux/x86_64.
func (v nodeView) platform(id string) string {
	platform := v[id].Description.Platform
	return platform.OS + "/" + platform.Architecture
}

// awaited tells whether a node is to be heard of: one that is down is not, and one of which a new leader has not heard yet is. A task
// without a node has none to wait for.
func (v nodeView) awaited(id string) bool {
	node, found := v[id]
	return id == "" || found && node.Status.State != swarm.NodeStateDown
}

// trouble says in words why the node of a host is not as it should be, or "".
func (v nodeView) trouble(host, id string) string {
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
