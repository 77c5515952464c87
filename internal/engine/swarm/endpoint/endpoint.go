package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Scheme is the way to an engine.
type Scheme string

// The ways to an engine.
const (
	SchemeUnix Scheme = "unix"
	SchemeTCP  Scheme = "tcp"
	SchemeSSH  Scheme = "ssh"
)

// DefaultSocket is where an engine listens unless told otherwise.
const DefaultSocket = "/var/run/docker.sock"

// Endpoint is the address of a Docker Engine. Endpoints are made by [Parse] and [Default], and compare with ==.
type Endpoint struct {
	Scheme Scheme
	// User logs in to an SSH host; empty for the one of the credentials.
	User string
	// Host is a name or an IP address, without brackets; empty for a Unix socket.
	Host string
	// Port is never 0 where there is a host.
	Port uint16
	// Socket is the absolute path of the engine's socket, on the SSH host or on this machine; empty for TCP.
	Socket string
	// CertPath is the folder of the TLS files that came with the address, from the environment or from a
	// context. The credentials' own take precedence.
	CertPath string
}

// allowed is the end of every error about an address.
const allowed = "allowed are unix:///path/to/docker.sock, tcp://host[:port] (TLS) and ssh://[user@]host[:port][/path/to/docker.sock]"

// refused are the schemes that other Docker clients know, with what to write instead.
var refused = map[string]string{
	"http":  "plain HTTP lets everybody on the way be root on the engine's host; use tcp://, which is TLS, or ssh://",
	"https": "write tcp://, which is TLS",
	"npipe": "named pipes are Windows', where Swarm's engines are reached by tcp:// or ssh://",
	"fd":    "fd:// is what an engine listens on, not what a client connects to; use unix://" + DefaultSocket,
}

// Parse returns the endpoint at an address. Its errors name the address, without a password that may be in it, and
// what is allowed.
func Parse(address string) (Endpoint, error) {
	e, err := parse(address)
	if err != nil {
		shown := withoutPassword(address)
		if shown != address { // or else the reason could quote the password
			_, again := parse(shown)
			err = cmp.Or(again, errPassword)
		}
		return Endpoint{}, fmt.Errorf("engine address %q: %w; %s", shown, err, allowed)
	}
	return e, nil
}

// errPassword is why an address with a password is none.
var errPassword = errors.New("a password can't be part of an address; keys and certificates belong into the provider's configuration")

func parse(address string) (Endpoint, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return Endpoint{}, errors.New("it has no scheme")
	}
	switch Scheme(scheme) {
	case SchemeUnix:
		return Endpoint{Scheme: SchemeUnix, Socket: rest}, checkSocket(rest)
	case SchemeTCP:
		e, err := parseRemote(address, 2376)
		switch {
		case err != nil:
			return Endpoint{}, err
		case e.User != "":
			return Endpoint{}, errors.New("a user is for ssh:// only")
		case e.Socket != "":
			return Endpoint{}, errors.New("a path is for ssh:// and unix:// only")
		}
		return e, nil
	case SchemeSSH:
		e, err := parseRemote(address, 22)
		if err != nil {
			return Endpoint{}, err
		}
		if e.Socket == "" {
			e.Socket = DefaultSocket
		}
		return e, checkSocket(e.Socket)
	}
	if instead, ok := refused[scheme]; ok {
		return Endpoint{}, errors.New(instead)
	}
	return Endpoint{}, fmt.Errorf("unknown scheme %q", scheme)
}

// These leave out nothing in use, and nothing that a shell or ssh would understand as more than a name.
var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?$`)
	zoneName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
)

// parseRemote takes an address with a host apart. The socket is its path, empty for none.
func parseRemote(address string, port uint16) (Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of package url repeats the address.
		return Endpoint{}, errors.Unwrap(err)
	}
	e := Endpoint{Scheme: Scheme(u.Scheme), User: u.User.Username(), Host: u.Hostname(), Port: port, Socket: u.Path}
	if e.Socket == "/" {
		e.Socket = ""
	}
	if _, given := u.User.Password(); given {
		return Endpoint{}, errPassword
	}
	if u.User != nil && !userName.MatchString(e.User) {
		return Endpoint{}, fmt.Errorf("%q is no user name", e.User)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(address, "#") {
		return Endpoint{}, errors.New("it has no query and no fragment")
	}
	if ip, err := netip.ParseAddr(e.Host); err == nil {
		if ip.Zone() != "" && !zoneName.MatchString(ip.Zone()) {
			return Endpoint{}, fmt.Errorf("%q is no network interface", ip.Zone())
		}
	} else if !hostName.MatchString(e.Host) {
		return Endpoint{}, fmt.Errorf("%q is no host name and no IP address", e.Host)
	}
	switch text := u.Port(); {
	case text != "":
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return Endpoint{}, fmt.Errorf("port %s is not one of 1 to 65535", text)
		}
		e.Port = uint16(number)
	case strings.HasSuffix(u.Host, ":"):
		return Endpoint{}, errors.New("the port is missing after the colon")
	}
	return e, nil
}

// maxSocketPath is what fits into a socket address everywhere; Linux has room for three bytes more.
const maxSocketPath = 104

func checkSocket(path string) error {
	switch {
	case !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/"):
		return fmt.Errorf("the socket %q is not the absolute path of a file", path)
	case len(path) > maxSocketPath:
		return fmt.Errorf("the socket's path has %d bytes, and at most %d fit", len(path), maxSocketPath)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the socket %q has control characters", path)
	}
	return nil
}

// withoutPassword returns an address without the password that may be in it, however broken the rest is.
func withoutPassword(address string) string {
	user := 0 // where it begins
	if scheme, _, ok := strings.Cut(address, "://"); ok && !strings.ContainsAny(scheme, ":@") {
		user = len(scheme) + len("://")
	}
	at, colon := strings.LastIndexByte(address, '@'), user+strings.IndexByte(address[user:], ':')
	if colon < user || at < colon {
		return address
	}
	return address[:colon] + ":(redacted)" + address[at:]
}

// String returns the address, without what Parse fills in anyway. Parse returns the same endpoint for it, except
// for CertPath.
func (e Endpoint) String() string {
	switch e.Scheme {
	case SchemeUnix:
		return "unix://" + e.Socket
	case SchemeTCP:
		return "tcp://" + e.hostPort()
	}
	u := url.URL{Scheme: string(e.Scheme), Host: e.Host}
	if strings.Contains(e.Host, ":") {
		u.Host = "[" + e.Host + "]"
	}
	if e.Port != 22 {
		u.Host = e.hostPort()
	}
	if e.User != "" {
		u.User = url.User(e.User)
	}
	if e.Socket != DefaultSocket {
		u.Path = e.Socket
	}
	return u.String()
}

// hostPort returns the host and port as package net dials them.
func (e Endpoint) hostPort() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}
