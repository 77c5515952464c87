package daemons

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// namedEngine is an Engine that reports its machine's name.
type namedEngine struct {
	client.APIClient

	name string
}

func (e namedEngine) Info(context.Context) (system.Info, error) {
	if e.name == "" {
		return system.Info{}, errors.ErrUnsupported
	}
	return system.Info{Name: e.name}, nil
}

func TestSocketOfHost(t *testing.T) {
	here, err := os.Hostname()
	swarmtest.Must(t, err)
	for name, test := range map[string]struct {
		host  domain.Host
		found map[string]string
		on    string // the Engine's machine; "" if it doesn't answer
		want  string
	}{
		"its attribute": {
			host: domain.Host{Address: "ssh://gpu1/run/other.sock", Socket: "/run/own.sock"}, want: "/run/own.sock",
		},
		"the path in its address": {
			host: domain.Host{Address: "ssh://gpu1/run/other.sock"}, want: "/run/other.sock",
		},
		"where docker finds it there": {
			host:  domain.Host{Address: "ssh://gpu1"},
			found: map[string]string{"ssh://gpu1": "/run/user/1000/docker.sock"}, on: "gpu1",
			want: "/run/user/1000/docker.sock",
		},
		"over SSH": {host: domain.Host{Address: "ssh://gpu1"}, on: "gpu1", want: endpoint.DefaultSocket},
		"over TLS": {host: domain.Host{Address: "tcp://gpu1"}, on: "gpu1", want: endpoint.DefaultSocket},
		"on this machine": {
			host: domain.Host{Address: "unix:///run/user/1000/docker.sock"}, on: here,
			want: "/run/user/1000/docker.sock",
		},
		"through a tunnel": {
			host: domain.Host{Address: "unix:///tmp/tunnel.sock"}, on: "gpu1", want: endpoint.DefaultSocket,
		},
		"at the default": {
			host: domain.Host{Address: "unix://" + endpoint.DefaultSocket}, on: "gpu1", want: endpoint.DefaultSocket,
		},
		"without an answer": {host: domain.Host{Address: "ssh://gpu1"}},
	} {
		got := DeclaredSocket(test.host)
		if got == "" {
			got = foundSocket(t.Context(), test.host.Address, test.found[test.host.Address], namedEngine{name: test.on})
		}
		if got != test.want {
			t.Errorf("%s: it is at %q, want %q", name, got, test.want)
		}
	}
}

func TestChooseSocket(t *testing.T) {
	const own, other = "/run/own.sock", "/run/other.sock"
	for name, test := range map[string]struct {
		sockets   map[string]string
		want      string
		elsewhere []string
	}{
		"no manager": {want: endpoint.DefaultSocket},
		"one":        {sockets: map[string]string{"a": own}, want: own},
		"most of them": {
			sockets: map[string]string{"a": own, "b": other, "c": own}, want: own, elsewhere: []string{"b"},
		},
		"each another one": {
			sockets: map[string]string{"a": own, "b": other, "c": endpoint.DefaultSocket}, want: endpoint.DefaultSocket,
			elsewhere: []string{"a", "b"},
		},
		"none the default": {sockets: map[string]string{"a": own, "b": other}, want: other, elsewhere: []string{"a"}},
	} {
		got, elsewhere := ChooseSocket(test.sockets)
		if diff := cmp.Diff(test.elsewhere, elsewhere); got != test.want || diff != "" {
			t.Errorf("%s: %s, want %s; elsewhere (-want +got):\n%s", name, got, test.want, diff)
		}
	}
}
