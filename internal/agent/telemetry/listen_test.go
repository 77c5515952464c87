package telemetry

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestListenWithin(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1/32:0":    "127.0.0.1",
		"127.0.0.1:0":       "127.0.0.1",
		"localhost:0":       "127.0.0.1",
		"[2001:db8::/64]:0": "", // which is nobody's
		"10.0.0.0/33:0":     "",
		"127.0.0.0/8":       "",
	} {
		listener, err := ListenWithin(address)
		if err != nil {
			if want != "" || (address == "[2001:db8::/64]:0") != errors.Is(err, ErrNoAddress) {
				t.Errorf("%s: %v", address, err)
			}
			continue
		}
		if host, _, err := net.SplitHostPort(listener.Addr().String()); err != nil || host != want {
			t.Errorf("%s: it listens at %s (%v), want %q", address, listener.Addr(), err, want)
		}
		_ = listener.Close()
	}
}

func TestAddressWithin(t *testing.T) {
	var all []net.Addr
	for _, own := range []string{"127.0.0.1/8", "10.99.0.7/20", "172.18.0.3/16", "172.18.0.3/16", "10.7.0.1/16", "10.7.1.1/32", "::1/128", "fd00::7/64"} {
		ip, network, err := net.ParseCIDR(own)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	for within, want := range map[string]string{
		"10.99.0.0/20": "10.99.0.7", "172.18.0.0/16": "172.18.0.3", "fd00::/64": "fd00::7", "10.98.0.0/20": "", "10.7.0.0/16": "", "0.0.0.0/0": "",
	} {
		got, err := addressWithin(netip.MustParsePrefix(within), all)
		if (err == nil) != (want != "") || err == nil && got.String() != want || err != nil && !errors.Is(err, ErrNoAddress) {
			t.Errorf("%s: %s (%v), want %q", within, got, err, want)
		}
	}
}
