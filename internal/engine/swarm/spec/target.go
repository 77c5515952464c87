package spec

// Target is the Swarm that specifications are rendered for: the IDs of what they name.
type Target struct {
	// Network is the ID of the cluster's network.
	Network string
	// Nodes are the IDs of the cluster's nodes by host name, and Others those of nodes that are not the cluster's.
	Nodes  map[string]string
	Others []string
	// Images maps the user's images to what the hosts are told to run, such as an ID. An image that is not in it is run
	// as given.
	Images map[string]References
	// Configs and Secrets are the IDs of config and secret objects by name, see [Configs] and [Secrets].
	Configs, Secrets map[string]string
}

// References are what hosts are told to run for an image.
type References struct {
	// Shared is a reference that works on every host. Own are those for single nodes, by node ID; they take precedence.
	Shared string
	Own    map[string]string
	// Content is the content digest, if all hosts are known to have the same image.
	Content string
}

// On returns what a node is told to run; "" stands for a service that the Swarm places.
func (r References) On(node string) string {
	if own, found := r.Own[node]; found {
		return own
	}
	return r.Shared
}
