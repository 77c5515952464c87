package domain

import (
	"net"
	"strings"
)

// sshScheme begins the address of a host that is reached over SSH.
const sshScheme = "ssh://"

// MemberAddress returns the address at which other members reach those on this host, if members share their host's
// address: the advertise address, or the host part of the address without user and port.
func (h Host) MemberAddress() string {
	address := h.AdvertiseAddress
	if address == "" {
		login, remote := strings.CutPrefix(h.Address, sshScheme)
		if !remote {
			return h.Address
		}
		address = strings.TrimSuffix(login[strings.LastIndex(login, "@")+1:], "/")
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}
