package nodes

import (
	"cmp"
	"context"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

// JoinToken returns the secret with which hosts join the Swarm in a role, and the addresses of the managers that they
// can join through.
func (e Hosts) JoinToken(ctx context.Context, role domain.HostRole) (engine.JoinToken, error) {
	is, err := e.Inspect(ctx)
	if err != nil {
		return engine.JoinToken{}, err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return engine.JoinToken{}, err
	}
	token := is.JoinTokens.Worker
	if role == domain.HostManager {
		token = is.JoinTokens.Manager
	}
	return engine.JoinToken{Token: engine.Secret(token), Managers: joinAddresses(nodes)}, nil
}

// joinAddresses returns the addresses of the reachable managers, the leader's first.
func joinAddresses(nodes []swarm.Node) []string {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(node swarm.Node) bool { return !dockerapi.IsReachable(node) })
	slices.SortFunc(nodes, func(a, b swarm.Node) int {
		return cmp.Or(order(b.ManagerStatus.Leader, a.ManagerStatus.Leader),
			cmp.Compare(a.ManagerStatus.Addr, b.ManagerStatus.Addr))
	})
	addresses := make([]string, len(nodes))
	for i, node := range nodes {
		addresses[i] = node.ManagerStatus.Addr
	}
	return addresses
}
