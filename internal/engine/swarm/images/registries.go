package images

import (
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"

	"github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// registries are the credentials of registries, by their hosts.
type registries map[string]engine.RegistryCredentials

// Auth returns what is shown to the registry of an image, see [registries.auth].
func (e Images) Auth(image string) (string, error) {
	return registries(e.Connection.Settings.Docker.Registries).auth(image)
}

// auth returns what is shown to the registry of an image, as the Engine takes it: these, else what docker login left
// behind, with its credential helpers. It is "" where there is nothing to show.
func (r registries) auth(image string) (string, error) {
	return dockerlogin.Registries(r).Auth(image)
}

// dockerHub is what Engines call the registry docker.io among credentials.
const dockerHub = "https://index.docker.io/v1/"

// auths returns what is shown to the registries of these images, from which others are built. A name that is
// none has no registry.
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
		auths[host] = registry.AuthConfig{ServerAddress: host, Username: auth.Username, Password: string(auth.Password), IdentityToken: string(auth.Token)}
	}
	return auths
}
