package swarm

import (
	"os"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
)

// openEndpoint returns the client of an endpoint, without reaching out to it; "" is where docker itself would look. Found is told where an SSH
// host has its Engine's socket, where that is not the default path.
func openEndpoint(address string, settings engine.Settings, found func(socket string)) (*client.Client, error) {
	at, err := endpointAt(address)
	if err != nil {
		return nil, err
	}
	return at.Client(endpoint.Credentials{SSH: settings.Docker.SSH, TLS: settings.Docker.TLS, OnSocket: found})
}

// endpointAt returns the endpoint at an address; "" is where docker itself would look.
func endpointAt(address string) (endpoint.Endpoint, error) {
	if address == "" {
		return endpoint.Default(os.Getenv)
	}
	return endpoint.At(address, os.Getenv)
}
