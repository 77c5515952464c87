package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// registriesKind is the kind of the stored registry credentials for the images of a group or sweep: whoever starts a
// member gets them from there. No plan reads it.
var registriesKind = domain.Kind{Name: "registries", Noun: "registry credentials of group"}

func registriesKey(group string) engine.Key { return engine.Key{Kind: registriesKind, Name: group} }

// logins are registry credentials by registry, as Docker Engines expect them.
type logins map[string]string

// KeepRegistryLogins stores the available credentials: the provider's, else those of docker login where the provider
// runs. The controller has none.
func (e *Engine) KeepRegistryLogins(ctx context.Context, group string, images []string) error {
	if e.settings.Controller {
		return nil
	}
	given := logins{}
	for _, image := range images {
		auth, err := dockerlogin.Registries(e.settings.Docker.Registries).Auth(image)
		if err != nil {
			return fmt.Errorf("%w. Fix that, or add %q to docker.registries of the provider", err,
				dockerlogin.Host(image))
		}
		if auth != "" {
			given[dockerlogin.Host(image)] = auth
		}
	}
	if len(given) == 0 {
		return nil
	}
	return alter(ctx, e, registriesKey(group), func(stored logins) { maps.Copy(stored, given) })
}

// groupLogins are the logins of groups.
type groupLogins map[string]logins

// registryLogins returns the registry credentials for the groups of specifications.
func (e *Engine) registryLogins(ctx context.Context, specs []domain.MemberSpec) (groupLogins, error) {
	all := groupLogins{}
	for _, spec := range specs {
		if _, known := all[spec.Group]; known || spec.Image == "" {
			continue
		}
		stored := logins{}
		item, err := e.Get(ctx, registriesKey(spec.Group))
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			if err := json.Unmarshal(item.Data, &stored); err != nil {
				return nil, &engine.CorruptError{Where: item.Where, Err: err}
			}
		}
		all[spec.Group] = stored
	}
	return all, nil
}

// of returns those for the images of specifications.
func (l groupLogins) of(specs []domain.MemberSpec) (own []relay.RegistryLogin) {
	added := map[string]bool{}
	for _, spec := range specs {
		auth, there := l[spec.Group][dockerlogin.Host(spec.Image)]
		if id := spec.Group + "/" + spec.Image; there && !added[id] {
			added[id] = true
			own = append(own, relay.RegistryLogin{Group: spec.Group, Image: spec.Image, Auth: auth})
		}
	}
	return own
}

// keep removes the logins to registries from which a group declares no image.
func (l logins) keep(declared *domain.Group) {
	kept := map[string]bool{}
	if declared != nil {
		for _, image := range declared.PulledImages() {
			kept[dockerlogin.Host(image)] = true
		}
	}
	maps.DeleteFunc(l, func(host, _ string) bool { return !kept[host] })
}
