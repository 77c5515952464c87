// Package dockerlogin provides the credentials for image registries: those of a configuration, or else those that
// "docker login" stored on this machine.
package dockerlogin

import (
	"fmt"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Registries are the credentials of a configuration, by the host of a registry.
type Registries map[string]engine.RegistryCredentials

// Host returns the host of an image's registry, as configurations name it; empty for an image that has none, as it is
// known by its ID.
func Host(image string) string {
	parsed, err := reference.ParseAnyReference(image)
	named, is := parsed.(reference.Named)
	if err != nil || !is {
		return ""
	}
	return reference.Domain(named)
}

// Auth returns what is shown to the registry of an image, as an Engine takes it: these credentials, else what docker
// login left, with its credential helpers. It is "" where there is nothing to show.
func (r Registries) Auth(image string) (string, error) {
	if _, err := reference.ParseAnyReference(image); err != nil {
		return "", fmt.Errorf("image %q: %w", image, err)
	}
	host := Host(image)
	if host == "" {
		return "", nil
	}
	if given, found := r[host]; found {
		return registry.EncodeAuthConfig(registry.AuthConfig{
			ServerAddress: host, Username: given.Username, Password: string(given.Password), IdentityToken: string(given.Token),
		})
	}
	return ownAuth(host)
}

// ownAuth returns what docker login left for a registry.
func ownAuth(host string) (string, error) {
	at, err := name.NewRegistry(host)
	if err != nil {
		return "", fmt.Errorf("registry %q: %w", host, err)
	}
	login, err := authn.DefaultKeychain.Resolve(at)
	if err != nil {
		return "", fmt.Errorf("the credentials of docker login for registry %q: %w", host, err)
	}
	if login == authn.Anonymous {
		return "", nil
	}
	found, err := login.Authorization()
	if err != nil {
		return "", fmt.Errorf("the credentials of docker login for registry %q: %w", host, err)
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		ServerAddress: host, Username: found.Username, Password: found.Password, Auth: found.Auth,
		IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
	})
}
