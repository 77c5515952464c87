package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// guarded is a host that answers the controller.
type guarded struct {
	ledger relay.Ledger
	// silent means that its ledger can't be read.
	silent bool
	// runs are its members, and evicted those that it was asked to end.
	runs    []string
	evicted []string
}

// dial connects to the host. Its store has a cluster of three hosts, and no members.
func (g *guarded) dial(ctx context.Context) (net.Conn, error) {
	mux := http.NewServeMux()
	relay.Locate.Answer(mux, func(context.Context, string, relay.None) (relay.Located, error) {
		item := engine.Item{Key: engine.Key{Kind: domain.ClusterKind}, Revision: 1}
		var err error
		item.Data, err = json.Marshal(domain.ClusterDocument{
			Header: domain.Header{Version: domain.DocumentVersion},
			Spec:   domain.Cluster{Hosts: map[string]domain.Host{"host1": {}, "host2": {}, "host3": {}}},
		})
		return relay.Located{Ledger: g.ledger, Cluster: &item}, err
	})
	relay.ReadLedger.Answer(mux, func(context.Context, string, relay.None) (relay.Ledger, error) {
		if g.silent {
			return relay.Ledger{}, errors.New("the disk is gone")
		}
		return g.ledger, nil
	})
	relay.Observe.Answer(mux, func(context.Context, string, string) (members []domain.Observed, err error) {
		for _, name := range g.runs {
			members = append(members, domain.Observed{Group: "job", Name: name, Host: g.ledger.Host, Run: 1})
		}
		return members, nil
	})
	relay.Evict.Answer(mux, func(_ context.Context, _ string, names []string) (relay.None, error) {
		g.evicted = append(g.evicted, names...)
		return none, nil
	})
	relay.List.Answer(mux, func(context.Context, string, domain.Kind) ([]engine.Item, error) { return nil, nil })
	relay.Get.Answer(mux, func(context.Context, string, engine.Key) (engine.Item, error) {
		return engine.Item{}, engine.ErrNotFound
	})
	relay.Put.Answer(mux, func(_ context.Context, _ string, item engine.Item) (relay.Written, error) {
		return relay.Written{Item: item, Ledger: g.ledger}, nil
	})
	relay.Copy.Answer(mux, func(context.Context, string, relay.Change) (relay.None, error) { return none, nil })
	ours, theirs := net.Pipe()
	go func() { _ = relay.Serve(context.WithoutCancel(ctx), theirs, mux) }()
	return ours, nil
}

// guarding returns the controller on the first of three hosts.
func guarding(t *testing.T, hosts map[string]*guarded) *Engine {
	t.Helper()
	settings := engine.Settings{Controller: true, StateDir: t.TempDir()}
	introduction := relay.Introduction{Self: "host1", Peers: map[string]relay.Peer{}}
	for name := range hosts {
		introduction.Peers[name] = relay.Peer{Login: "ops@" + name + ":22"}
	}
	text, err := json.Marshal(introduction)
	if err == nil {
		err = os.Mkdir(filepath.Join(settings.StateDir, "lab"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(settings.StateDir, "lab", layout.PeersFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(domain.ClusterRef{Name: "lab"}, settings, Program{})
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range hosts {
		address := "ssh://" + introduction.Peers[name].Login
		if name == introduction.Self {
			address = localAddress
		}
		e.reach.hosts[address] = &host{Client: relay.NewClient(name, g.dial)}
	}
	return e
}

// TestGuardEndsStrays: the controller ends members that are not where they should be, but none that another store host
// may have started meanwhile.
func TestGuardEndsStrays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(hosts map[string]*guarded)
		// evicted are the members that are ended on the third host, and store is the host that is asked from then on.
		evicted []string
		store   string
		err     error
	}{
		"a stray": {change: func(map[string]*guarded) {}, evicted: []string{"job-0"}, store: "host1"},
		"another host was promoted": {change: func(hosts map[string]*guarded) {
			for _, name := range []string{"host2", "host3"} {
				hosts[name].ledger.Store, hosts[name].ledger.Epoch = "host2", 2
			}
		}, store: "host2", err: relay.ErrDeposed},
		"another host was promoted, and the one with members does not know": {change: func(hosts map[string]*guarded) {
			hosts["host2"].ledger.Store, hosts["host2"].ledger.Epoch = "host2", 2
		}, store: "host2", err: relay.ErrDeposed},
		"its ledger can't be read": {
			change: func(hosts map[string]*guarded) { hosts["host3"].silent = true }, store: "host1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := map[string]*guarded{}
			for _, name := range []string{"host1", "host2", "host3"} {
				hosts[name] = &guarded{ledger: relay.Ledger{Host: name, Store: "host1", Epoch: 1}}
			}
			hosts["host3"].runs = []string{"job-0"}
			e := guarding(t, hosts)
			if _, err := e.find(t.Context()); err != nil { // which store host it knows from then on
				t.Fatal(err)
			}
			test.change(hosts)
			if err := e.guard(t.Context(), time.Now()); !errors.Is(err, test.err) {
				t.Errorf("the error is %v", err)
			}
			if got := hosts["host3"].evicted; !slices.Equal(got, test.evicted) {
				t.Errorf("members that were ended: %q, want %q", got, test.evicted)
			}
			p, err := e.find(t.Context())
			if err != nil || p.ledger.Host != test.store {
				t.Errorf("the store is on %q (%v), want %s", p.ledger.Host, err, test.store)
			}
		})
	}
}
