package swarm

// target is the Swarm that specifications are rendered for: the IDs of what they name.
type target struct {
	// network is the ID of the cluster's network.
	network string
	// nodes are the IDs of the cluster's nodes by their hosts' names, and others those of nodes that are not the cluster's.
	nodes  map[string]string
	others []string
	// images are what the hosts are told to run, by the image as the user gave it: an ID, say. An image that is not among
	// them is run as it was given.
	images map[string]references
	// configs and secrets are the IDs of config and secret objects by name, see [configsOf] and [secretsOf].
	configs, secrets map[string]string
}

// references is what hosts are told to run for an image.
type references struct {
	// shared is a reference that works on every host. own are those of single nodes, by node ID; they take precedence.
	shared string
	own    map[string]string
	// content is the content digest, if all hosts are known to have the same image.
	content string
}

// on returns what a node is told to run; "" is a service that the Swarm places.
func (r references) on(node string) string {
	if own, found := r.own[node]; found {
		return own
	}
	return r.shared
}
