package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// secretsKind is the kind of the stored values of the secrets of a group's members: whoever starts a member gets them
// from there. No plan reads them.
var secretsKind = domain.Kind{Name: "secrets", Noun: "secrets of group"}

func secretsKey(group string) engine.Key { return engine.Key{Kind: secretsKind, Name: group} }

// secrets are values of secrets by [secretID].
type secrets map[string]relay.Secret

// secretID identifies one version of a role's secret within its group.
func secretID(role, name, version string) string { return role + "/" + name + "/" + version }

// provideSecrets returns the values of the secrets of specifications: those that are stored, and those available now,
// which it stores. A stored version keeps its value.
func (e *Engine) provideSecrets(ctx context.Context, specs []domain.MemberSpec) (map[string]secrets, error) {
	byGroup := map[string][]domain.MemberSpec{}
	for _, spec := range specs {
		if len(spec.Container.Secrets) > 0 {
			byGroup[spec.Group] = append(byGroup[spec.Group], spec)
		}
	}
	needed := map[string]secrets{}
	for group, specs := range byGroup {
		var missing error
		err := alter(ctx, e, secretsKey(group), func(stored secrets) {
			needed[group], missing = stored.provide(specs)
		})
		if err := errors.Join(err, missing); err != nil {
			return nil, err
		}
	}
	return needed, nil
}

// provide returns the secrets of specifications of one group, and adds missing ones.
func (s secrets) provide(specs []domain.MemberSpec) (secrets, error) {
	needed := secrets{}
	for _, spec := range specs {
		for name, file := range spec.Container.Secrets {
			id := secretID(spec.Role, name, file.Version)
			if _, there := s[id]; !there {
				content, given := spec.Secrets[spec.Role][name]
				if !given {
					return nil, fmt.Errorf("secret %q of role %q is not stored with the cluster, and its value is "+
						"not available here: "+
						"apply group %q with a new version of the secret", name, spec.Role, spec.Group)
				}
				s[id] = relay.Secret{
					Group: spec.Group, Role: spec.Role, Name: name, Version: file.Version, Content: content,
				}
			}
			needed[id] = s[id]
		}
	}
	return needed, nil
}

// secretsOf returns those of the secrets, given by group, that specifications need.
func secretsOf(all map[string]secrets, specs []domain.MemberSpec) (own []relay.Secret) {
	added := map[string]bool{}
	for _, spec := range specs {
		for name, file := range spec.Container.Secrets {
			id := secretID(spec.Role, name, file.Version)
			if !added[spec.Group+"/"+id] {
				added[spec.Group+"/"+id] = true
				own = append(own, all[spec.Group][id])
			}
		}
	}
	return own
}

// Prune removes the secret values and logins that neither the group declares nor one of its members needs. It removes
// them from the hosts first: as long as they are stored, the next change tries again. Everything else that members need
// is removed with them.
func (e *Engine) Prune(ctx context.Context, group string, declared *domain.Group) error {
	_, noSecrets := e.Get(ctx, secretsKey(group))
	_, noLogins := e.Get(ctx, registriesKey(group))
	if noSecrets != nil && noLogins != nil {
		return errors.Join(unlessGone(noSecrets), unlessGone(noLogins))
	}
	if err := everywhere(ctx, e, relay.Prune, group); err != nil {
		return err
	}
	return errors.Join(
		unlessGone(alter(ctx, e, secretsKey(group), func(stored secrets) { stored.keep(declared) })),
		unlessGone(alter(ctx, e, registriesKey(group), func(stored logins) { stored.keep(declared) })),
	)
}

// keep removes the secrets that a group does not declare. Those of a role without members stay, as a policy may scale
// it up.
func (s secrets) keep(declared *domain.Group) {
	kept := map[string]bool{}
	if declared != nil {
		for _, role := range declared.RoleNames() {
			if c := declared.EffectiveTemplate(role).Container; c != nil {
				for name, file := range c.Secrets {
					kept[secretID(role, name, file.Version)] = true
				}
			}
		}
	}
	for id := range s {
		if !kept[id] {
			delete(s, id)
		}
	}
}
