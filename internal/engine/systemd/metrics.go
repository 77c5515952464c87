package systemd

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// checkMetrics adds problems that would keep residents from serving Prometheus: a port in use by somebody else, and an
// address that leads to a host without being its own. Hosts that serve there already are not checked again.
func (e *Engine) checkMetrics(
	ctx context.Context, problems *domain.Problems, cluster domain.Cluster, found map[string]facts.Facts,
) {
	if cluster.Agent.MetricsPort == 0 {
		return
	}
	stored, _ := engine.Cluster(ctx, e) // without it, no host counts as in the cluster
	for _, name := range slices.Sorted(maps.Keys(found)) {
		host, f := cluster.Hosts[name], found[name]
		before, joined := stored.Spec.Hosts[name]
		var own domain.Agent
		if joined {
			own = stored.Spec.Agent
		}
		listening := make([]int, len(f.Ports))
		for i, port := range f.Ports {
			listening[i] = int(port)
		}
		cluster.Agent.CheckMetricsPorts(problems, name, listening, own)
		if own.MetricsPort == 0 || before.MemberAddress() != host.MemberAddress() {
			e.checkOwnAddress(ctx, problems, name, host, f)
		}
	}
}

// checkOwnAddress adds a problem if a host can't listen at the address by which the others reach it.
func (e *Engine) checkOwnAddress(
	ctx context.Context, problems *domain.Problems, name string, host domain.Host, f facts.Facts,
) {
	address := host.MemberAddress()
	leads, which := []string{address}, "is not one of its own"
	if given, err := netip.ParseAddr(address); err == nil && given.IsLoopback() {
		return // it is the only host
	} else if err != nil {
		if leads, err = e.resolveOn(ctx, host, address); err != nil {
			return // unknown if the host can't be asked
		}
		which = "resolves to " + orNone(leads) + " there"
	}
	if slices.ContainsFunc(leads, func(address string) bool { return slices.Contains(f.Addresses, address) }) {
		return
	}
	at := domain.Path{"hosts", domain.Key(name), "advertise_address"}
	if host.AdvertiseAddress == "" {
		at = domain.Path{"hosts", domain.Key(name), "address"}
	}
	problems.Add(at, "No address for Prometheus",
		"host %q can't answer Prometheus at %s, which %s; its own addresses are %s. "+
			"Set advertise_address to the one at which the hosts reach each other, or omit agent.metrics_port",
		name,
		address, which, orNone(f.Addresses))
}

// resolveOn returns the addresses to which a name resolves on a host.
func (e *Engine) resolveOn(ctx context.Context, host domain.Host, name string) ([]string, error) {
	h, err := e.reach.client(host.Address)
	if err != nil {
		return nil, err
	}
	output, err := h.ssh.Run(ctx, "getent ahosts "+sshclient.Quote(name))
	if _, unknown := errors.AsType[*ssh.ExitError](err); unknown {
		return nil, nil
	}
	return resolved(string(output)), err
}

// resolved returns the addresses in the output of getent, which has a line for each address and socket type.
func resolved(output string) (addresses []string) {
	for line := range strings.Lines(output) {
		if fields := strings.Fields(line); len(fields) > 0 && !slices.Contains(addresses, fields[0]) {
			addresses = append(addresses, fields[0])
		}
	}
	return addresses
}

// orNone joins addresses for a message, or returns "none" without any.
func orNone(addresses []string) string {
	if len(addresses) == 0 {
		return "none"
	}
	return domain.Enumerate(addresses)
}
