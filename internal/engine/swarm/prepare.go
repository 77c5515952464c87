package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// prepare returns the services of some members as they should be started, once all is there that they need: images on
// their hosts, and the config and secret objects with their files.
func (e *Engine) prepare(ctx context.Context, specs []domain.MemberSpec) ([]change, error) {
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
	if in.images, err = e.provideImages(ctx, specs, in); err != nil {
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
		if !pooled(spec) {
			n = 1
		}
		want, err := render(spec, in, n)
		if err != nil {
			return nil, err
		}
		auth, err := e.connection.registryAuth(spec.Image)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{group: spec.Group, run: spec.Run, want: want, pooled: pooled(spec), auth: auth})
	}
	return changes, nil
}

// surroundings returns the network and the nodes of the cluster.
func (e *Engine) surroundings(ctx context.Context) (in surroundings, err error) {
	document, err := e.Cluster(ctx)
	if err != nil {
		return in, fmt.Errorf("cluster %q: %w", e.cluster.Name, err)
	}
	live := liveReads(e.connection)
	networks, err := live.networks(ctx)
	if err != nil {
		return in, err
	}
	for _, n := range networks {
		if n.Name == networkName(e.cluster.Name) && n.Labels[labelCluster] == e.cluster.Name {
			in.network = n.ID
		}
	}
	if in.network == "" {
		return in, fmt.Errorf("the network %q of cluster %q is not there: apply the cluster, which makes it anew", networkName(e.cluster.Name), e.cluster.Name)
	}
	nodes, err := live.nodes(ctx)
	if err != nil {
		return in, err
	}
	in.nodes = hostNodes(document.Spec, nodes)
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

// provideImages sees to the images of some members on their hosts, and returns what the hosts are told to run for each.
func (e *Engine) provideImages(ctx context.Context, specs []domain.MemberSpec, in surroundings) (map[string]string, error) {
	needed := map[string]*wanted{}
	for _, spec := range specs {
		w := needed[spec.Image]
		if w == nil {
			w = &wanted{name: spec.Image, policy: spec.Container.PullPolicy, hosts: map[string]string{}}
			needed[spec.Image] = w
		}
		for host, id := range in.nodes {
			if host == spec.Host || pooled(spec) {
				w.hosts[id] = host
			}
		}
	}
	m, err := e.manager(ctx)
	if err != nil {
		return nil, err
	}
	var engines map[string]client.APIClient
	images := map[string]string{}
	var failures []error
	for name, w := range needed {
		if engines == nil {
			if engines, err = e.engines(ctx, m); err != nil {
				return nil, err
			}
		}
		reference, err := e.resolve(ctx, *w, engines)
		if err != nil {
			failures = append(failures, err)
		}
		images[name] = reference
	}
	return images, errors.Join(failures...)
}
