package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// place is where a cluster is: its hosts, and which of them keeps the store.
type place struct {
	// hosts are those of the cluster's document; nil if there is none yet.
	hosts map[string]domain.Host
	// cluster is the cluster's item, as the store has it; nil if there is none.
	cluster *engine.Item
	// store is the host that reads go to, and ledger is that host's.
	store  *host
	ledger relay.Ledger
	// unread is why the hosts are unknown if the cluster's document can't be read; otherwise nil.
	unread error
	// lost is why the store host itself can't be asked if store is another host with a copy; otherwise nil.
	lost error
}

// find returns the place of the cluster by asking the last known store host, or else all hosts.
func (e *Engine) find(ctx context.Context) (place, error) {
	if h, _ := e.looks.at(e.reach.store.Load(), nil); h != nil {
		located, err := relay.Locate.Ask(ctx, h.Client, e.ref.Name, none)
		if err == nil && located.Ledger.Host == located.Ledger.Store && located.Cluster != nil {
			p := place{store: h, ledger: located.Ledger}
			p.read(located)
			return p, nil
		}
		if ctx.Err() != nil {
			return place{}, context.Cause(ctx)
		}
	}
	p, err := e.search(ctx)
	if err == nil && p.lost == nil && p.ledger.Store != "" {
		e.reach.store.Store(p.store.now())
	}
	return p, err
}

// whole returns the place of the cluster, with its hosts.
func (e *Engine) whole(ctx context.Context) (place, error) {
	p, err := e.place(ctx)
	if err == nil {
		err = p.unread
	}
	return p, err
}

// read takes the hosts from the cluster's item.
func (p *place) read(located relay.Located) {
	if located.Cluster == nil {
		return
	}
	p.cluster = located.Cluster
	var cluster domain.ClusterDocument
	cluster, p.unread = engine.Cluster(context.Background(), only{item: *located.Cluster})
	p.hosts = cluster.Spec.Hosts
}

// only is a store from which one item can be read.
type only struct {
	engine.Store
	item engine.Item
}

// Get returns the item.
func (o only) Get(context.Context, engine.Key) (engine.Item, error) { return o.item, nil }

// search asks the known hosts until one knows the cluster, and then all of the cluster's hosts: the store host is the
// one that the newest of their ledgers names.
func (e *Engine) search(ctx context.Context) (place, error) {
	first, located, err := e.first(ctx)
	if err != nil {
		return place{}, err
	}
	p := place{store: first, ledger: located.Ledger}
	if p.read(located); len(p.hosts) == 0 {
		return p, nil
	}
	type answer struct {
		host   *host
		ledger relay.Ledger
	}
	answers, failed := onAll(p.hosts, func(name string) (answer, error) {
		h, err := e.named(name, p.hosts[name])
		if err != nil {
			return answer{}, err
		}
		ledger, err := relay.ReadLedger.Ask(ctx, h.Client, e.ref.Name, none)
		return answer{h, ledger}, err
	})
	if ctx.Err() != nil {
		return place{}, context.Cause(ctx)
	}
	for name, a := range answers {
		if a.ledger.Newer(p.ledger) || a.ledger.Host == a.ledger.Store && !p.ledger.Newer(a.ledger) {
			p.store, p.ledger = answers[name].host, a.ledger
		}
	}
	if p.ledger.Host != p.ledger.Store {
		if a, answered := answers[p.ledger.Store]; answered && a.ledger.Epoch == p.ledger.Epoch {
			p.store, p.ledger = a.host, a.ledger // it is as current as any copy made from it
		} else {
			p.lost = cmp.Or(failed[p.ledger.Store], fmt.Errorf("host %s no longer has the store", p.ledger.Store))
		}
	}
	if p.store != first { // it may have had an older copy of the cluster
		if located, err = relay.Locate.Ask(ctx, p.store.Client, e.ref.Name, none); err == nil {
			p.read(located)
		}
	}
	return p, err
}

// first returns a host that is in the cluster. The error is [engine.ErrNotFound] only if all known hosts say so.
func (e *Engine) first(ctx context.Context) (*host, relay.Located, error) {
	var reasons []error
	var empty *host // it has joined, and got no documents yet
	var of relay.Located
	absent := true
	for h, err := range e.known() {
		var located relay.Located
		if err == nil {
			located, err = relay.Locate.Ask(ctx, h.Client, e.ref.Name, none)
		}
		if err == nil && located.Cluster == nil && located.Ledger.Host != located.Ledger.Store {
			empty, of = h, located
			continue
		}
		if err == nil {
			return h, located, nil
		}
		if ctx.Err() != nil {
			return nil, located, context.Cause(ctx)
		}
		if errors.Is(err, relay.ErrOutside) {
			err = fmt.Errorf("%s: %w", h.Name(), err)
		} else {
			absent = false
		}
		reasons = append(reasons, err)
	}
	switch {
	case empty != nil && absent:
		return empty, of, nil
	case empty != nil:
		reasons = append(reasons, errors.New("the host that answers has no documents of the cluster yet"))
	case len(reasons) == 0:
		return nil, relay.Located{}, fmt.Errorf(
			"cluster %q: %w: none of its hosts is known: set the address of one, such as endpoint = \"ssh://ops@gpu1\"",
			e.ref.Name, engine.ErrNotFound,
		)
	case absent:
		return nil, relay.Located{}, fmt.Errorf("cluster %q: %w", e.ref.Name, engine.ErrNotFound)
	}
	return nil, relay.Located{}, errors.Join(reasons...)
}

// known yields the hosts that may be in the cluster, the likeliest first.
func (e *Engine) known() func(yield func(*host, error) bool) {
	return func(yield func(*host, error) bool) {
		if e.reach.peers != nil {
			introduced, err := e.reach.introduced()
			if err != nil {
				yield(nil, err)
				return
			}
			for _, name := range append([]string{introduced.Self}, slices.Sorted(maps.Keys(introduced.Peers))...) {
				if !yield(e.named(name, domain.Host{})) {
					return
				}
			}
			return
		}
		tried := map[string]bool{"": true}
		addresses := append([]string{e.ref.Endpoint}, e.settings.Endpoints...)
		for _, name := range slices.Sorted(maps.Keys(e.settings.Hosts)) {
			addresses = append(addresses, e.settings.Hosts[name].Address)
		}
		for _, address := range addresses {
			if tried[address] {
				continue
			}
			tried[address] = true
			if !yield(e.looks.at(e.reach.client(address))) {
				return
			}
		}
	}
}

// onAll calls a function for each host in parallel, and returns the answers and the errors by host.
func onAll[H, A any](
	hosts map[string]H, do func(name string) (A, error),
) (answers map[string]A, failed map[string]error) {
	answers, failed = make(map[string]A, len(hosts)), map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name := range hosts {
		all.Go(func() {
			answer, err := do(name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[name] = err
			} else {
				answers[name] = answer
			}
		})
	}
	all.Wait()
	return answers, failed
}

// askAll makes the same call to all hosts of the cluster.
func askAll[Q, A any](
	ctx context.Context, e *Engine, p place, call relay.Call[Q, A], question Q,
) (map[string]A, map[string]error) {
	return onAll(p.hosts, func(name string) (A, error) { return askHost(ctx, e, p, name, call, question) })
}

// askHost makes a call to one host of the cluster.
func askHost[Q, A any](
	ctx context.Context, e *Engine, p place, name string, call relay.Call[Q, A], question Q,
) (A, error) {
	h, err := e.named(name, p.hosts[name])
	if err != nil {
		return *new(A), err
	}
	return call.Ask(ctx, h.Client, e.ref.Name, question)
}

// away reports whether an error means that a host can't be asked, or has nothing of the cluster to be asked about.
func away(err error) bool {
	return errors.Is(err, engine.ErrUnreachable) || errors.Is(err, relay.ErrOutside)
}

// besidesAway returns the errors of hosts except those that are away: nothing can be staged there, and their members
// are checked when they are back.
func besidesAway(failed map[string]error) error { return besides(failed, away) }

// besides returns the errors of hosts except ignorable ones, and removes these from the map.
func besides(failed map[string]error, ignorable func(error) bool) error {
	maps.DeleteFunc(failed, func(_ string, err error) bool { return ignorable(err) })
	return joined(failed)
}

// joined returns the errors of hosts as one, sorted by name; nil if there are none.
func joined(failed map[string]error) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, ofHost(name, failed[name]))
	}
	return errors.Join(errs...)
}

// ofHost returns an error of a host with the name of the host, unless it begins with that. Most errors of hosts that
// can't be reached have only the address.
func ofHost(name string, err error) error {
	prefix := "host " + name
	if after, has := strings.CutPrefix(err.Error(), prefix); has && strings.IndexAny(after, " :") == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", prefix, err)
}

var none = relay.None{}
