package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// checkKeepsStore adds a problem if the declared cluster would lose its store. A store host that is down is none, and
// reported elsewhere.
func (e *Engine) checkKeepsStore(
	ctx context.Context, problems *domain.Problems, cluster domain.Cluster, found map[string]facts.Facts,
) {
	exists := false
	for _, f := range found {
		exists = exists || slices.Contains(f.Clusters, e.ref.Name)
	}
	if !exists {
		return
	}
	p, err := e.place(ctx)
	if err != nil || p.lost != nil {
		return
	}
	if err := e.keepsStore(ctx, p, cluster); err != nil && !errors.Is(err, engine.ErrUnreachable) {
		problems.Add(domain.Path{"hosts"}, "Store host missing", "%v", err)
	}
}

// keepsStore returns an error unless the host that has the store is declared, at an address that leads to the store. A
// machine without it would get an empty one.
func (e *Engine) keepsStore(ctx context.Context, before place, cluster domain.Cluster) error {
	if before.cluster == nil {
		return nil // nothing was stored yet
	}
	name := before.ledger.Store
	declared, stays := cluster.Hosts[name]
	if stays {
		h, err := e.looks.at(e.reach.client(declared.Address))
		if err != nil {
			return err
		}
		ledger, err := relay.ReadLedger.Ask(ctx, h.Client, e.ref.Name, none)
		if err == nil && ledger.Host == name && ledger.Epoch == before.ledger.Epoch {
			e.reach.store.Store(h.now()) // perhaps at another address than before
			return nil
		}
		if errors.Is(err, engine.ErrUnreachable) || ctx.Err() != nil {
			return err
		}
	}
	switch {
	case before.lost != nil:
		return e.lacksStore(before)
	case !stays:
		return fmt.Errorf("host %s has the store of cluster %q: before you remove it, set role = \"manager\" on "+
			"another host, and run terraform apply", name, e.ref.Name)
	}
	return fmt.Errorf("host %s has the store of cluster %q, but its address leads to a machine without it: set it "+
		"back to %s; to move the store to another machine, add that as a host with role = \"manager\"",
		name, e.ref.Name, before.hosts[name].Address)
}

// dismiss cleans the machines that are not in the cluster any more: those of hosts that leave, and those of hosts that
// are another machine from now on. It comes before machines join, as one may be in the cluster under another name.
func (e *Engine) dismiss(
	ctx context.Context, before place, cluster domain.Cluster, found map[string]facts.Facts,
) error {
	gone, kept := map[string]domain.Host{}, map[string]bool{} // kept are machine IDs
	for name, host := range before.hosts {
		now, stays := cluster.Hosts[name]
		if !stays || now.Address != host.Address && host.ID != "" && host.ID != found[name].MachineID {
			gone[name] = host
		} else {
			kept[found[name].MachineID] = true
		}
	}
	there, _ := e.look(ctx, gone) // where nobody answers, cleaning says so
	return e.clean(ctx, before, leaving(gone, cluster.Hosts, kept, there))
}

// leaving returns which machines to clean, of hosts that are gone, given the machine IDs that stay and what was found
// at the former addresses. An address may lead to another machine by now: to one that stays under its name, or, if the
// host is another machine from now on, to anybody's. Otherwise it is the same machine with a new ID.
func leaving(
	gone, hosts map[string]domain.Host, kept map[string]bool, there map[string]facts.Facts,
) map[string]domain.Host {
	leaves := map[string]domain.Host{}
	for name, host := range gone {
		f, answers := there[name]
		_, replaced := hosts[name]
		if same := !answers || f.MachineID == host.ID; same || !replaced && !kept[f.MachineID] {
			leaves[name] = host
		}
	}
	return leaves
}
