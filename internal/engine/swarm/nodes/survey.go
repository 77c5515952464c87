package nodes

import (
	"context"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// Survey returns a stored cluster as it is now: without hosts that are no longer nodes of the Swarm, without the
// network if it is gone, and with the live values of the declared attributes.
func (e Hosts) Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return cluster, err
	}
	networks, err := e.Reads.Networks(ctx)
	if err != nil {
		return cluster, err
	}
	f := &facts{stored: cluster, nodes: nodes}
	stored := cluster.Hosts
	cluster.Hosts = make(map[string]domain.Host, len(stored))
	for name, host := range stored {
		if node, found := f.known(name); found {
			cluster.Hosts[name] = surveyHost(host, node)
		}
	}
	cluster.Network = nil
	if live, found := dockerapi.OwnNetwork(networks, cluster.Name); found {
		is := dockerapi.ReadNetwork(live)
		cluster.Network = &is
	}
	return cluster, nil
}

// surveyHost returns a stored host with the live values of its declared attributes.
func surveyHost(host domain.Host, node swarm.Node) domain.Host {
	host.ID = node.ID
	if host.Role != "" {
		host.Role = domain.HostRole(node.Spec.Role)
	}
	if host.Availability != "" {
		host.Availability = domain.HostAvailability(node.Spec.Availability)
	}
	if host.Labels != nil {
		labels := map[string]string{}
		for key := range host.Labels {
			if value, found := node.Spec.Labels[key]; found {
				labels[key] = value
			}
		}
		host.Labels = labels
	}
	return host
}
