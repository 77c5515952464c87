package systemd

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// outside returns the names of the hosts of the cluster that have nothing of it any more, and have to be set up again.
func (e *Engine) outside(ctx context.Context, hosts map[string]domain.Host) (names []string) {
	_, failed := askAll(ctx, e, place{hosts: hosts}, relay.ReadLedger, none)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if errors.Is(failed[name], relay.ErrOutside) {
			names = append(names, name)
		}
	}
	return names
}

// checkOutside adds a warning for each host that an apply will set up again. It can't do that for the store host, whose
// documents are gone: the copies on other hosts would count for less than its empty store.
func (e *Engine) checkOutside(ctx context.Context, problems *domain.Problems, hosts map[string]domain.Host) {
	const summary = "Host to be set up again"
	p, _ := e.place(ctx) // without it, no host is in the cluster
	for _, name := range e.outside(ctx, p.hosts) {
		at := domain.Path{"hosts", domain.Key(name), "address"}
		switch host, stays := hosts[name]; {
		case !stays || host.Address != p.hosts[name].Address:
		case name == p.ledger.Store:
			problems.Add(at, summary, "%v", e.lacksStore(p))
		default:
			problems.Warn(at, summary, "nothing of the cluster is left there, as after a reinstallation: the apply "+
				"sets host %q up again, and starts the members that were there", name)
		}
	}
}

// welcome withdraws what the controller has found out about hosts that were set up again, so that they take members at
// once.
func (e *Engine) welcome(ctx context.Context, joined map[string]relay.Credentials) error {
	return e.amendAbsence(ctx, func(found *absence) (changed bool) {
		for name, theirs := range joined {
			if _, away := found.Since[name]; away && theirs.Anew {
				changed = true
				delete(found.Since, name)
				delete(found.Lost, name)
				delete(found.Forgotten, name)
			}
		}
		return changed
	})
}
