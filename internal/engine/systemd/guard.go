package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// guardEvery is the interval at which the controller checks the hosts.
const guardEvery = 5 * time.Second

// Guard maintains the hosts: it brings copies of the store up to date, records which hosts are lost, and ends members
// on returned hosts that are elsewhere by then.
func (e *Engine) Guard(ctx context.Context) error {
	noticed := map[string]time.Time{}
	for ctx.Err() == nil {
		_ = e.guard(ctx, noticed) // it is tried again
		select {
		case <-ctx.Done():
		case <-time.After(guardEvery):
		}
	}
	return nil
}

// guard checks the hosts once. It keeps when this controller first noticed that each unreachable host is so.
func (e *Engine) guard(ctx context.Context, noticed map[string]time.Time) error {
	p, err := e.writable(ctx)
	if err == nil {
		err = p.unread
	}
	if err != nil {
		return err
	}
	if self, err := e.reach.introduced(); err != nil || self.Self != p.ledger.Store {
		clear(noticed) // up to another controller, if another host has become the store host
		return err
	}
	// What is found was started before the ledgers are read, which tell whether another store host may have done that.
	found, unobserved := askAllSoon(ctx, e, p, relay.Observe, "")
	ledgers, failed := askAllSoon(ctx, e, p, relay.ReadLedger, none)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	maps.Copy(failed, unobserved)
	for _, ledger := range ledgers {
		if ledger.Epoch > p.ledger.Epoch {
			e.reach.store.Store(nil) // the next call looks for the new one
			return fmt.Errorf("host %s: %w: host %s took its place", p.ledger.Host, relay.ErrDeposed, ledger.Store)
		}
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
	maps.DeleteFunc(found, func(name string, _ []domain.Observed) bool {
		_, known := ledgers[name]
		return !known
	})
	if err := e.note(ctx, found); err != nil {
		return err
	}
	groups, err := e.placedOf(ctx, "")
	if err != nil {
		return err
	}
	stray := strays(found, groups)
	return errors.Join(e.fence(ctx, p, stray), e.mark(ctx, p, unreachedFor(failed, noticed), stray))
}

// soon bounds calls that a live host answers quickly.
const soon = 3 * guardEvery

// askAllSoon is askAll for such calls. Hosts that time out don't use up the others' time for the next call.
func askAllSoon[Q, A any](
	ctx context.Context, e *Engine, p place, call relay.Call[Q, A], question Q,
) (map[string]A, map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	return askAll(ctx, e, p, call, question)
}

// unreachedFor returns for how long this controller has not reached each host that failed to answer, whatever steps the
// clock has made.
func unreachedFor(failed map[string]error, noticed map[string]time.Time) map[string]time.Duration {
	maps.DeleteFunc(noticed, func(name string, _ time.Time) bool { return failed[name] == nil })
	unreached := make(map[string]time.Duration, len(failed))
	for name := range failed {
		if _, before := noticed[name]; !before {
			noticed[name] = time.Now()
		}
		unreached[name] = time.Since(noticed[name])
	}
	return unreached
}

// mark stores which hosts can't be reached. One that was lost is not back before it has no strays left, so that nobody
// finds members there that are elsewhere.
func (e *Engine) mark(
	ctx context.Context, p place, unreached map[string]time.Duration, strays map[string][]string,
) error {
	before, item, err := e.absence(ctx)
	if err != nil {
		return err
	}
	next := before.next(p.hosts, unreached, time.Now().UTC())
	for name := range strays {
		next.keepLost(name, before)
	}
	if next.equal(before) {
		return nil
	}
	if item.Data, err = json.Marshal(next); err != nil {
		return err
	}
	_, err = e.Put(ctx, item)
	if errors.Is(err, engine.ErrConflict) {
		return nil // another controller stored it
	}
	return err
}

// fence makes hosts end strays, members that are elsewhere by now, or removed: their host may have been away for a
// moment that only the mover or remover noticed. A start is recorded before it takes effect, so that members started
// meanwhile are not affected. The ends are not awaited: they take up to the members' grace periods.
func (e *Engine) fence(ctx context.Context, p place, strays map[string][]string) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	return onHosts(p, strays, func(name string, members []string) error {
		_, err := askHost(ctx, e, p, name, relay.Remove, members)
		return err
	})
}
