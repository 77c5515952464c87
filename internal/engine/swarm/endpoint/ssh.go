package endpoint

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// sshDialer returns the dial function for an engine over SSH.
func sshDialer(e Endpoint, credentials Credentials) (dialFunc, error) {
	client, err := sshclient.New(e.host(), credentials.SSH, credentials.DialTimeout)
	if err != nil {
		return nil, err
	}
	f := &farSocket{client: client, credentials: credentials, path: e.Socket}
	return f.dial, nil
}

// farSocket is the socket of an SSH host.
type farSocket struct {
	client      *sshclient.Client
	credentials Credentials

	mu   sync.Mutex
	path string
}

// dial returns a new connection to the socket. If there is none at the default path, it takes the one that the host's
// docker command uses.
func (f *farSocket) dial(ctx context.Context) (net.Conn, error) {
	release, err := f.client.Hold(ctx) // one login for all attempts
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := sshclient.Within(ctx, f.credentials.DialTimeout)
	defer cancel()
	f.mu.Lock()
	path := f.path
	f.mu.Unlock()
	conn, err := f.client.Dial(ctx, "unix", path)
	refused, ok := errors.AsType[*ssh.OpenChannelError](err)
	if !ok || refused.Reason == ssh.Prohibited {
		return conn, err
	}
	if path == DefaultSocket {
		if conn := f.dialElsewhere(ctx); conn != nil {
			return conn, nil
		}
	}
	// OpenSSH doesn't distinguish these causes; its log on the host does.
	return nil, sshclient.Failed(ErrNoSocket,
		"the SSH login succeeded, but %s can't be reached on the host; check that Docker is running there and "+
			"listens at this path "+
			"(or give another: ssh://host/path/to/docker.sock), that this user is in the docker group, and that "+
			"sshd_config doesn't disable AllowStreamLocalForwarding: %s",
		path, refused.Message)
}

// dialElsewhere connects to the socket that the host's docker command uses, if that is not the default one, and uses it
// from then on. It returns nil if that fails.
func (f *farSocket) dialElsewhere(ctx context.Context) net.Conn {
	path := contextSocket(ctx, f.client)
	if path == "" || path == DefaultSocket {
		return nil
	}
	conn, err := f.client.Dial(ctx, "unix", path)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	f.path = path
	f.mu.Unlock()
	if f.credentials.OnSocket != nil {
		f.credentials.OnSocket(path)
	}
	return conn
}

// contextCommand prints the address that a host's docker command uses, such as that of a rootless engine.
const contextCommand = "docker context inspect --format '{{.Endpoints.docker.Host}}'"

// contextSocket returns the path of the socket that a host's docker command uses, "" if it uses none or can't be asked.
func contextSocket(ctx context.Context, client *sshclient.Client) string {
	output, err := client.Run(ctx, contextCommand)
	if err != nil {
		return ""
	}
	e, err := Parse(strings.TrimSpace(string(output)))
	if err != nil || e.Scheme != SchemeUnix {
		return ""
	}
	return e.Socket
}
