package endpoint

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Credentials are what engines are reached with. The zero value uses what the environment offers: the agent, the
// default key and known_hosts files.
type Credentials struct {
	// SSH is for hosts with an ssh:// address.
	SSH sshclient.Credentials
	TLS TLS
	// DialTimeout bounds each step of connecting, up to the engine's socket; 30 s where it is 0.
	DialTimeout time.Duration
	// OnSocket, if not nil, is called with the path of an SSH host's socket if the address has none and it isn't at the
	// default path.
	OnSocket func(path string)
}

// TLS is how to authenticate to engines with a tcp:// address, and they to us, as the provider's configuration gives
// it. Give the texts, or CertPath.
type TLS = engine.TLSCredentials
