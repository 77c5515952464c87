package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// Scheme is how an engine is reached.
type Scheme string

// The supported schemes.
const (
	SchemeUnix Scheme = "unix"
	SchemeTCP  Scheme = "tcp"
	SchemeSSH  Scheme = "ssh"
	// SchemePipe is a named pipe on Windows.
	SchemePipe Scheme = sshclient.Pipe
)

// DefaultSocket is the default path of an engine's socket.
const DefaultSocket = "/var/run/docker.sock"

const (
	// pipes is the path prefix of a machine's named pipes.
	pipes = "//./pipe/"
	// defaultPipe is the default pipe of an engine on Windows.
	defaultPipe = pipes + "docker_engine"
)

// Endpoint is the address of a Docker Engine. Endpoints are made by [Parse] and [Default], and compare with ==.
type Endpoint struct {
	Scheme Scheme
	// User is the login user of an SSH host; empty for that of the credentials.
	User string
	// Host is a name or an IP address, without brackets; empty for a Unix socket or a pipe.
	Host string
	// Port is never 0 if there is a host.
	Port uint16
	// Socket is the absolute path of the engine's socket, on the SSH host or on this machine, or of its pipe; empty for
	// TCP.
	Socket string
	// CertPath is the folder of the TLS files that came with the address, from the environment or a context. The
	// credentials' own take precedence.
	CertPath string
}

// allowed is the end of every error about an address.
const allowed = "allowed: unix:///path/to/docker.sock, tcp://host[:port] (TLS), " +
	"ssh://[user@]host[:port][/path/to/docker.sock] and, on Windows, npipe://" + defaultPipe

// refused maps the schemes that other Docker clients support to what to write instead.
var refused = map[string]string{
	"http":  "plain HTTP makes everyone on the network root on the engine's host; use tcp://, which is TLS, or ssh://",
	"https": "use tcp://, which is TLS",
	"fd":    "fd:// is for an engine to listen on, not for a client to connect to; use unix://" + DefaultSocket,
}

// Parse returns the endpoint at an address. Its errors name the address, without any password in it, and what is
// allowed.
func Parse(address string) (Endpoint, error) {
	return sshclient.ParseAddress("engine address", address, allowed, parse)
}

func parse(address string) (Endpoint, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return Endpoint{}, errors.New("missing scheme")
	}
	switch Scheme(scheme) {
	case SchemeUnix:
		return Endpoint{Scheme: SchemeUnix, Socket: rest}, checkSocket(rest)
	case SchemePipe:
		return Endpoint{Scheme: SchemePipe, Socket: rest}, checkPipe(rest)
	case SchemeTCP:
		host, path, err := sshclient.ParseURL(address, 2376)
		switch {
		case err != nil:
			return Endpoint{}, err
		case host.User != "":
			return Endpoint{}, errors.New("a user is only allowed with ssh://")
		case path != "":
			return Endpoint{}, errors.New("a path is only allowed with ssh:// and unix://")
		}
		return Endpoint{Scheme: SchemeTCP, Host: host.Name, Port: host.Port}, nil
	case SchemeSSH:
		host, path, err := sshclient.ParseURL(address, sshclient.DefaultPort)
		if err != nil {
			return Endpoint{}, err
		}
		socket := cmp.Or(path, DefaultSocket)
		return Endpoint{
			Scheme: SchemeSSH, User: host.User, Host: host.Name, Port: host.Port, Socket: socket,
		}, checkSocket(socket)
	}
	if instead, ok := refused[scheme]; ok {
		return Endpoint{}, errors.New(instead)
	}
	return Endpoint{}, fmt.Errorf("unknown scheme %q", scheme)
}

// maxSocketPath is the length that fits into a socket address on every system; Linux has room for three bytes more.
const maxSocketPath = 104

func checkSocket(path string) error {
	switch {
	case !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/"):
		return fmt.Errorf("socket %q is not an absolute file path", path)
	case len(path) > maxSocketPath:
		return fmt.Errorf("the socket path has %d bytes, at most %d fit", len(path), maxSocketPath)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("socket %q contains control characters", path)
	}
	return nil
}

func checkPipe(path string) error {
	name, local := strings.CutPrefix(path, pipes)
	if !local || name == "" ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }) {
		return fmt.Errorf("pipe %q must have the form %sname", path, pipes)
	}
	return nil
}

// String returns the address without Parse's defaults. Parse returns the same endpoint for it, except for CertPath.
func (e Endpoint) String() string {
	switch e.Scheme {
	case SchemeUnix, SchemePipe:
		return string(e.Scheme) + "://" + e.Socket
	case SchemeTCP:
		return "tcp://" + e.host().HostPort()
	}
	address := "ssh://" + e.host().String()
	if e.Socket != DefaultSocket {
		address += (&url.URL{Path: e.Socket}).EscapedPath()
	}
	return address
}

// host returns the host of an endpoint that has one.
func (e Endpoint) host() sshclient.Host {
	return sshclient.Host{User: e.User, Name: e.Host, Port: e.Port}
}

// at returns an error that names the endpoint, if it is about that.
func (e Endpoint) at(err error) error { return sshclient.At(e.String(), err) }
