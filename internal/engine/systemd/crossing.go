package systemd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// crossingPatience bounds how long the SSH server of one host, which may be busy, may take to answer another host: as
// long as to answer the provider.
const crossingPatience = sshclient.UsualLimit

// checkCrossings adds a problem for each host that the controller could not reach from the store host, but only a
// warning for a host of the cluster with unchanged addresses, as it may be back soon. If the store host's SSH server
// forbids forwarding, nothing is reported.
func (e *Engine) checkCrossings(
	ctx context.Context, problems *domain.Problems, cluster domain.Cluster, found map[string]facts.Facts,
) {
	store := managerOf(cluster)
	if _, looked := found[store]; !looked {
		return
	}
	from, err := e.reach.client(cluster.Hosts[store].Address)
	if err != nil {
		return
	}
	others := maps.Clone(found)
	delete(others, store)
	_, failed := onAll(others, func(name string) (string, error) {
		return "", answersFrom(ctx, from.ssh, e.crossing(cluster.Hosts[name]))
	})
	if len(failed) == 0 || ctx.Err() != nil {
		return
	}
	p, _ := e.place(ctx) // without it, no host counts as in the cluster
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if errors.Is(failed[name], sshclient.ErrPermissionDenied) {
			continue
		}
		host, at := cluster.Hosts[name], domain.Path{"hosts", domain.Key(name), "advertise_address"}
		if host.AdvertiseAddress == "" {
			at = domain.Path{"hosts", domain.Key(name), "address"}
		}
		say := problems.Add
		if known, joined := p.hosts[name]; joined && known.Address == host.Address &&
			known.AdvertiseAddress == host.AdvertiseAddress {
			say = problems.Warn
		}
		say(at, "Controller can't reach host", "the controller runs on host %q, and can't reach host %q at %s: %v. "+
			"Set advertise_address to an address at which the hosts reach each other, with a port if its SSH port "+
			"differs from that in address",
			store, name, e.crossing(host), failed[name])
	}
}

// crossing returns the address of a host's SSH server as the controller dials it.
func (e *Engine) crossing(host domain.Host) string {
	login := e.loginFor(host)
	return login[strings.LastIndex(login, "@")+1:]
}

// answersFrom returns an error unless an SSH server answers at an address, as seen from a host.
func answersFrom(ctx context.Context, from *sshclient.Client, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, crossingPatience, fmt.Errorf("no answer within %s", crossingPatience))
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", address)
	if err == nil {
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		var greeting string
		greeting, err = bufio.NewReader(io.LimitReader(conn, mostGreeting)).ReadString('\n')
		if err == nil && !strings.HasPrefix(greeting, "SSH-") {
			return fmt.Errorf("not an SSH server: it answered %.40q", greeting)
		}
	}
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); ok && refused.Reason != ssh.Prohibited {
		return errors.New(refused.Message)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// mostGreeting bounds how much of an SSH server's greeting is read.
const mostGreeting = 256
