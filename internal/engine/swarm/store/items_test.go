//go:build linux

package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// kept is a kind of items that no plan reads.
var kept = domain.Kind{Name: "kept", Noun: "kept thing"}

// jobs are the keys of an item that is listed with all others of its cluster, and of one that is listed by itself,
// beside the cluster's: each with the number of the first list after a write.
var jobs = map[engine.Key]int{{Kind: domain.GroupKind, Name: "job"}: 2, {Kind: kept, Name: "job"}: 3}

// onJobs runs a test for each of the jobs.
func onJobs(t *testing.T, run func(t *testing.T, job engine.Key)) {
	t.Helper()
	for job := range jobs {
		t.Run(job.Kind.Name, func(t *testing.T) { run(t, job) })
	}
}

// puts returns an item after a number of writes.
func puts(t *testing.T, e storage, key engine.Key, writes int) engine.Item {
	t.Helper()
	item := engine.Item{Key: key, Data: []byte("a")}
	for range writes {
		var err error
		item, err = e.Put(t.Context(), item)
		must(t, err)
	}
	return item
}

// objectOf names the object of an item's revision as [wantObjects] does.
func objectOf(key engine.Key, revision int) string {
	return fmt.Sprint(key.Kind.Name, " ", key.Name, " ", revision)
}

// TestOneObject: an item is one object, however long its name and however often it was written, even concurrently.
func TestOneObject(t *testing.T) {
	long := strings.Repeat("g", domain.MaxNameLength)
	e, _ := stored(t, strings.Repeat("c", domain.MaxNameLength))
	for _, kind := range storetest.Kinds {
		want := []string{"cluster 1"}
		for _, name := range []string{"job", long, long[1:] + "h", long + "/" + long} {
			item := puts(t, e, engine.Key{Kind: kind, Name: name}, 2)
			var writers sync.WaitGroup
			for range 10 {
				writers.Go(func() {
					if _, err := e.Put(t.Context(), item); err != nil {
						wantConflict(t, err)
					}
				})
			}
			writers.Wait()
			want = append(want, objectOf(item.Key, 3))
		}
		e.wantObjects(t, want...)
		for _, name := range []string{"job", long, long[1:] + "h", long + "/" + long} {
			must(t, e.Delete(t.Context(), engine.Key{Kind: kind, Name: name}))
			want = slices.Delete(want, 1, 2)
			e.wantObjects(t, want...)
		}
	}
}

// TestItemsApart: the list that plans read contains no other items, another item's list contains none of another
// cluster, and writing one lists no others.
func TestItemsApart(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "kept")
	other, _ := stored(t, "kept2")
	puts(t, e, engine.Key{Kind: kept, Name: "history-1"}, 1)
	puts(t, other, engine.Key{Kind: kept, Name: "state"}, 1)
	proxy.Reset()
	state := puts(t, e, engine.Key{Kind: kept, Name: "state"}, 1).Key
	asked := 0
	for _, call := range proxy.Calls() {
		if swarmtest.Listing(call) {
			asked++
		}
	}
	if asked != 4 {
		t.Errorf("a write of an item takes %d lists, not the item and its cluster, before and after: %v", asked,
			proxy.Calls())
	}
	for name, list := range map[string]dockerapi.List[swarm.Config]{
		"of a plan": e.swarm.Reads.Configs, "of the cluster": e.objects,
	} {
		configs, err := list(t.Context())
		must(t, err)
		if len(configs) == 0 ||
			slices.ContainsFunc(configs, func(c swarm.Config) bool { return slotOf(c).kind == kept.Name }) {
			t.Errorf("the list %s has %v", name, bySlot(configs))
		}
	}
	proxy.Reset()
	items, err := e.List(t.Context(), kept)
	must(t, err)
	if len(items) != 2 || len(proxy.Calls()) != 1 {
		t.Errorf("with calls %v the items are %v", proxy.Calls(), items)
	}
	configs, err := e.revisionsOf(state)(t.Context())
	must(t, err)
	if len(configs) != 1 {
		t.Errorf("the state is looked for among %v", bySlot(configs))
	}
	must(t, deleteItems(t.Context(), e))
	e.wantObjects(t)
	other.wantObjects(t, "cluster 1", "kept state 1")
}

// TestWritesInBetween has another run write or delete at each moment of a write.
func TestWritesInBetween(t *testing.T) {
	for name, test := range map[string]struct {
		after bool // after the object was created, not before
		other func(t *testing.T, e storage, item engine.Item)
		want  error
		// left is the revision of the item afterwards, and whether there is a cluster.
		left    int
		cluster bool
	}{
		"another write before ours": {
			other: func(t *testing.T, e storage, item engine.Item) {
				_, err := e.Put(t.Context(), item)
				must(t, err)
			},
			want: engine.ErrConflict, left: 3, cluster: true,
		},
		// The name of our revision is free again.
		"two writes before ours": {
			other: func(t *testing.T, e storage, item engine.Item) {
				for range 2 {
					var err error
					item, err = e.Put(t.Context(), item)
					must(t, err)
				}
			},
			want: engine.ErrConflict, left: 4, cluster: true,
		},
		"deletion before ours": {
			other: func(t *testing.T, e storage, item engine.Item) { must(t, e.Delete(t.Context(), item.Key)) },
			want:  engine.ErrConflict, cluster: true,
		},
		"deletion after ours": {
			after: true,
			other: func(t *testing.T, e storage, item engine.Item) { must(t, e.Delete(t.Context(), item.Key)) },
			want:  engine.ErrConflict, cluster: true,
		},
		"deletion of the cluster before ours": {
			other: func(t *testing.T, e storage, _ engine.Item) { must(t, deleteItems(t.Context(), e)) },
			want:  engine.ErrNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onJobs(t, func(t *testing.T, job engine.Key) {
				e, proxy := stored(t, "between")
				other := storageOf(t, "between")
				item := puts(t, e, job, 2)
				at := testbed.Fault{
					Match: swarmtest.Creation, Nth: 1, Do: swarmtest.Before(func() { test.other(t, other, item) }),
				}
				if test.after {
					at.Match, at.Nth = swarmtest.Listing, jobs[job]
				}
				proxy.Reset()
				proxy.On(at)
				if _, err := e.Put(t.Context(), item); !errors.Is(err, test.want) {
					t.Errorf("%v, not %v", err, test.want)
				}
				var want []string
				if test.cluster {
					want = append(want, "cluster 1")
				}
				if test.left > 0 {
					want = append(want, objectOf(job, test.left))
				}
				e.wantObjects(t, want...)
			})
		})
	}
}

// TestStaleWritesNothing: a write based on another revision than the stored one is refused before anything is written,
// even by a writer that would die next.
func TestStaleWritesNothing(t *testing.T) {
	e, proxy := stored(t, "stale")
	onJobs(t, func(t *testing.T, job engine.Key) {
		item := puts(t, e, job, 3)
		proxy.Reset()
		for _, revision := range []int{0, item.Revision - 1, item.Revision + 1} {
			stale := item
			stale.Revision = revision
			_, err := e.Put(t.Context(), stale)
			wantConflict(t, err)
		}
		deleted := engine.Item{Key: engine.Key{Kind: job.Kind, Name: "deleted"}, Revision: 2, Data: []byte("a")}
		_, err := e.Put(t.Context(), deleted)
		wantConflict(t, err)
		if calls := proxy.Calls(); slices.ContainsFunc(calls, swarmtest.Creation) {
			t.Errorf("the calls were %v", calls)
		}
	})
}

// TestItemOfDeletedCluster: a new item does not outlive its cluster, whenever that is deleted.
func TestItemOfDeletedCluster(t *testing.T) {
	onJobs(t, func(t *testing.T, job engine.Key) {
		type moment struct {
			at   testbed.Fault
			want error
		}
		moments := map[string]moment{
			"before it was written": {testbed.Fault{Match: swarmtest.Creation, Nth: 1}, engine.ErrNotFound},
			"after it was written":  {testbed.Fault{Match: swarmtest.Listing, Nth: jobs[job]}, engine.ErrConflict},
		}
		if !job.Kind.Planned {
			moments["before the cluster was looked at"] = moment{
				testbed.Fault{Match: swarmtest.Listing, Nth: jobs[job] + 1}, engine.ErrNotFound,
			}
		}
		for name, c := range moments {
			t.Run(name, func(t *testing.T) {
				e, proxy := stored(t, "vanishing")
				other := storageOf(t, "vanishing")
				c.at.Do = swarmtest.Before(func() { must(t, deleteItems(t.Context(), other)) })
				proxy.Reset()
				proxy.On(c.at)
				if _, err := e.Put(t.Context(), engine.Item{Key: job, Data: []byte("a")}); !errors.Is(err, c.want) {
					t.Errorf("%v, not %v", err, c.want)
				}
				e.wantObjects(t)
			})
		}
		// Written after the others were removed, while the cluster is still there.
		e, proxy := stored(t, "late")
		other := storageOf(t, "late")
		proxy.Reset()
		proxy.On(testbed.Fault{
			Match: swarmtest.Removal, Nth: 1, Do: swarmtest.Before(func() { puts(t, other, job, 1) }),
		})
		must(t, deleteItems(t.Context(), e))
		e.wantObjects(t)
	})
}

// TestDeletionMeetsWrites: what is written while an item is deleted is deleted too.
func TestDeletionMeetsWrites(t *testing.T) {
	onJobs(t, func(t *testing.T, job engine.Key) {
		for name, c := range map[string]struct {
			deleted engine.Key
			// again is the number of the list that checks whether anything is left.
			again int
		}{
			"item":    {job, 2},
			"cluster": {engine.Key{Kind: domain.ClusterKind}, 2},
		} {
			t.Run(name, func(t *testing.T) {
				e, proxy := stored(t, "meeting")
				other := storageOf(t, "meeting")
				puts(t, e, job, 1)
				proxy.Reset()
				written := false
				proxy.On(testbed.Fault{
					Match: swarmtest.Listing, Nth: c.again,
					Do: swarmtest.Before(func() { written = puts(t, other, job, 1).Revision == 1 }),
				})
				must(t, e.Delete(t.Context(), c.deleted))
				if _, err := e.Get(t.Context(), job); !written || !errors.Is(err, engine.ErrNotFound) {
					t.Errorf("written: %t; read: %v, not ErrNotFound", written, err)
				}
			})
		}
	})
}

// TestLeftBehind has a writer or deleter lose its manager at each of its calls, after an earlier one died without
// cleaning up: what is read afterwards is no older than before, and the next write cleans up.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	onJobs(t, func(t *testing.T, job engine.Key) {
		e, proxy := stored(t, "mortal")
		for what, based := range map[string]int{
			"a write": 2, "a stale write": 1, "a write ahead": 4, "a deletion": -1,
		} {
			change := storetest.Change{
				Item: engine.Item{Key: job, Revision: based, Data: []byte("mine")}, Delete: based < 0,
			}
			deaths := 0
			for survived := false; !survived; deaths++ {
				stored := puts(t, e, job, 2)
				swarmtest.Leave(t, e.swarm.Connection,
					swarm.ConfigSpec{Annotations: e.Annotations(job, 1), Data: []byte("left")})
				var err error
				survived, err = swarmtest.Dies(t, e, proxy, change, deaths)
				switch {
				case survived && (change.Delete || based == stored.Revision):
					must(t, err)
				case survived:
					wantConflict(t, err)
				}
				read, err := e.Get(t.Context(), job)
				switch {
				case errors.Is(err, engine.ErrNotFound) && change.Delete:
				case err != nil:
					t.Fatalf("%s that died at moment %d: %v", what, deaths, err)
				case read.Revision < stored.Revision || string(read.Data) == "left":
					t.Fatalf("%s that died at moment %d brought back %+v", what, deaths, read)
				}
				next, err := e.Put(t.Context(), engine.Item{Key: job, Revision: read.Revision, Data: []byte("next")})
				must(t, err)
				e.wantObjects(t, "cluster 1", objectOf(job, next.Revision))
				must(t, e.Delete(t.Context(), job))
			}
			// A change takes a list, the write itself, and another list.
			if least := 2 * 3; deaths < least && (change.Delete || based == 2) {
				t.Errorf("%s died at %d moments, which are not all it takes", what, deaths)
			}
		}
	})
}

// TestUnreadable: an object that doesn't hold a valid document, or has an invalid revision, is an error that names it.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct{ revision, data, reason string }{
		"no JSON":        {"1", `{"version":1,`, "unexpected end"},
		"other type":     {"1", `{"version":1,"counts":3,"spec":3}`, "cannot unmarshal"},
		"version":        {"1", `{"version":99}`, "version 99, and this version of Trainyard supports version 1"},
		"revision label": {"one", `{"version":1}`, `"one"`},
	} {
		for call, read := range map[string]func(s engine.Store) error{
			"cluster.1": func(s engine.Store) error { _, err := engine.Cluster(t.Context(), s); return err },
			"group.job.1": func(s engine.Store) error {
				_, err := engine.Get[domain.GroupDocument](t.Context(), s, "job")
				_, listErr := engine.List[domain.GroupDocument](t.Context(), s)
				if fmt.Sprint(err) != fmt.Sprint(listErr) {
					t.Errorf("%s: read: %v; listed: %v", name, err, listErr)
				}
				return err
			},
		} {
			s := storeOf("lab")
			var configs []swarm.Config
			for _, key := range []engine.Key{{Kind: domain.ClusterKind}, {Kind: domain.GroupKind, Name: "job"}} {
				config := swarm.Config{Spec: swarm.ConfigSpec{Annotations: s.Annotations(key, 1), Data: []byte(c.data)}}
				config.Spec.Labels[spec.LabelRevision] = c.revision
				configs = append(configs, config)
			}
			err := read(storeOf("lab", configs...))
			if _, corrupt := errors.AsType[*engine.CorruptError](err); !corrupt ||
				!strings.Contains(fmt.Sprint(err), c.reason) ||
				!strings.Contains(fmt.Sprint(err), "config object trainyard.lab."+call+" is corrupt") {
				t.Errorf("%s, %s: %v", name, call, err)
			}
			if _, err := engine.Get[domain.GroupDocument](t.Context(), storeOf("lab", configs...),
				"other"); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("%s: another group: %v", name, err)
			}
		}
	}
}

// TestForeignName: somebody else's config object under one of our names is left alone. It is not a conflict, which
// would be temporary.
func TestForeignName(t *testing.T) {
	e, _ := stored(t, "foreign")
	onJobs(t, func(t *testing.T, job engine.Key) {
		name := e.Annotations(job, 1).Name
		swarmtest.Leave(t, e.swarm.Connection,
			swarm.ConfigSpec{Annotations: swarm.Annotations{Name: strings.ToUpper(name)}, Data: []byte("theirs")})
		_, err := e.Put(t.Context(), engine.Item{Key: job, Data: []byte("ours")})
		if err == nil || errors.Is(err, engine.ErrConflict) || !strings.Contains(err.Error(), name) {
			t.Errorf("a name that is taken: %v", err)
		}
		must(t, e.Delete(t.Context(), job))
		if theirs, err := e.swarm.Connection.ConfigNamed(t.Context(), name); err != nil || theirs == nil ||
			string(theirs.Spec.Data) != "theirs" {
			t.Errorf("somebody's config object is %+v (%v)", theirs, err)
		}
	})
}

// TestFailedReads: a manager's failure is not read as a deletion.
func TestFailedReads(t *testing.T) {
	e, proxy := stored(t, "failing")
	want := []string{"cluster 1"}
	calls := map[string]func() error{
		"cluster": func() error { _, err := engine.Cluster(t.Context(), e); return err },
		"write of the cluster": func() error {
			_, err := engine.Put(t.Context(), e, domain.ClusterDocument{})
			return err
		},
		"deletion of the cluster": func() error { return deleteItems(t.Context(), e) },
		"lock": func() error {
			_, err := e.Lock(t.Context(), "group job", engine.Holder{})
			return err
		},
	}
	for job := range jobs {
		item := puts(t, e, job, 1)
		want = append(want, objectOf(job, 1))
		calls["Get of a "+job.Kind.Name] = func() error { _, err := e.Get(t.Context(), job); return err }
		calls["List of a "+job.Kind.Name] = func() error { _, err := e.List(t.Context(), job.Kind); return err }
		calls["Put of a "+job.Kind.Name] = func() error { _, err := e.Put(t.Context(), item); return err }
		calls["Delete of a "+job.Kind.Name] = func() error { return e.Delete(t.Context(), job) }
	}
	for name, action := range map[string]testbed.Action{
		"an error": testbed.Fail("no quorum"), "no answer": testbed.Drop(),
	} {
		proxy.Reset()
		proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: action})
		for call, do := range calls {
			err := do()
			_, locked := errors.AsType[*engine.LockedError](err)
			if err == nil || locked || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
				t.Errorf("%s with %s: %v", call, name, err)
			}
		}
	}
	proxy.Reset()
	e.wantObjects(t, want...)
}
