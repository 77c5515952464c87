package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// prepare returns the services of some members as they should be started, once all is there that they need: images on
// their hosts, and the config and secret objects with their files. The services are those of the Swarm by name.
func (e *Engine) prepare(ctx context.Context, specs []domain.MemberSpec, services map[string]swarm.Service) ([]change, error) {
	in, err := e.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	if in.Configs, err = e.provideConfigs(ctx, spec.Configs(specs)); err != nil {
		return nil, err
	}
	if in.Secrets, err = e.provideSecrets(ctx, spec.Secrets(specs)); err != nil {
		return nil, err
	}
	images, err := e.provideImages(ctx, specs, in, services)
	if err != nil {
		return nil, err
	}
	members := map[string]int{} // of each service
	for _, member := range specs {
		members[spec.ServiceName(member)] = max(members[spec.ServiceName(member)], member.Index+1)
	}
	var changes []change
	for _, member := range specs {
		name := spec.ServiceName(member)
		n, wanted := members[name]
		if !wanted {
			continue // it is among those that share a service
		}
		delete(members, name)
		if !member.Shared {
			n = 1
		}
		in.Images = map[string]spec.References{member.Image: images[useOf(member)]}
		want, err := spec.Render(member, in.Target, n)
		if err != nil {
			return nil, err
		}
		auth, err := registries(e.connection.Settings.Docker.Registries).auth(member.Image)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{group: member.Group, run: member.Run, node: in.Nodes[member.Host], want: want, pooled: member.Shared, auth: auth})
	}
	return changes, nil
}

// surroundings are the Swarm that members are rendered for, and what there is to know of its nodes.
type surroundings struct {
	spec.Target

	view dockerapi.Nodes
}

// surroundings returns the network and the nodes of the cluster.
func (e *Engine) surroundings(ctx context.Context) (in surroundings, err error) {
	document, err := engine.Cluster(ctx, e)
	if err != nil {
		return in, fmt.Errorf("cluster %q: %w", e.cluster.Name, err)
	}
	live := dockerapi.Live(e.connection)
	networks, err := live.Networks(ctx)
	if err != nil {
		return in, err
	}
	own, found := dockerapi.OwnNetwork(networks, e.cluster.Name)
	if !found {
		return in, fmt.Errorf("the network %q of cluster %q is not there: apply the cluster, which makes it anew", spec.NetworkName(e.cluster.Name), e.cluster.Name)
	}
	nodes, err := live.Nodes(ctx)
	if err != nil {
		return in, err
	}
	in.Network, in.Nodes, in.view = own.ID, hostNodes(document.Spec, nodes), dockerapi.NewNodes(nodes)
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
	return in, nil
}

// imageUse is an image as some members of a group are to run it in one of the group's runs.
type imageUse struct {
	group, name string
	policy      domain.PullPolicy
	run         int
}

func useOf(spec domain.MemberSpec) imageUse {
	return imageUse{spec.Group, spec.Image, spec.Container.PullPolicy, spec.Run}
}

// provideImages sees to the images of some members on their hosts, and returns what the hosts are told to run for each.
func (e *Engine) provideImages(ctx context.Context, specs []domain.MemberSpec, in surroundings, services map[string]swarm.Service) (map[imageUse]spec.References, error) {
	needed := map[imageUse]*wanted{}
	changing := map[string]bool{}
	for _, member := range specs {
		use := useOf(member)
		w := needed[use]
		if w == nil {
			w = &wanted{imageUse: use, hosts: map[string]string{}}
			needed[use] = w
		}
		for host, id := range in.Nodes {
			if host == member.Host || member.Scheduling == domain.SchedulingEngine && in.takes(host, member.Placement) {
				w.hosts[id] = host
			}
		}
		changing[spec.ServiceName(member)] = true
		live, found := services[spec.ServiceName(member)]
		w.mends = w.mends || found && spec.IdentityOf(live).Run == member.Run
	}
	m, err := e.connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := e.connection.Engines(ctx, e, m)
	if err != nil {
		return nil, err
	}
	images := map[imageUse]spec.References{}
	var failures []error
	for use, w := range needed {
		if !w.mends { // what is mended keeps its image
			w.peers = e.peersOf(use, services, changing)
		}
		resolved, err := e.resolve(ctx, *w, engines, in)
		if err != nil {
			failures = append(failures, err)
		}
		images[use] = resolved
	}
	return images, errors.Join(failures...)
}

// takes tells whether a member may be on a host at present.
func (in surroundings) takes(host string, placement domain.Placement) bool {
	node := in.view[in.Nodes[host]]
	for key, value := range placement.Labels {
		if has, found := node.Spec.Labels[key]; !found || has != value {
			return false
		}
	}
	return in.view.Trouble(host, node.ID) == "" && (len(placement.Hosts) == 0 || slices.Contains(placement.Hosts, host))
}
