package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// prepare returns the services of some members as they should be started, once all is there that they need: images on
// their hosts, and the config and secret objects with their files. The services are those of the Swarm by name.
func (e *Engine) prepare(ctx context.Context, specs []domain.MemberSpec, services map[string]swarm.Service) ([]change, error) {
	in, err := e.surroundings(ctx)
	if err != nil {
		return nil, err
	}
	if in.configs, err = e.provideConfigs(ctx, configsOf(specs)); err != nil {
		return nil, err
	}
	if in.secrets, err = e.provideSecrets(ctx, secretsOf(specs)); err != nil {
		return nil, err
	}
	images, err := e.provideImages(ctx, specs, in, services)
	if err != nil {
		return nil, err
	}
	members := map[string]int{} // of each service
	for _, spec := range specs {
		members[serviceName(spec)] = max(members[serviceName(spec)], spec.Index+1)
	}
	var changes []change
	for _, spec := range specs {
		name := serviceName(spec)
		n, wanted := members[name]
		if !wanted {
			continue // it is among those that share a service
		}
		delete(members, name)
		if !spec.Shared {
			n = 1
		}
		in.images = map[string]references{spec.Image: images[useOf(spec)]}
		want, err := render(spec, in.target, n)
		if err != nil {
			return nil, err
		}
		auth, err := e.connection.registryAuth(spec.Image)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{group: spec.Group, run: spec.Run, node: in.nodes[spec.Host], want: want, pooled: spec.Shared, auth: auth})
	}
	return changes, nil
}

// surroundings are the Swarm that members are rendered for, and what there is to know of its nodes.
type surroundings struct {
	target

	view nodeView
}

// surroundings returns the network and the nodes of the cluster.
func (e *Engine) surroundings(ctx context.Context) (in surroundings, err error) {
	document, err := engine.Cluster(ctx, e)
	if err != nil {
		return in, fmt.Errorf("cluster %q: %w", e.cluster.Name, err)
	}
	live := liveReads(e.connection)
	networks, err := live.networks(ctx)
	if err != nil {
		return in, err
	}
	own, found := ownNetwork(networks, e.cluster.Name)
	if !found {
		return in, fmt.Errorf("the network %q of cluster %q is not there: apply the cluster, which makes it anew", networkName(e.cluster.Name), e.cluster.Name)
	}
	nodes, err := live.nodes(ctx)
	if err != nil {
		return in, err
	}
	in.network, in.nodes, in.view = own.ID, hostNodes(document.Spec, nodes), newNodeView(nodes)
	ids := map[string]bool{}
	for _, id := range in.nodes {
		ids[id] = true
	}
	for _, node := range nodes {
		if !ids[node.ID] {
			in.others = append(in.others, node.ID)
		}
	}
	slices.Sort(in.others)
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
func (e *Engine) provideImages(ctx context.Context, specs []domain.MemberSpec, in surroundings, services map[string]swarm.Service) (map[imageUse]references, error) {
	needed := map[imageUse]*wanted{}
	changing := map[string]bool{}
	for _, spec := range specs {
		use := useOf(spec)
		w := needed[use]
		if w == nil {
			w = &wanted{imageUse: use, hosts: map[string]string{}}
			needed[use] = w
		}
		for host, id := range in.nodes {
			if host == spec.Host || spec.Scheduling == domain.SchedulingEngine && in.takes(host, spec.Placement) {
				w.hosts[id] = host
			}
		}
		changing[serviceName(spec)] = true
		live, found := services[serviceName(spec)]
		w.mends = w.mends || found && identityOf(live).run == spec.Run
	}
	m, err := e.manager(ctx)
	if err != nil {
		return nil, err
	}
	engines, err := e.engines(ctx, m)
	if err != nil {
		return nil, err
	}
	images := map[imageUse]references{}
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
	node := in.view[in.nodes[host]]
	for key, value := range placement.Labels {
		if has, found := node.Spec.Labels[key]; !found || has != value {
			return false
		}
	}
	return in.view.trouble(host, node.ID) == "" && (len(placement.Hosts) == 0 || slices.Contains(placement.Hosts, host))
}
