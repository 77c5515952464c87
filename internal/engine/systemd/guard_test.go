package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
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
	// down means that it can't be reached, and hangs that it answers no request to end members.
	down, hangs bool
	// runs are its members, and removed those that it was asked to end.
	runs    []string
	removed []string
	// absent is the item that records who is away; nil for none. It is the last one that was stored.
	absent *absence
}

// dial connects to the host. Its store has a cluster of three hosts, and no members.
func (g *guarded) dial(ctx context.Context) (net.Conn, error) {
	if g.down {
		return nil, errors.New("no route to host")
	}
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
	relay.Remove.Answer(mux, func(ctx context.Context, _ string, names []string) (relay.None, error) {
		g.removed = append(g.removed, names...)
		if g.hangs {
			<-ctx.Done()
		}
		return none, ctx.Err()
	})
	relay.List.Answer(mux, func(context.Context, string, domain.Kind) ([]engine.Item, error) { return nil, nil })
	relay.Get.Answer(mux, func(_ context.Context, _ string, key engine.Key) (item engine.Item, err error) {
		if g.absent == nil || key.Name != relay.AbsentKey.Name {
			return item, engine.ErrNotFound
		}
		item.Revision = 1
		item.Data, err = json.Marshal(*g.absent)
		return item, err
	})
	relay.Put.Answer(mux, func(_ context.Context, _ string, item engine.Item) (relay.Written, error) {
		if item.Name == relay.AbsentKey.Name {
			g.absent = new(absence)
			if err := json.Unmarshal(item.Data, g.absent); err != nil {
				return relay.Written{}, err
			}
		}
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

// withStray returns three hosts, the third with a member that should not be there.
func withStray() map[string]*guarded {
	hosts := map[string]*guarded{}
	for _, name := range []string{"host1", "host2", "host3"} {
		hosts[name] = &guarded{ledger: relay.Ledger{Host: name, Store: "host1", Epoch: 1}}
	}
	hosts["host3"].runs = []string{"job-0"}
	return hosts
}

// TestGuardEndsStrays: the controller ends members that are not where they should be, but none that another store host
// may have started meanwhile.
func TestGuardEndsStrays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(hosts map[string]*guarded)
		// removed are the members that are ended on the third host, and store is the host that is asked from then on.
		removed []string
		store   string
		err     error
	}{
		"a stray": {change: func(map[string]*guarded) {}, removed: []string{"job-0"}, store: "host1"},
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
			hosts := withStray()
			e := guarding(t, hosts)
			if _, err := e.find(t.Context()); err != nil { // which store host it knows from then on
				t.Fatal(err)
			}
			test.change(hosts)
			if err := e.guard(t.Context(), map[string]time.Time{}); !errors.Is(err, test.err) {
				t.Errorf("the error is %v", err)
			}
			if got := hosts["host3"].removed; !slices.Equal(got, test.removed) {
				t.Errorf("members that were ended: %q, want %q", got, test.removed)
			}
			p, err := e.find(t.Context())
			if err != nil || p.ledger.Host != test.store {
				t.Errorf("the store is on %q (%v), want %s", p.ledger.Host, err, test.store)
			}
		})
	}
}

// TestGuardDoesNotAwaitStrays: however long a stray takes to end, hosts that are away are declared lost meanwhile. Its
// own host stays lost if it was, but does not become so.
func TestGuardDoesNotAwaitStrays(t *testing.T) {
	for name, test := range map[string]struct {
		hangs bool
		// before are the hosts that are lost at first.
		before, want []string
	}{
		"it takes long":            {false, nil, []string{"host2"}},
		"its host hangs":           {true, nil, []string{"host2"}},
		"its host was lost":        {false, []string{"host3"}, []string{"host2", "host3"}},
		"its host was lost, hangs": {true, []string{"host3"}, []string{"host2", "host3"}},
		"another host was lost":    {false, []string{"host2"}, []string{"host2"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := withStray()
				hosts["host2"].down, hosts["host3"].hangs = true, test.hangs
				since := time.Now()
				absent := absence{Since: map[string]time.Time{"host2": since}, Lost: map[string]bool{}}
				for _, name := range test.before {
					absent.Since[name], absent.Lost[name] = since, true
				}
				hosts["host1"].absent = &absent
				e := guarding(t, hosts)
				<-time.After(2 * lostAfter)
				err := e.guard(t.Context(), map[string]time.Time{"host2": since})
				if errors.Is(err, context.DeadlineExceeded) != test.hangs {
					t.Errorf("the error is %v", err)
				}
				if got := slices.Sorted(maps.Keys(hosts["host1"].absent.Lost)); !slices.Equal(got, test.want) {
					t.Errorf("lost are %v, want %v", got, test.want)
				}
				for _, h := range e.reach.hosts {
					h.Close()
				}
			})
		})
	}
}
