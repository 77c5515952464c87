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
	contents, err := e.takeStore(ctx, p, own.Host, p.hosts, nil)
	if err != nil {
		return "", "", err
	}
	err = errors.Join(e.inform(ctx, contents, p.hosts), e.StartController(ctx))
	return p.ledger.Store, own.Host, err
}

// moves bounds how often the content is copied again because it changed meanwhile.
const moves = 10

// moveStore moves the store to a host, and informs the other reachable hosts. The former store host accepts changes
// until it steps down, which it does only once the new one has all of them.
func (e *Engine) moveStore(ctx context.Context, p place, to string, hosts map[string]domain.Host) error {
	var moved relay.Contents
	for attempt := range moves {
		var over *relay.Ledger
		if attempt > 0 {
			over = &moved.Ledger
		}
		contents, err := e.takeStore(ctx, p, to, hosts, over)
		if err != nil {
			return err
		}
		moved = contents
		copied := contents.Ledger
		copied.Epoch-- // as it was read
		contents.Over = &copied
		_, err = relay.Restore.Ask(ctx, p.store.Client, e.ref.Name, contents)
		if err == nil || away(err) { // it is informed when it is back
			return e.inform(ctx, moved, hosts)
		}
		if !errors.Is(err, relay.ErrChanged) {
			return ofHost(p.ledger.Store, err)
		}
	}
	return errors.Join(e.inform(ctx, moved, hosts), fmt.Errorf("host %s has the store of cluster %q now, but lacks "+
		"the last changes: more were made each time that it had been copied", to, e.ref.Name))
}

// takeStore makes a host the store host, and returns what it stores. If it became that before, over is what its ledger
// was then: what it was asked to store since is not replaced.
func (e *Engine) takeStore(
	ctx context.Context, p place, to string, hosts map[string]domain.Host, over *relay.Ledger,
) (relay.Contents, error) {
	contents, err := relay.Dump.Ask(ctx, p.store.Client, e.ref.Name, none)
	if err != nil {
		return contents, err
	}
	contents.Ledger.Store = to
	contents.Ledger.Epoch++
	contents.Over = over
	if _, err := askHost(ctx, e, place{hosts: hosts}, to, relay.Restore, contents); err != nil {
		return contents, ofHost(to, err)
	}
	contents.Over = nil
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
