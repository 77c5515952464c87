package swarm

import (
	"os"

	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
)

// openEndpoint returns the client of an endpoint, without reaching out to it; "" is where docker itself would look.
func openEndpoint(address string, settings engine.Settings) (*client.Client, error) {
	at, err := endpoint.Default(os.Getenv)
	if address != "" {
		at, err = endpoint.At(address, os.Getenv)
	}
	if err != nil {
		return nil, err
	}
	return at.Client(endpoint.Credentials{SSH: settings.Docker.SSH, TLS: settings.Docker.TLS})
}
