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
		"[2001:db8::/64]:0": "", // nobody has that
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

// TestFirstOwn: loopback addresses that a host's own name resolves to are skipped, as others can't reach them.
func TestFirstOwn(t *testing.T) {
	all := networks(t, "127.0.0.1/8", "127.0.1.1/8", "10.0.0.7/24", "::1/128", "fd00::7/64")
	for name, test := range map[string]struct {
		resolved []string
		want     string
	}{
		"one":                 {[]string{"10.0.0.7"}, "10.0.0.7"},
		"Debian's, and one":   {[]string{"127.0.1.1", "10.0.0.7"}, "10.0.0.7"},
		"Debian's alone":      {[]string{"127.0.1.1"}, "invalid IP"},
		"another's, and one":  {[]string{"10.0.0.8", "fd00::7"}, "fd00::7"},
		"another's":           {[]string{"203.0.113.5"}, "invalid IP"},
		"one in another form": {[]string{"::ffff:10.0.0.7"}, "10.0.0.7"},
		"none":                {nil, "invalid IP"},
	} {
		var resolved []netip.Addr
		for _, address := range test.resolved {
			resolved = append(resolved, netip.MustParseAddr(address))
		}
		if got := firstOwn(resolved, all).String(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// networks are a host's addresses.
func networks(t *testing.T, addresses ...string) (all []net.Addr) {
	t.Helper()
	for _, own := range addresses {
		ip, network, err := net.ParseCIDR(own)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	return all
}

func TestAddressWithin(t *testing.T) {
	all := networks(t, "127.0.0.1/8", "10.99.0.7/20", "172.18.0.3/16", "172.18.0.3/16", "10.7.0.1/16", "10.7.1.1/32",
		"::1/128", "fd00::7/64")
	for within, want := range map[string]string{
		"10.99.0.0/20": "10.99.0.7", "172.18.0.0/16": "172.18.0.3", "fd00::/64": "fd00::7", "10.98.0.0/20": "",
		"10.7.0.0/16": "", "0.0.0.0/0": "",
	} {
		got, err := addressWithin(netip.MustParsePrefix(within), all)
		if (err == nil) != (want != "") || err == nil && got.String() != want ||
			err != nil && !errors.Is(err, ErrNoAddress) {
			t.Errorf("%s: %s (%v), want %q", within, got, err, want)
		}
	}
}
