package endpoint

import (
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Credentials are used to reach engines. The zero value uses what the environment provides: the agent, the default key
// and known_hosts files.
type Credentials struct {
	// SSH is for hosts with an ssh:// address.
	SSH sshclient.Credentials
	TLS TLS
	// DialTimeout bounds each step of connecting, up to the engine's socket; 0 for 30 s.
	DialTimeout time.Duration
	// OnSocket, if not nil, is called with the path of an SSH host's socket if the address has none and it isn't at the
	// default path.
	OnSocket func(path string)
}

// TLS authenticates this client and engines with a tcp:// address to each other, as the provider's configuration sets
// it. Set the texts, or CertPath.
type TLS = engine.TLSCredentials
