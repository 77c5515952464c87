package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Inventory returns the hosts as declared, with their busy ports. An unreachable host takes no members, and if the
// controller has given it up, its own can't stay.
func (e *Engine) Inventory(ctx context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	inventory := engine.Inventory{
		Hosts: cluster.Hosts, BusyPorts: map[string][]int{}, Closed: map[string]string{}, Lost: map[string]string{},
	}
	ports, failed := onAll(cluster.Hosts, func(name string) ([]int, error) {
		return askHost(ctx, e, place{hosts: cluster.Hosts}, name, relay.Ports, none)
	})
	if ctx.Err() != nil {
		return inventory, context.Cause(ctx)
	}
	absence, _, err := e.absence(ctx)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return inventory, err
	}
	lost := maps.Clone(cluster.Hosts)
	maps.DeleteFunc(lost, func(name string, _ domain.Host) bool { return !absence.Lost[name] })
	if e.reach.peers == nil { // in an apply, not in the controller
		for _, name := range e.outside(ctx, lost) {
			delete(lost, name) // it is there, and about to be set up again
		}
	}
	for name := range lost {
		inventory.Closed[name] = fmt.Sprintf("host %s is lost: unreachable from the controller since %s", name,
			absence.Since[name].Format(time.DateTime))
		inventory.Lost[name] = inventory.Closed[name]
	}
	for name, busy := range ports {
		inventory.BusyPorts[cluster.Hosts[name].MemberAddress()] = append(busy, cluster.Agent.MetricsPorts()...)
	}
	for name, err := range failed {
		switch {
		case errors.Is(err, relay.ErrOutside): // it is about to join the cluster, or to be set up again
		case errors.Is(err, engine.ErrUnreachable):
			inventory.Closed[name] = cmp.Or(inventory.Closed[name], fmt.Sprintf("host %s can't be reached", name))
		default:
			return inventory, ofHost(name, err)
		}
	}
	return inventory, nil
}

// Preflight asks each host about the specifications for it. For a host that has yet to join or to be set up again, only
// its facts are known.
func (e *Engine) Preflight(ctx context.Context, specs []domain.MemberSpec) (domain.Problems, error) {
	byHost := map[string][]domain.MemberSpec{}
	for _, spec := range specs {
		byHost[spec.Host] = append(byHost[spec.Host], spec)
	}
	p, err := e.whole(ctx)
	if err := unlessGone(err); err != nil {
		return nil, err
	}
	found, failed := onAll(byHost, func(name string) (relay.Findings, error) {
		findings, err := relay.Findings(nil), relay.ErrOutside
		if _, known := p.hosts[name]; known {
			findings, err = askHost(ctx, e, p, name, relay.Preflight, byHost[name])
		}
		if errors.Is(err, relay.ErrOutside) {
			return relay.FindingsOf(e.seen.checkImages(name, byHost[name])), nil
		}
		return findings, err
	})
	var problems domain.Problems
	for _, name := range slices.Sorted(maps.Keys(byHost)) {
		problems = append(problems, e.checkGPUs(name, byHost[name])...)
		problems = append(problems, found[name].Problems()...)
	}
	return problems, besidesAway(failed)
}

// Survey returns the cluster as stored, with the role of manager on the host that currently has the store. A host that
// has to be set up again offers nothing to members, which is a difference that an apply removes.
func (e *Engine) Survey(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	p, err := e.place(ctx)
	if err != nil {
		return cluster, err
	}
	cluster.Hosts = maps.Clone(cluster.Hosts)
	for name, host := range cluster.Hosts {
		switch {
		case name == p.ledger.Store:
			host.Role = domain.HostManager
		case host.Role == domain.HostManager:
			host.Role = domain.HostWorker
		}
		cluster.Hosts[name] = host
	}
	for _, name := range e.outside(ctx, p.hosts) {
		if host, stored := cluster.Hosts[name]; stored {
			host.Capacity = domain.Capacity{}
			cluster.Hosts[name] = host
		}
	}
	return cluster, context.Cause(ctx)
}

// Dissolve ends everything that runs on the hosts, and removes everything of the cluster there. The store host is last,
// so that the others can still be found after a crash.
func (e *Engine) Dissolve(ctx context.Context) error {
	p, err := e.writable(ctx)
	if err != nil {
		return unlessGone(err)
	}
	if err := e.StopController(ctx); err != nil {
		return err
	}
	others := map[string]domain.Host{}
	for name, host := range p.hosts {
		if name != p.ledger.Store {
			others[name] = host
		}
	}
	if err := e.clean(ctx, p, others); err != nil {
		return err
	}
	_, err = relay.Leave.Ask(ctx, p.store.Client, e.ref.Name, none)
	return err
}
