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

// Registries maps registry hosts to the credentials in a configuration.
type Registries map[string]engine.RegistryCredentials

// Host returns the host of an image's registry, as configurations name it; empty for an image that is given by its ID,
// or for an invalid reference.
func Host(image string) string {
	parsed, err := reference.ParseAnyReference(image)
	named, is := parsed.(reference.Named)
	if err != nil || !is {
		return ""
	}
	return reference.Domain(named)
}

// Auth returns the credentials for an image's registry, encoded as the Engine takes them: those in r, else those of
// docker login, including its credential helpers. It is "" if there are none.
func (r Registries) Auth(image string) (string, error) {
	if _, err := reference.ParseAnyReference(image); err != nil {
		return "", fmt.Errorf("image %q: %w", image, err)
	}
	host := Host(image)
	if host == "" {
		return "", nil
	}
	if given, found := r.given(host); found {
		return registry.EncodeAuthConfig(given)
	}
	return ownAuth(host)
}

// Auths returns the credentials in r for the registries of images, by the names that Engines have for these. Invalid
// names have no registry.
func (r Registries) Auths(images []string) map[string]registry.AuthConfig {
	auths := map[string]registry.AuthConfig{}
	for _, image := range images {
		if given, found := r.given(Host(image)); found {
			auths[given.ServerAddress] = given
		}
	}
	return auths
}

// given returns the credentials in r for a registry.
func (r Registries) given(host string) (registry.AuthConfig, bool) {
	given, found := r[host]
	return registry.AuthConfig{
		ServerAddress: serverOf(host), Username: given.Username, Password: string(given.Password),
		IdentityToken: string(given.Token),
	}, found
}

// serverOf returns the name that Engines have for a registry in credentials: older ones with containerd's image store
// ignore credentials for "docker.io".
func serverOf(host string) string {
	if host == "docker.io" {
		return "https://index.docker.io/v1/"
	}
	return host
}

// ownAuth returns the credentials of docker login for a registry.
func ownAuth(host string) (string, error) {
	at, err := name.NewRegistry(host)
	if err != nil {
		return "", fmt.Errorf("registry %q: %w", host, err)
	}
	login, err := authn.DefaultKeychain.Resolve(at)
	if err != nil {
		return "", fmt.Errorf("reading the docker login credentials for registry %q: %w", host, err)
	}
	if login == authn.Anonymous {
		return "", nil
	}
	found, err := login.Authorization()
	if err != nil {
		return "", fmt.Errorf("reading the docker login credentials for registry %q: %w", host, err)
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		ServerAddress: serverOf(host), Username: found.Username, Password: found.Password, Auth: found.Auth,
		IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
	})
}
