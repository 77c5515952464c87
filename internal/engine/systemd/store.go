package systemd

import (
	"bytes"
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

// copyOf reads the store's copy on one host.
type copyOf struct {
	*host
	cluster string
}

// Get returns an item.
func (c copyOf) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	item, err := relay.Get.Ask(ctx, c.Client, c.cluster, key)
	item.Key = key
	return item, err
}

// List returns the items of a kind.
func (c copyOf) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	items, err := relay.List.Ask(ctx, c.Client, c.cluster, kind)
	for i := range items {
		items[i].Kind = kind
	}
	return items, err
}

// Put is refused on copies.
func (copyOf) Put(context.Context, engine.Item) (engine.Item, error) {
	return engine.Item{}, relay.ErrDeposed
}

// Delete is refused on copies.
func (copyOf) Delete(context.Context, engine.Key) error { return relay.ErrDeposed }

// Get returns an item from the store host or, while that is down, from the newest copy.
func (e *Engine) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	p, err := e.place(ctx)
	if err != nil {
		return engine.Item{}, err
	}
	if key.Kind == domain.ClusterKind && p.cluster != nil {
		item := *p.cluster // returned with the place
		item.Key = key
		return item, nil
	}
	return copyOf{p.store, e.ref.Name}.Get(ctx, key)
}

// List returns the items of a kind as Get does. A missing cluster has none.
func (e *Engine) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	p, err := e.place(ctx)
	if err != nil {
		return nil, unlessGone(err)
	}
	return copyOf{p.store, e.ref.Name}.List(ctx, kind)
}

// writable returns the place of the cluster, or an error if its store host is down.
func (e *Engine) writable(ctx context.Context) (place, error) {
	p, err := e.now().find(ctx)
	if err == nil {
		err = e.lacksStore(p)
	}
	return p, err
}

// lacksStore returns an error if the store host is down, or has lost the store: what is written there would not be
// based on the copies of others.
func (e *Engine) lacksStore(p place) error {
	if p.lost == nil {
		return nil
	}
	why, wait := fmt.Errorf("is down (%w)", p.lost), "wait until it is back, or "
	if errors.Is(p.lost, relay.ErrOutside) {
		why, wait = errors.New("has no documents any more, as after a reinstallation"), ""
	}
	return fmt.Errorf("cluster %q can't be changed while its store host %s %w: %spromote another host, "+
		"such as %s: terraform-provider-trainyard promote --engine %s --cluster %s --endpoint %s",
		e.ref.Name, p.ledger.Store, why, wait, p.ledger.Host, Name, e.ref.Name, p.hosts[p.ledger.Host].Address)
}

// Put stores an item. It returns once a second host has it, or with a warning if none has it in time.
func (e *Engine) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	if err := item.Check(e.Traits()); err != nil {
		return item, err
	}
	p, err := e.writable(ctx)
	if err != nil {
		return item, err
	}
	written, err := relay.Put.Ask(ctx, p.store.Client, e.ref.Name, item)
	if errors.Is(err, engine.ErrUnreachable) {
		if p, err = e.writable(ctx); err == nil {
			written, err = e.putAgain(ctx, p, item)
		}
	}
	if err != nil {
		return item, err
	}
	written.Item.Key = item.Key
	if item.Kind == domain.ClusterKind { // it may have other hosts
		if p, err = e.now().find(ctx); err != nil {
			return written.Item, err
		}
	}
	return written.Item, e.spread(ctx, p, relay.Change{Ledger: written.Ledger, Item: &written.Item})
}

// putAgain stores an item that may have been stored by a call whose connection broke.
func (e *Engine) putAgain(ctx context.Context, p place, item engine.Item) (relay.Written, error) {
	ledger, err := relay.ReadLedger.Ask(ctx, p.store.Client, e.ref.Name, none)
	if err != nil {
		return relay.Written{}, err
	}
	written, conflict := relay.Put.Ask(ctx, p.store.Client, e.ref.Name, item)
	if !errors.Is(conflict, engine.ErrConflict) {
		return written, conflict
	}
	stored, err := copyOf{p.store, e.ref.Name}.Get(ctx, item.Key)
	if err != nil {
		return relay.Written{}, err
	}
	if stored.Revision != item.Revision+1 || !bytes.Equal(stored.Data, item.Data) {
		return relay.Written{}, conflict
	}
	return relay.Written{Item: stored, Ledger: ledger}, nil
}

// Delete removes an item.
func (e *Engine) Delete(ctx context.Context, key engine.Key) error {
	p, err := e.writable(ctx)
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ledger, err := relay.Delete.Ask(ctx, p.store.Client, e.ref.Name, key)
	if err != nil || key.Kind == domain.ClusterKind {
		return err
	}
	return e.spread(ctx, p, relay.Change{Ledger: ledger, Deleted: &key})
}

// spread makes the other hosts repeat a change of the store, and returns once one of them has. The rest continue
// meanwhile; the controller brings unreachable hosts up to date.
func (e *Engine) spread(ctx context.Context, p place, change relay.Change) error {
	others := map[string]domain.Host{}
	for name, host := range p.hosts {
		if name != change.Ledger.Store {
			others[name] = host
		}
	}
	outcomes := make(chan copied, len(others))
	for name := range others {
		go func() {
			// The first to have it ends this call, but not the other copies.
			outcomes <- copied{name, e.copyTo(context.WithoutCancel(ctx), p, name, change)}
		}()
	}
	lacking, err := awaitCopy(ctx, slices.Collect(maps.Keys(others)), outcomes)
	if err == nil {
		engine.Warn(ctx, uncopied(e.ref.Name, change.Ledger.Store, lacking))
	}
	return err
}

// copied is the result of a copy to a host.
type copied struct {
	host string
	err  error
}

// awaitCopy returns once one of the hosts has a copy, or with the reasons if none has it in time: then only the store
// host has it, and the controller makes the copies later.
func awaitCopy(ctx context.Context, hosts []string, outcomes <-chan copied) (lacking map[string]error, err error) {
	lacking = map[string]error{}
	for _, name := range hosts {
		lacking[name] = fmt.Errorf("no answer within %s", copyPatience)
	}
	enough := time.NewTimer(copyPatience)
	defer enough.Stop()
	for range hosts {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-enough.C:
			return lacking, nil
		case o := <-outcomes:
			switch lacking[o.host] = o.err; {
			case o.err == nil:
				return nil, nil
			case errors.Is(o.err, relay.ErrDeposed):
				return nil, o.err // what was written is not in the store of the cluster
			}
		}
	}
	return lacking, nil
}

// uncopied returns the warning for a change that only the store host has. Without lacking hosts, it withdraws the
// warning.
func uncopied(cluster, store string, lacking map[string]error) engine.Warning {
	w := engine.Warning{Summary: fmt.Sprintf("Latest change of cluster %q not replicated", cluster)}
	if len(lacking) > 0 {
		w.Detail = fmt.Sprintf("The latest change is stored only on host %s, and lost if that host is. It could not "+
			"be copied to:\n%v\n"+
			"The controller copies it as soon as it can reach one of them.", store, joined(lacking))
	}
	return w
}

// copyPatience bounds the wait for a second host to have what was stored.
const copyPatience = 2 * time.Second

// copyTo makes one host repeat a change, or copies the whole store if the host has missed more.
func (e *Engine) copyTo(ctx context.Context, p place, name string, change relay.Change) error {
	_, err := askHost(ctx, e, p, name, relay.Copy, change)
	if errors.Is(err, relay.ErrBehind) {
		return e.restore(ctx, p, name)
	}
	return err
}

// restore copies everything stored to a host.
func (e *Engine) restore(ctx context.Context, p place, name string) error {
	contents, err := relay.Dump.Ask(ctx, p.store.Client, e.ref.Name, none)
	if err == nil {
		_, err = askHost(ctx, e, p, name, relay.Restore, contents)
	}
	return err
}
