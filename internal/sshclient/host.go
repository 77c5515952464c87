package sshclient

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

// DefaultPort is the default port of SSH servers.
const DefaultPort = 22

// Host is the address of an SSH server. Hosts are made by [ParseHost], and comparable.
type Host struct {
	// User is the user to log in as; if empty, that of the credentials.
	User string
	// Name is a name or an IP address, without brackets.
	Name string
	// Port is never 0.
	Port uint16
}

// ParseHost parses an address, [user@]host[:port].
func ParseHost(address string) (Host, error) {
	return ParseAddress("SSH host", address, allowed, parseHost)
}

// allowed is the end of every error about a host's address.
const allowed = "use [user@]host[:port]"

func parseHost(address string) (Host, error) {
	host, path, err := ParseURL("ssh://"+address, DefaultPort)
	if err == nil && path != "" {
		err = errors.New("a path is not allowed")
	}
	return host, err
}

// ParseAddress parses an address with parse. Its errors say what it is the address of, quote it with any password
// redacted, and end with what is allowed.
func ParseAddress[A any](what, address, allowed string, parse func(string) (A, error)) (A, error) {
	parsed, err := parse(address)
	if err == nil {
		return parsed, nil
	}
	shown := withoutPassword(address)
	if shown != address { // or else the reason could quote the password
		_, again := parse(shown)
		err = cmp.Or(again, errPassword)
	}
	return *new(A), fmt.Errorf("%s %q: %w; %s", what, shown, err, allowed)
}

// errPassword is the error for an address with a password.
var errPassword = errors.New(
	"a password can't be part of an address; keys and certificates belong in the provider's configuration",
)

// These exclude nothing in use, and allow nothing that a shell or ssh would interpret.
var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?$`)
	zoneName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
)

// ParseURL splits scheme://[user@]host[:port][/path], with a default port; a path of "/" counts as none. Its errors are
// meant to be completed by [ParseAddress].
func ParseURL(address string, port uint16) (host Host, path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of package url quotes the address.
		return Host{}, "", errors.Unwrap(err)
	}
	host = Host{User: u.User.Username(), Name: u.Hostname(), Port: port}
	if _, given := u.User.Password(); given {
		return Host{}, "", errPassword
	}
	if u.User != nil && !userName.MatchString(host.User) {
		return Host{}, "", fmt.Errorf("%q is not a valid user name", host.User)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(address, "#") {
		return Host{}, "", errors.New("query and fragment are not allowed")
	}
	if ip, err := netip.ParseAddr(host.Name); err == nil {
		if ip.Zone() != "" && !zoneName.MatchString(ip.Zone()) {
			return Host{}, "", fmt.Errorf("%q is not a valid network interface", ip.Zone())
		}
	} else if !hostName.MatchString(host.Name) {
		return Host{}, "", fmt.Errorf("%q is not a valid host name or IP address", host.Name)
	}
	switch text := u.Port(); {
	case text != "":
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return Host{}, "", fmt.Errorf("port %s is not between 1 and 65535", text)
		}
		host.Port = uint16(number)
	case strings.HasSuffix(u.Host, ":"):
		return Host{}, "", errors.New("the port is missing after the colon")
	}
	if u.Path == "/" {
		return host, "", nil
	}
	return host, u.Path, nil
}

// withoutPassword returns an address with any password redacted, however malformed the rest is.
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

// String returns the address, without the default port. [ParseHost] parses it to the same host.
func (h Host) String() string {
	u := url.URL{Host: h.Name}
	if strings.Contains(h.Name, ":") {
		u.Host = "[" + h.Name + "]"
	}
	if h.Port != DefaultPort {
		u.Host = h.HostPort()
	}
	if h.User != "" {
		u.User = url.User(h.User)
	}
	return strings.TrimPrefix(u.String(), "//")
}

// HostPort returns the host and port in the form that package net dials.
func (h Host) HostPort() string {
	return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
}
