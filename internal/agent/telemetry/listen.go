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
var ErrNoAddress = errors.New("it is not clear at which address to listen")

// ListenWithin listens at an address such as "127.0.0.1:9465". A range instead of a host, as in "10.0.0.0/24:9465",
// stands for this host's address in it: a container then listens on that one of its networks. Of the addresses of a
// name, the one counts at which others reach this host, as the name of a host often leads to the loopback there, too.
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

// ownAddress returns the address of a name that is this host's, and not of the loopback; the zero address where there
// is none.
func ownAddress(name string) netip.Addr {
	resolved, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", name)
	if err != nil {
		return netip.Addr{} // who listens at the name will say so
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	return firstOwn(resolved, all)
}

// firstOwn returns the first of some addresses that is among those of this host, and not of the loopback.
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
		return netip.Addr{}, fmt.Errorf("%w: of its addresses %v, these are in %s: %v", ErrNoAddress, all, within, found)
	}
	return found[0], nil
}
