package images

import (
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"

	"github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// registries are the credentials of registries, by host.
type registries map[string]engine.RegistryCredentials

// Auth returns the credentials for an image's registry, see [registries.auth].
func (e Images) Auth(image string) (string, error) {
	return registries(e.Connection.Settings.Docker.Registries).auth(image)
}

// auth returns the credentials for an image's registry as the Engine expects them: the given ones, else those of docker
// login, with its credential helpers. It is "" if there are none.
func (r registries) auth(image string) (string, error) {
	return dockerlogin.Registries(r).Auth(image)
}

// dockerHub is the key of the registry docker.io in Engines' credentials.
const dockerHub = "https://index.docker.io/v1/"

// auths returns the credentials for the registries of these images, from which others are built. Invalid names have no
// registry.
func (r registries) auths(images []string) map[string]registry.AuthConfig {
	auths := map[string]registry.AuthConfig{}
	for _, image := range images {
		named, err := reference.ParseNormalizedNamed(image)
		if err != nil {
			continue
		}
		host := reference.Domain(named)
		auth, found := r[host]
		if !found {
			continue
		}
		if host == "docker.io" {
			host = dockerHub
		}
		auths[host] = registry.AuthConfig{
			ServerAddress: host, Username: auth.Username, Password: string(auth.Password),
			IdentityToken: string(auth.Token),
		}
	}
	return auths
}
