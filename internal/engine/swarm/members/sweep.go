package members

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// object is a config or secret object that members have as a file.
type object struct {
	id     string
	secret bool
}

// sweep removes the files and secrets of a group that no service uses any more, except the secrets with these names.
// One that has come into use meanwhile stays.
//
// It is called only at the end of an apply: until then the group may have to be rolled back, and a secret's former
// value is stored nowhere else.
func (e Members) sweep(ctx context.Context, group string, kept map[string]bool) error {
	// The services are read last, as one may have started to use an object meanwhile.
	configs, err := dockerapi.Live(e.Connection).Configs(ctx)
	if err != nil {
		return err
	}
	secrets, err := e.Secrets(ctx)
	if err != nil {
		return err
	}
	services, err := dockerapi.Live(e.Connection).Services(ctx)
	if err != nil {
		return err
	}
	unused := e.unused(group, kept, configs, secrets, append(specsOf(services), e.memory.staged.specs()...))
	return dockerapi.InParallel(ctx, unused, func(ctx context.Context, o object) error {
		err := e.Connection.Ask(ctx, func(m dockerapi.Manager) error {
			if o.secret {
				return m.SecretRemove(ctx, o.id)
			}
			return m.ConfigRemove(ctx, o.id)
		})
		if cerrdefs.IsNotFound(err) || cerrdefs.IsInvalidArgument(err) { // gone, or in use by now
			return nil
		}
		return err
	})
}

// unused returns the files and secrets of a group that none of the services refers to, and that are not to be kept.
func (e Members) unused(
	group string, kept map[string]bool, configs []swarm.Config, secrets []swarm.Secret, services []swarm.ServiceSpec,
) []object {
	used := map[string]bool{}
	for _, service := range services {
		if container := service.TaskTemplate.ContainerSpec; container != nil {
			for _, ref := range container.Configs {
				used[ref.ConfigID] = true
			}
			for _, ref := range container.Secrets {
				used[ref.SecretID] = true
			}
		}
	}
	var found []object
	for _, config := range configs {
		if !used[config.ID] && spec.IsAttachment(config.Spec.Annotations, e.Cluster, spec.KindFile, group) {
			found = append(found, object{id: config.ID})
		}
	}
	for _, secret := range secrets {
		if !used[secret.ID] && !kept[secret.Spec.Name] &&
			spec.IsAttachment(secret.Spec.Annotations, e.Cluster, spec.KindSecret, group) {
			found = append(found, object{id: secret.ID, secret: true})
		}
	}
	return found
}

func specsOf(services []swarm.Service) []swarm.ServiceSpec {
	specs := make([]swarm.ServiceSpec, 0, len(services))
	for _, service := range services {
		specs = append(specs, service.Spec)
	}
	return specs
}

// Prune removes files and secrets that no service uses any more. All secrets that the group declares stay, even for a
// role without members: a policy may scale it up, and nobody else has the values. If the group ends, its ended
// containers are removed too.
func (e Members) Prune(ctx context.Context, group string, declared *domain.Group) error {
	if declared != nil {
		return e.sweep(ctx, group, spec.DeclaredSecrets(*declared))
	}
	e.clearContainers(ctx, group)
	return e.sweep(ctx, group, nil)
}
