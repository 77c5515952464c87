package members

import (
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// prepare returns the services of members as they should be started, after providing what they need: images on their
// hosts, and the config and secret objects with their files. services are those of the Swarm by name.
func (e Members) prepare(
	ctx context.Context, specs []domain.MemberSpec, services map[string]swarm.Service,
) ([]change, error) {
	in, nodes, err := e.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	if in.Configs, err = e.provideConfigs(ctx, spec.Configs(specs)); err != nil {
		return nil, err
	}
	if in.Secrets, err = e.provideSecrets(ctx, spec.Secrets(specs)); err != nil {
		return nil, err
	}
	resolved, err := e.images.Resolve(ctx, specs, images.Surroundings{IDs: in.Nodes, Nodes: nodes, Services: services})
	if err != nil {
		return nil, err
	}
	members := map[string]int{} // per service
	for _, member := range specs {
		members[spec.ServiceName(member)] = max(members[spec.ServiceName(member)], member.Index+1)
	}
	var changes []change
	for _, member := range specs {
		name := spec.ServiceName(member)
		n, wanted := members[name]
		if !wanted {
			continue // one of those that share a service
		}
		delete(members, name)
		if !member.Shared {
			n = 1
		}
		in.Images = map[string]spec.References{member.Image: resolved.Of(member)}
		want, err := spec.Render(member, in, n)
		if err != nil {
			return nil, err
		}
		auth, err := e.images.Auth(member.Image)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{
			group: member.Group, run: member.Run, node: in.Nodes[member.Host], want: want, pooled: member.Shared,
			auth: auth,
		})
	}
	return changes, nil
}

// surroundings returns the Swarm that members are rendered for: its network, and the nodes of the cluster.
func (e Members) surroundings(ctx context.Context) (in spec.Target, view dockerapi.Nodes, err error) {
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil {
		return in, nil, fmt.Errorf("cluster %q: %w", e.Cluster, err)
	}
	live := dockerapi.Live(e.Connection)
	networks, err := live.Networks(ctx)
	if err != nil {
		return in, nil, err
	}
	own, found := dockerapi.OwnNetwork(networks, e.Cluster)
	if !found {
		return in, nil, fmt.Errorf("network %q of cluster %q is missing: apply the cluster to recreate it",
			spec.NetworkName(e.Cluster), e.Cluster)
	}
	nodes, err := live.Nodes(ctx)
	if err != nil {
		return in, nil, err
	}
	in.Network, in.Nodes = own.ID, dockerapi.NodesOf(document.Spec, nodes)
	ids := map[string]bool{}
	for _, id := range in.Nodes {
		ids[id] = true
	}
	for _, node := range nodes {
		if !ids[node.ID] {
			in.Others = append(in.Others, node.ID)
		}
	}
	slices.Sort(in.Others)
	return in, dockerapi.NewNodes(nodes), nil
}
