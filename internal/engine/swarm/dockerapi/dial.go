package dockerapi

import (
	"os"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
)

// openEndpoint returns the client of an endpoint, without connecting to it; "" is the one that docker would use. If an
// SSH host's socket isn't at the default path, found is called with its path.
func openEndpoint(address string, settings engine.Settings, found func(socket string)) (*client.Client, error) {
	at, err := EndpointAt(address)
	if err != nil {
		return nil, err
	}
	return at.Client(endpoint.Credentials{SSH: settings.SSH, TLS: settings.Docker.TLS, OnSocket: found})
}

// EndpointAt returns the endpoint at an address; "" is the one that docker would use.
func EndpointAt(address string) (endpoint.Endpoint, error) {
	if address == "" {
		return endpoint.Default(os.Getenv)
	}
	return endpoint.At(address, os.Getenv)
}
