package members

import (
	"context"
	"errors"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// known returns what services of the cluster refer to.
func (e Members) known(ctx context.Context, services []swarm.Service) (spec.Lookup, error) {
	k := spec.Lookup{Configs: map[string]swarm.Config{}}
	add := func(configs []swarm.Config) {
		for _, config := range configs {
			k.Configs[config.ID] = config
		}
	}
	configs, err := e.Reads.Configs(ctx)
	if err != nil {
		return k, err
	}
	add(configs)
	if foreign := foreignTo(k, e.Cluster, services); len(foreign) > 0 {
		if configs, err = e.Connection.ConfigsWith(foreign...)(ctx); err != nil {
			return k, err
		}
		add(configs)
	}
	cluster, err := e.declared(ctx)
	k.Hosts = dockerapi.HostsOf(cluster)
	return k, err
}

// declared returns the cluster as its document declares it; without any hosts if there is none.
func (e Members) declared(ctx context.Context) (domain.Cluster, error) {
	document, err := engine.Cluster(ctx, e.Items)
	if errors.Is(err, engine.ErrNotFound) {
		err = nil
	}
	return document.Spec, err
}

// foreignTo returns the filters for config objects that the cluster's services refer to and that are not known yet:
// somebody else's.
func foreignTo(k spec.Lookup, cluster string, services []swarm.Service) []filters.KeyValuePair {
	var ids []filters.KeyValuePair
	for _, service := range services {
		if container := service.Spec.TaskTemplate.ContainerSpec; container != nil && spec.BelongsTo(service, cluster) {
			for _, ref := range container.Configs {
				if _, found := k.Configs[ref.ConfigID]; !found {
					ids = append(ids, filters.Arg("id", ref.ConfigID))
				}
			}
		}
	}
	return ids
}
