package systemd

import (
	"context"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Promote makes the host at the engine's endpoint take the place of a store host that is down. It gets the content of
// the newest reachable copy: everything that was reported as done and copied.
func (e *Engine) Promote(ctx context.Context) (from, to string, err error) {
	p, err := e.search(ctx)
	if err != nil {
		return "", "", err
	}
	if p.lost == nil {
		return "", "", fmt.Errorf("host %s has the store of cluster %q, and can be reached: to move the store, "+
			"set role = \"manager\" on another host in the configuration, and run terraform apply",
			p.ledger.Store, e.ref.Name)
	}
	h, err := e.reach.client(e.ref.Endpoint)
	if err != nil {
		return "", "", err
	}
	own, err := relay.ReadLedger.Ask(ctx, h.Client, e.ref.Name, none)
	if err != nil {
		return "", "", err
	}
	if own.Host == p.ledger.Store {
		return "", "", fmt.Errorf("host %s no longer has the store of cluster %q: set --endpoint to another host",
			own.Host, e.ref.Name)
	}
	if err := e.moveStore(ctx, p, own.Host, p.hosts); err != nil {
		return "", "", err
	}
	return p.ledger.Store, own.Host, e.StartController(ctx)
}

// moveStore moves the store to a host, and informs the other reachable hosts.
func (e *Engine) moveStore(ctx context.Context, p place, to string, hosts map[string]domain.Host) error {
	contents, err := relay.Dump.Ask(ctx, p.store.Client, e.ref.Name, none)
	if err != nil {
		return err
	}
	contents.Ledger.Store = to
	contents.Ledger.Epoch++
	at := place{hosts: hosts}
	if _, err := askHost(ctx, e, at, to, relay.Restore, contents); err != nil {
		return fmt.Errorf("host %s: %w", to, err)
	}
	e.reach.store.Store(nil)
	_, failed := onAll(hosts, func(name string) (relay.None, error) {
		if name == to {
			return none, nil
		}
		return askHost(ctx, e, at, name, relay.Restore, contents)
	})
	return besidesAway(failed) // the controller informs those when they are back
}
