package images

import "github.com/trainyard/terraform-provider-trainyard/internal/dockerlogin"

// Auth returns the credentials for an image's registry, see [dockerlogin.Registries.Auth].
func (e Images) Auth(image string) (string, error) { return e.registries().Auth(image) }

// registries are the credentials of registries in the provider's configuration.
func (e Images) registries() dockerlogin.Registries { return e.Connection.Settings.Docker.Registries }
