// Package dockerlogin shows registries what "docker login" left behind on this machine.
package dockerlogin

import (
	"fmt"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Auth returns what is shown to the registry of an image, as an Engine takes it, with the help of credential helpers. It
// is "" where there is nothing to show.
func Auth(image reference.Named) (string, error) {
	host := reference.Domain(image)
	at, err := name.NewRegistry(host)
	if err != nil {
		return "", fmt.Errorf("registry of image %q: %w", image, err)
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
