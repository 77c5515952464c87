package dockerapi

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/network"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// listNetworks lists the networks that a manager knows. A manager that can't reach the Swarm's leader lists those in
// use on its own node, without an error: so a missing network of the cluster counts only if the leader was reached.
func listNetworks(ctx context.Context, m Manager, cluster string) ([]network.Summary, error) {
	found, err := m.NetworkList(ctx, network.ListOptions{})
	if _, exists := OwnNetwork(found, cluster); exists || err != nil {
		return found, err
	}
	if _, err := m.SwarmInspect(ctx); err != nil {
		return nil, err
	}
	return m.NetworkList(ctx, network.ListOptions{})
}

// OwnNetwork returns the network of a cluster.
func OwnNetwork(networks []network.Summary, cluster string) (network.Summary, bool) {
	i := slices.IndexFunc(networks, func(n network.Summary) bool {
		return IsSwarmNetwork(n, spec.NetworkName(cluster)) && n.Labels[spec.LabelCluster] == cluster
	})
	if i < 0 {
		return network.Summary{}, false
	}
	return networks[i], true
}

// IsSwarmNetwork reports whether a network is the Swarm's of that name, not one of a host alone.
func IsSwarmNetwork(n network.Summary, name string) bool { return n.Name == name && n.Scope == "swarm" }

// ReadNetwork returns the settings of a live network.
func ReadNetwork(n network.Summary) domain.Network {
	_, encrypted := n.Options[EncryptedOption]
	is := domain.Network{Encrypted: encrypted, Attachable: n.Attachable}
	if len(n.IPAM.Config) > 0 {
		is.Subnet = n.IPAM.Config[0].Subnet
	}
	return is
}

// EncryptedOption is the driver option of encrypted networks.
const EncryptedOption = "encrypted"
