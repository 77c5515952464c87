package systemd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// Forget gives up a host that is gone for good: its members are placed elsewhere, and it leaves the cluster without
// being cleaned. If it comes back before that, it is no longer forgotten.
func (e *Engine) Forget(ctx context.Context, name string) error {
	p, err := e.writable(ctx)
	if err == nil {
		err = p.unread
	}
	if err != nil {
		return err
	}
	if _, known := p.hosts[name]; !known {
		return fmt.Errorf("cluster %q has no host %q", e.ref.Name, name)
	}
	if _, err := askHost(ctx, e, p, name, relay.ReadLedger, none); !errors.Is(err, engine.ErrUnreachable) {
		return fmt.Errorf("host %s can be reached: remove it from hosts in the configuration and run terraform apply, "+
			"which also cleans it up", name)
	}
	return e.amendAbsence(ctx, func(found *absence) bool {
		if _, noticed := found.Since[name]; !noticed {
			found.Since = with(found.Since, name, time.Now().UTC())
		}
		found.Lost, found.Forgotten = with(found.Lost, name, true), with(found.Forgotten, name, true)
		return true
	})
}

// with adds an entry to a map, and creates the map if it is nil.
func with[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// clean removes everything of ours from hosts that leave the cluster. A host that can't be reached is an error, unless
// it was forgotten.
func (e *Engine) clean(ctx context.Context, p place, leaving map[string]domain.Host) error {
	_, failed := onAll(leaving, func(name string) (relay.None, error) {
		_, err := askHost(ctx, e, p, name, relay.Leave, none)
		if errors.Is(err, engine.ErrUnreachable) {
			err = fmt.Errorf("removing cluster %q from it: %w; try again when the host is back, or, if it is "+
				"gone for good, forget it: terraform-provider-trainyard forget --engine %s --cluster %s "+
				"--endpoint %s --host %s", e.ref.Name, err, Name, e.ref.Name, p.hosts[p.ledger.Host].Address, name)
		}
		return none, err
	})
	return e.besidesGone(ctx, failed)
}

// besidesGone returns the errors of hosts except those from which nothing has to be removed any more: they have nothing
// of the cluster, or were forgotten and can't be reached.
func (e *Engine) besidesGone(ctx context.Context, failed map[string]error) error {
	if len(failed) == 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	found, _, err := e.absence(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(failed, func(name string, err error) bool {
		return errors.Is(err, relay.ErrOutside) || errors.Is(err, engine.ErrUnreachable) && found.Forgotten[name]
	})
	return joined(failed)
}
