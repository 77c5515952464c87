package endpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Credentials are what engines are reached with. The zero value uses what the environment offers: the agent, the
// default key and known_hosts files.
type Credentials struct {
	SSH SSH
	TLS TLS
	// DialTimeout bounds each attempt to connect, up to the engine's socket; 15 s where it is 0.
	DialTimeout time.Duration
	// OnSocket, if not nil, is called with the path of an SSH host's socket if the address has none and it isn't at the
	// default path.
	OnSocket func(path string)
}

// The parts of credentials are as the provider's configuration gives them.
type (
	// SSH is how to log in to hosts with an ssh:// address, and to their jump host. A key given here or by its path is
	// offered first, and the default key files are not.
	SSH = engine.SSHCredentials
	// TLS is how to authenticate to engines with a tcp:// address, and they to us. Give the texts, or CertPath.
	TLS = engine.TLSCredentials
	// Secret is a text that doesn't print.
	Secret = engine.Secret
)

// dialTimeout returns the limit of an attempt to connect.
func (c Credentials) dialTimeout() time.Duration {
	if c.DialTimeout > 0 {
		return c.DialTimeout
	}
	return 15 * time.Second
}

// expand returns a path with ~/ replaced by the home directory.
func expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the home directory that %q begins with is not known: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

// read returns the content of a file whose path may begin with ~/.
func read(path string) ([]byte, error) {
	path, err := expand(path)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
