package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// guardEvery is how often the controller looks after the hosts.
const guardEvery = 5 * time.Second

// Guard looks after the hosts: it brings copies of the store up to date, says which hosts are lost, and ends on those
// that are back what is elsewhere by then.
func (e *Engine) Guard(ctx context.Context) error {
	began := time.Now()
	for ctx.Err() == nil {
		_ = e.guard(ctx, began) // it is tried again
		select {
		case <-ctx.Done():
		case <-time.After(guardEvery):
		}
	}
	return nil
}

func (e *Engine) guard(ctx context.Context, began time.Time) error {
	p, err := e.writable(ctx)
	if err == nil {
		err = p.unread
	}
	if err != nil {
		return err
	}
	if self, err := e.reach.introduced(); err != nil || self.Self != p.ledger.Store {
		return err // another controller's, where another host has become the store
	}
	ledgers, failed := askAllSoon(ctx, e, p, relay.ReadLedger, none)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for name, ledger := range ledgers {
		if p.ledger.Newer(ledger) {
			err := e.restore(ctx, p, name)
			if err == nil && ledger.Store != p.ledger.Store { // it may have a controller
				_, err = askHost(ctx, e, p, name, relay.StartResidents, relay.Orders{})
			}
			if err != nil {
				failed[name] = err
			}
		}
	}
	found, unobserved := askAllSoon(ctx, e, p, relay.Observe, "")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	maps.Copy(failed, unobserved)
	if err := e.note(ctx, found); err != nil {
		return err
	}
	// Before hosts count as back: nobody is to find members there that are elsewhere.
	if err := e.fence(ctx, p, found); err != nil {
		return err
	}
	return e.mark(ctx, p, failed, began)
}

// askAllSoon is askAll for answers that a host that is there gives soon. Who was not asked in time does not cost the
// others the time for the next question.
func askAllSoon[Q, A any](
	ctx context.Context, e *Engine, p place, call relay.Call[Q, A], question Q,
) (map[string]A, map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, 3*guardEvery)
	defer cancel()
	return askAll(ctx, e, p, call, question)
}

// mark stores which hosts can't be reached.
func (e *Engine) mark(ctx context.Context, p place, failed map[string]error, began time.Time) error {
	before, item, err := e.absence(ctx)
	if err != nil {
		return err
	}
	unreached := map[string]bool{}
	for name := range failed {
		unreached[name] = true
	}
	next := before.next(p.hosts, unreached, began, time.Now().UTC())
	if next.equal(before) {
		return nil
	}
	if item.Data, err = json.Marshal(next); err != nil {
		return err
	}
	_, err = e.Put(ctx, item)
	if errors.Is(err, engine.ErrConflict) {
		return nil // another controller's
	}
	return err
}

// fence ends what was found on hosts and is elsewhere by now, or nowhere: a host may have been away for a moment that
// nobody noticed but who moved or removed its members. What is started meanwhile is known before it is in force.
func (e *Engine) fence(ctx context.Context, p place, found map[string][]domain.Observed) error {
	groups, err := e.placedOf(ctx, "")
	if err != nil {
		return err
	}
	return onHosts(p, strays(found, groups), func(name string, members []string) error {
		_, err := askHost(ctx, e, p, name, relay.Evict, members)
		return err
	})
}
