package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Promote makes the host at the engine's endpoint take the place of a store host that is down. It gets the content of
// the newest reachable copy: everything that was reported as done and copied. Where it already has that place, it
// starts the controller again.
func (e *Engine) Promote(ctx context.Context) (from, to string, err error) {
	p, err := e.search(ctx)
	if err != nil {
		return "", "", err
	}
	h, err := e.reach.client(e.ref.Endpoint)
	if err != nil {
		return "", "", err
	}
	own, err := relay.ReadLedger.Ask(ctx, h.Client, e.ref.Name, none)
	switch holds := err == nil && own.Host == p.ledger.Store; {
	case p.lost == nil && holds: // perhaps since an earlier attempt, which failed to start the controller
		return own.Host, own.Host, e.StartController(ctx)
	case p.lost == nil:
		return "", "", fmt.Errorf("host %s has the store of cluster %q, and can be reached: to move the store, "+
			"set role = \"manager\" on another host in the configuration, and run terraform apply",
			p.ledger.Store, e.ref.Name)
	case errors.Is(err, engine.ErrUnreachable): // it names the host
		return "", "", err
	case err != nil:
		return "", "", fmt.Errorf("%s: %w", h.Name(), err)
	case holds:
		return "", "", fmt.Errorf("host %s no longer has the store of cluster %q: set --endpoint to another host",
			own.Host, e.ref.Name)
	}
	contents, err := e.takeStore(ctx, p, own.Host, p.hosts)
	if err != nil {
		return "", "", err
	}
	err = errors.Join(e.inform(ctx, contents, p.hosts), e.StartController(ctx))
	return p.ledger.Store, own.Host, err
}

// moveStore moves the store to a host, and informs the other reachable hosts.
func (e *Engine) moveStore(ctx context.Context, p place, to string, hosts map[string]domain.Host) error {
	contents, err := e.takeStore(ctx, p, to, hosts)
	if err != nil {
		return err
	}
	return e.inform(ctx, contents, hosts)
}

// takeStore makes a host the store host, and returns what it stores.
func (e *Engine) takeStore(
	ctx context.Context, p place, to string, hosts map[string]domain.Host,
) (relay.Contents, error) {
	contents, err := relay.Dump.Ask(ctx, p.store.Client, e.ref.Name, none)
	if err != nil {
		return contents, err
	}
	contents.Ledger.Store = to
	contents.Ledger.Epoch++
	if _, err := askHost(ctx, e, place{hosts: hosts}, to, relay.Restore, contents); err != nil {
		return contents, ofHost(to, err)
	}
	e.reach.store.Store(nil)
	return contents, nil
}

// inform makes the other reachable hosts copies of a new store host.
func (e *Engine) inform(ctx context.Context, contents relay.Contents, hosts map[string]domain.Host) error {
	_, failed := onAll(hosts, func(name string) (relay.None, error) {
		if name == contents.Ledger.Store {
			return none, nil
		}
		return askHost(ctx, e, place{hosts: hosts}, name, relay.Restore, contents)
	})
	return besidesAway(failed) // the controller informs those when they are back
}
