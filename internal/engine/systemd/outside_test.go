package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
)

// rack are the hosts gpu1, gpu2 and gpu3 of a cluster, answered for by the test. The first is the store host; the
// others have current copies of its documents, as they read the same.
type rack struct {
	*testing.T
	*Engine
	// unanswered are the errors of hosts that don't answer.
	unanswered map[string]error
	// empty is a host that has joined, and was not filled yet.
	empty string
	// logs are what hosts answer about the log of a member; others have none.
	logs map[string]engine.LogPart
	// unrestored are the errors of hosts that can't store a copy.
	unrestored map[string]error

	mu    sync.Mutex
	items map[string]engine.Item
	// puts counts the changes of items.
	puts int
	// calls are those that changed a host, such as "leave gpu2".
	calls map[string]bool
	// restored is called with what a host is to store; nil if it is to store that.
	restored func(name string, contents relay.Contents) error
}

func newRack(t *testing.T, unanswered map[string]error) *rack {
	t.Helper()
	r := &rack{T: t, unanswered: unanswered, items: map[string]engine.Item{}, calls: map[string]bool{}}
	spec := domain.Cluster{Name: "lab", Engine: Name, Endpoint: "ssh://gpu1", Hosts: map[string]domain.Host{}}
	reach := &reach{cluster: spec.Name, hosts: map[string]*host{}}
	for _, name := range []string{"gpu1", "gpu2", "gpu3"} {
		address := "ssh://" + name
		spec.Hosts[name] = domain.Host{Address: address, Capacity: domain.Capacity{CPUs: 8, MemoryMiB: 1000}}
		reach.hosts[address] = &host{Client: relay.NewClient(name, func(context.Context) (net.Conn, error) {
			if err := r.unanswered[name]; err != nil {
				return nil, err
			}
			ours, theirs := net.Pipe()
			go func() { _ = relay.Serve(t.Context(), theirs, r.answers(name)) }()
			return ours, nil
		})}
	}
	r.Engine = (&Engine{
		ref: spec.Ref(), settings: engine.Settings{Hosts: spec.Hosts}, reach: reach, staged: &stagedHosts{},
		seen: &seenHosts{},
	}).now()
	r.put(engine.Key{Kind: domain.ClusterKind}, domain.ClusterDocument{
		Header: domain.Header{Version: domain.DocumentVersion}, Spec: spec,
	})
	return r
}

// put stores an item, as an earlier apply did.
func (r *rack) put(key engine.Key, value any) {
	r.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		r.Fatal(err)
	}
	r.items[key.String()] = engine.Item{Key: key, Revision: 1, Data: data}
}

// answers answers the calls to a host.
func (r *rack) answers(name string) http.Handler {
	mux := http.NewServeMux()
	ledger := relay.Ledger{Host: name, Store: "gpu1", Epoch: 1, Sequence: 5}
	get := func(key engine.Key) (engine.Item, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		item, found := r.items[key.String()]
		if !found {
			return item, engine.ErrNotFound
		}
		return item, nil
	}
	relay.Locate.Answer(mux, func(context.Context, string, relay.None) (relay.Located, error) {
		if name == r.empty {
			return relay.Located{Ledger: relay.Ledger{Host: name, Store: "gpu2", Epoch: 1, Sequence: -1}}, nil
		}
		item, err := get(engine.Key{Kind: domain.ClusterKind})
		return relay.Located{Ledger: ledger, Cluster: &item}, err
	})
	relay.ReadLedger.Answer(mux, func(context.Context, string, relay.None) (relay.Ledger, error) { return ledger, nil })
	relay.Get.Answer(mux, func(_ context.Context, _ string, key engine.Key) (engine.Item, error) { return get(key) })
	relay.Put.Answer(mux, func(_ context.Context, _ string, item engine.Item) (relay.Written, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		item.Revision++
		r.puts++
		r.items[item.String()] = item
		return relay.Written{Item: item, Ledger: ledger}, nil
	})
	relay.Copy.Answer(mux, func(context.Context, string, relay.Change) (relay.None, error) { return none, nil })
	relay.Ports.Answer(mux, func(context.Context, string, relay.None) ([]int, error) { return nil, nil })
	relay.FindFiles.Answer(mux, func(context.Context, string, relay.None) (engine.HostFiles, error) {
		return engine.HostFiles{Versions: map[string][]engine.FileFault{"sha256:1": nil}}, nil
	})
	relay.UsedFiles.Answer(mux, func(context.Context, string, []string) ([]string, error) { return nil, nil })
	relay.Observe.Answer(mux, func(context.Context, string, string) ([]domain.Observed, error) {
		return []domain.Observed{r.member(name, domain.StateRunning)}, nil
	})
	relay.Follow.Answer(mux, func(context.Context, string, relay.FollowQuery) (engine.LogPart, error) {
		part, found := r.logs[name]
		if !found {
			return part, engine.ErrNotFound
		}
		return part, nil
	})
	relay.RemoveFiles.Answer(mux, func(context.Context, string, []string) (relay.None, error) {
		return r.called("remove files", name)
	})
	relay.RemoveFolders.Answer(mux, func(context.Context, string, []domain.KeptFolder) (relay.None, error) {
		return r.called("remove folders", name)
	})
	relay.Dump.Answer(mux, func(context.Context, string, relay.None) (relay.Contents, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		contents := relay.Contents{Ledger: ledger, Items: slices.Collect(maps.Values(r.items))}
		contents.Ledger.Sequence += r.puts
		return contents, nil
	})
	relay.Restore.Answer(mux, func(_ context.Context, _ string, contents relay.Contents) (relay.None, error) {
		if err := r.unrestored[name]; err != nil {
			return none, err
		}
		if r.restored != nil {
			if err := r.restored(name, contents); err != nil {
				return none, err
			}
		}
		return r.called("restore", name)
	})
	relay.StartResidents.Answer(mux, func(context.Context, string, relay.Orders) (relay.None, error) {
		return r.called("start", name)
	})
	relay.StopController.Answer(mux, func(context.Context, string, relay.None) (relay.None, error) {
		return r.called("stop", name)
	})
	relay.Leave.Answer(mux, func(context.Context, string, relay.None) (relay.None, error) {
		return r.called("leave", name)
	})
	return mux
}

func (r *rack) called(call, host string) (relay.None, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[call+" "+host] = true
	return none, nil
}

// member returns the member of group "job" on a host.
func (*rack) member(host string, state domain.State) domain.Observed {
	return domain.Observed{
		Name: "job-on-" + host, Group: "job", Role: "on-" + host, Host: host, Hash: "spec", Run: 1, State: state,
	}
}

// TestHostOutside: a host of the cluster that no longer has anything of it is neither an error nor a missing
// cluster: what was there has to be brought there again, except for what had ended.
func TestHostOutside(t *testing.T) {
	for why, absent := range map[string]absence{
		"at once":            {},
		"after it was lost":  {Since: map[string]time.Time{"gpu3": {}}, Lost: map[string]bool{"gpu3": true}},
		"while another died": {Since: map[string]time.Time{"gpu2": {}}, Lost: map[string]bool{"gpu2": true}},
	} {
		t.Run(why, func(t *testing.T) {
			r := newRack(t, map[string]error{"gpu3": relay.ErrOutside})
			ended := r.member("gpu3", domain.StateCompleted)
			ended.Name = "job-ended"
			running := r.member("gpu3", domain.StatePending)
			r.put(engine.Key{Kind: placedKind, Name: "job"}, placed{running.Name: running, ended.Name: ended})
			r.put(relay.AbsentKey, absent)

			observed, err := r.Observe(t.Context(), "job")
			if err != nil || len(observed) != 4 {
				t.Fatalf("the members are %v (%v)", observed, err)
			}
			for _, o := range observed {
				current := o.Hash == "spec" && o.Run == 1
				troubled := strings.Contains(o.HostTrouble, "gpu3 has to be set up")
				if troubled != (o.Host == "gpu3") || current != (o.Name != running.Name) {
					t.Errorf("%s is %+v", o.Name, o)
				}
			}
			files, err := r.FindFiles(t.Context())
			if has, asked := files["gpu3"]; err != nil || !asked || has.Away || len(has.Versions) > 0 {
				t.Errorf("the files are %v (%v)", files, err)
			}
			document, err := engine.Cluster(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			found, err := r.Survey(t.Context(), document.Spec)
			if err != nil || found.Hosts["gpu3"].Capacity != (domain.Capacity{}) ||
				found.Hosts["gpu2"].Capacity != document.Spec.Hosts["gpu2"].Capacity {
				t.Errorf("the hosts are %+v (%v)", found.Hosts, err)
			}
			inventory, err := r.Inventory(t.Context(), document.Spec)
			if reason, closed := inventory.Closed["gpu3"]; err != nil || closed {
				t.Errorf("gpu3 takes no members: %s (%v)", reason, err)
			}
			if _, lost := inventory.Lost["gpu2"]; lost != absent.Lost["gpu2"] {
				t.Errorf("the lost hosts are %v", inventory.Lost)
			}
			var problems domain.Problems
			r.checkOutside(t.Context(), &problems, document.Spec.Hosts)
			if len(problems) != 1 || problems.Err() != nil || problems[0].Path.String() != `hosts["gpu3"].address` {
				t.Errorf("the plan says %v", problems)
			}

			joined := map[string]relay.Credentials{"gpu2": {}, "gpu3": {Anew: true}}
			if err := r.welcome(t.Context(), joined); err != nil {
				t.Error(err)
			}
			left, _, err := r.absence(t.Context())
			if err != nil || left.Lost["gpu3"] || left.Lost["gpu2"] != absent.Lost["gpu2"] {
				t.Errorf("away is %+v (%v)", left, err)
			}
		})
	}
}

// TestStoreHostOutside: without its documents, the store host is as good as down. What would be written or deleted
// there is refused, with advice, and reads are answered from a copy.
func TestStoreHostOutside(t *testing.T) {
	r := newRack(t, map[string]error{"gpu1": relay.ErrOutside})
	document, err := engine.Cluster(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]func() error{
		"put":    func() error { _, err := engine.Put(t.Context(), r, document); return err },
		"delete": func() error { return engine.Delete[domain.GroupDocument](t.Context(), r, "job") },
		"lock":   func() error { _, err := r.Lock(t.Context(), "group job", engine.Holder{}); return err },
		"plan": func() error {
			var problems domain.Problems
			r.checkOutside(t.Context(), &problems, document.Spec.Hosts)
			return problems.Err()
		},
	}
	for what, write := range writes {
		err := write()
		if err == nil || errors.Is(err, engine.ErrNotFound) ||
			!strings.Contains(fmt.Sprint(err), "its store host gpu1 has no documents any more") ||
			!strings.Contains(fmt.Sprint(err), "promote --engine systemd --cluster lab --endpoint ssh://gpu2") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestClusterNowhere: only if no known host has anything of the cluster, it is not found.
func TestClusterNowhere(t *testing.T) {
	gone := map[string]error{"gpu1": relay.ErrOutside, "gpu2": relay.ErrOutside, "gpu3": relay.ErrOutside}
	if _, err := engine.Cluster(t.Context(), newRack(t, gone)); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("on no host: %v", err)
	}
	gone["gpu3"] = engine.ErrUnreachable
	if _, err := engine.Cluster(t.Context(), newRack(t, gone)); err == nil || errors.Is(err, engine.ErrNotFound) ||
		!strings.HasPrefix(err.Error(), "gpu1: nothing of the cluster") {
		t.Errorf("perhaps on one: %v", err)
	}
}

// TestEmptyCopy: a host that has joined and has no documents yet knows of the cluster only if nobody knows more.
func TestEmptyCopy(t *testing.T) {
	first := func(unanswered map[string]error) (relay.Located, error) {
		r := newRack(t, unanswered)
		r.empty = "gpu1"
		_, located, err := r.first(t.Context())
		return located, err
	}
	if located, err := first(nil); err != nil || located.Cluster == nil {
		t.Errorf("beside others: %+v (%v)", located, err)
	}
	unanswered := map[string]error{"gpu2": relay.ErrOutside, "gpu3": relay.ErrOutside}
	if located, err := first(unanswered); err != nil || located.Cluster != nil {
		t.Errorf("alone: %+v (%v)", located, err)
	}
	unanswered["gpu3"] = engine.ErrUnreachable
	if _, err := first(unanswered); err == nil || errors.Is(err, engine.ErrNotFound) ||
		!strings.Contains(err.Error(), "has no documents of the cluster yet") {
		t.Errorf("if one can't be asked: %v", err)
	}
}
