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

// DefaultPort is where an SSH server listens unless told otherwise.
const DefaultPort = 22

// Host is the address of an SSH server. Hosts are made by [ParseHost], and compare with ==.
type Host struct {
	// User logs in; empty for the one of the credentials.
	User string
	// Name is a name or an IP address, without brackets.
	Name string
	// Port is never 0.
	Port uint16
}

// ParseHost returns the host at an address, [user@]host[:port].
func ParseHost(address string) (Host, error) {
	return ParseAddress("SSH host", address, allowed, parseHost)
}

// allowed is the end of every error about the address of a host.
const allowed = "write [user@]host[:port]"

func parseHost(address string) (Host, error) {
	host, path, err := ParseURL("ssh://"+address, DefaultPort)
	if err == nil && path != "" {
		err = errors.New("it has no path")
	}
	return host, err
}

// ParseAddress returns what a function makes of an address. Its errors say what the address is of, name it, without a
// password that may be in it, and end with what is allowed.
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

// errPassword is why an address with a password is none.
var errPassword = errors.New("a password can't be part of an address; keys and certificates belong into the provider's configuration")

// These leave out nothing in use, and nothing that a shell or ssh would understand as more than a name.
var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?$`)
	zoneName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
)

// ParseURL takes scheme://[user@]host[:port][/path] apart, with this port where it has none; a path / is none, too. Its
// errors are for [ParseAddress] to complete.
func ParseURL(address string, port uint16) (host Host, path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		// The error of package url repeats the address.
		return Host{}, "", errors.Unwrap(err)
	}
	host = Host{User: u.User.Username(), Name: u.Hostname(), Port: port}
	if _, given := u.User.Password(); given {
		return Host{}, "", errPassword
	}
	if u.User != nil && !userName.MatchString(host.User) {
		return Host{}, "", fmt.Errorf("%q is no user name", host.User)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(address, "#") {
		return Host{}, "", errors.New("it has no query and no fragment")
	}
	if ip, err := netip.ParseAddr(host.Name); err == nil {
		if ip.Zone() != "" && !zoneName.MatchString(ip.Zone()) {
			return Host{}, "", fmt.Errorf("%q is no network interface", ip.Zone())
		}
	} else if !hostName.MatchString(host.Name) {
		return Host{}, "", fmt.Errorf("%q is no host name and no IP address", host.Name)
	}
	switch text := u.Port(); {
	case text != "":
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return Host{}, "", fmt.Errorf("port %s is not one of 1 to 65535", text)
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

// String returns the address, without the default port. [ParseHost] returns the same host for it.
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

// HostPort returns the host and port as package net dials them.
func (h Host) HostPort() string {
	return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
}
