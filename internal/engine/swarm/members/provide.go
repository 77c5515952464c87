package members

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// provideConfigs creates the missing config objects, and returns the IDs of all by name. It restores missing labels.
func (e Members) provideConfigs(ctx context.Context, needed []swarm.ConfigSpec) (map[string]string, error) {
	if len(needed) == 0 {
		return nil, nil
	}
	existing, err := dockerapi.Live(e.Connection).Configs(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]swarm.Config{}
	for _, config := range existing {
		byName[config.Spec.Name] = config
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, config := range needed {
		found, there := byName[config.Name]
		if !there {
			created, err := m.ConfigCreate(ctx, config)
			if err != nil {
				return nil, fmt.Errorf("creating config object %q: %w", config.Name, err)
			}
			ids[config.Name] = created.ID
			continue
		}
		if !bytes.Equal(found.Spec.Data, config.Data) {
			return nil, dockerapi.Foreign(config.Name)
		}
		if restored, changed := relabelled(found.Spec.Annotations, config.Annotations); changed {
			found.Spec.Annotations = restored
			if err := m.ConfigUpdate(ctx, found.ID, found.Version, found.Spec); err != nil &&
				!dockerapi.OutOfSequence(err) {
				return nil, fmt.Errorf("restoring the labels of config object %q: %w", config.Name, err)
			}
		}
		ids[config.Name] = found.ID
	}
	return ids, nil
}

// provideSecrets creates the missing secret objects, and returns the IDs of all by name. It restores missing labels.
func (e Members) provideSecrets(ctx context.Context, needed []spec.Secret) (map[string]string, error) {
	if len(needed) == 0 {
		return nil, nil
	}
	existing, err := e.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]swarm.Secret{}
	for _, secret := range existing {
		byName[secret.Spec.Name] = secret
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, secret := range needed {
		found, there := byName[secret.Object.Name]
		if !there {
			if secret.Object.Data == nil {
				return nil, fmt.Errorf("secret %q of role %q is not in the Swarm, and its value is not available: "+
					"apply its group with a new version of the secret", secret.Name, secret.Role)
			}
			created, err := m.SecretCreate(ctx, secret.Object)
			if err != nil {
				return nil, fmt.Errorf("creating secret %q of role %q: %w", secret.Name, secret.Role, err)
			}
			ids[secret.Object.Name] = created.ID
			continue
		}
		if restored, changed := relabelled(found.Spec.Annotations, secret.Object.Annotations); changed {
			found.Spec.Annotations = restored
			if err := m.SecretUpdate(ctx, found.ID, found.Version, found.Spec); err != nil &&
				!dockerapi.OutOfSequence(err) {
				return nil, fmt.Errorf("restoring the labels of secret %q of role %q: %w", secret.Name, secret.Role,
					err)
			}
		}
		ids[secret.Object.Name] = found.ID
	}
	return ids, nil
}

// relabelled returns an object's annotations with the wanted labels, and whether that is a change. Labels of others are
// kept.
func relabelled(live, want swarm.Annotations) (restored swarm.Annotations, changed bool) {
	restored = live
	restored.Labels = maps.Clone(want.Labels)
	for key, value := range live.Labels {
		if _, ours := want.Labels[key]; !ours {
			restored.Labels[key] = value
		}
	}
	return restored, !maps.Equal(restored.Labels, live.Labels)
}
