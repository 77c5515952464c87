package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// ErrNoAddress is returned if this host has no address in a range, or several.
var ErrNoAddress = errors.New("can't determine the address to listen on")

// ListenWithin listens at an address such as "127.0.0.1:9465". A range instead of a host, as in "10.0.0.0/24:9465",
// stands for this host's address in it, which selects one of a container's networks. A name stands for the address at
// which others reach this host, as a host's name often resolves to the loopback too.
func ListenWithin(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if within, err := netip.ParsePrefix(host); err == nil {
		all, err := net.InterfaceAddrs()
		if err != nil {
			return nil, err
		}
		own, err := addressWithin(within, all)
		if err != nil {
			return nil, err
		}
		host = own.String()
	} else if _, err := netip.ParseAddr(host); err != nil && host != "" {
		if own := ownAddress(host); own.IsValid() {
			host = own.String()
		}
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// ownAddress returns this host's non-loopback address among those of a name; the zero address if there is none.
func ownAddress(name string) netip.Addr {
	resolved, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", name)
	if err != nil {
		return netip.Addr{} // listening at the name will give the error
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	return firstOwn(resolved, all)
}

// firstOwn returns the first of some addresses that is a non-loopback address of this host.
func firstOwn(resolved []netip.Addr, all []net.Addr) netip.Addr {
	for _, address := range resolved {
		address = address.Unmap()
		isIt := func(own net.Addr) bool {
			prefix, err := netip.ParsePrefix(own.String())
			return err == nil && prefix.Addr() == address
		}
		if !address.IsLoopback() && slices.ContainsFunc(all, isIt) {
			return address
		}
	}
	return netip.Addr{}
}

// addressWithin returns this host's only address in a range.
func addressWithin(within netip.Prefix, all []net.Addr) (netip.Addr, error) {
	var found []netip.Addr
	for _, a := range all {
		own, err := netip.ParsePrefix(a.String())
		if err == nil && within.Contains(own.Addr()) && !slices.Contains(found, own.Addr()) {
			found = append(found, own.Addr())
		}
	}
	if len(found) != 1 {
		return netip.Addr{}, fmt.Errorf("%w: of the addresses %v, exactly one must be in %s, not %v",
			ErrNoAddress, all, within, found)
	}
	return found[0], nil
}
