// Package storetest is the conformance suite for implementations of [engine.Store], run against the real thing, and an
// in-memory store for other tests.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Harness is what the suite needs to test a store.
type Harness struct {
	// Open returns the empty store of a cluster.
	Open func(t *testing.T, cluster string) engine.Store
	// MaxItem is the maximum size of an item in bytes; 0 for no limit.
	MaxItem int
	// Watch reports changes of watched items; nil if the store can't be watched. SharedEvents means that changes in
	// other clusters are reported too.
	Watch        func(t *testing.T, s engine.Store) <-chan struct{}
	SharedEvents bool
	// Corrupt makes a stored item unreadable, and returns where it is.
	Corrupt func(t *testing.T, s engine.Store, key engine.Key) (where string)
	// Foreign puts something that is not an item beside the items, and returns a function that fails if it was touched.
	Foreign func(t *testing.T, s engine.Store) (untouched func() error)
	// Dying kills the caller of a change at a moment, counted from 0, and reports whether the caller survived it. It is
	// nil for a store that dies with its caller.
	Dying func(t *testing.T, s engine.Store, change Change, moment int) (survived bool)
}

// Change is a change of a store.
type Change struct {
	// Item is the item to put or delete.
	Item   engine.Item
	Delete bool
}

// Make makes the change.
func (c Change) Make(ctx context.Context, s engine.Store) error {
	if c.Delete {
		return s.Delete(ctx, c.Item.Key)
	}
	_, err := s.Put(ctx, c.Item)
	return err
}

// Kinds has one of each sort that a store has to distinguish, in addition to those of documents. The name of one is a
// prefix of another's.
var Kinds = []domain.Kind{
	domain.GroupKind, domain.PolicyKind,
	{Name: "group-note", Noun: "note", Planned: true},
	{Name: "kept", Noun: "kept thing", Watched: true},
	{Name: "kept-quiet", Noun: "quiet thing", MaxBytes: 400_000},
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*testing.T, Harness, engine.Store){
		"items": testItems, "names": testNames, "sizes": testSizes, "writers": testWriters,
		"the cluster's end": testEnd,
		"corrupt items":     testCorrupt, "foreign things": testForeign, "watch": testWatch, "deaths": testDeaths,
	}
	for i, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { tests[name](t, h, h.Open(t, fmt.Sprint("store", i))) })
	}
}

var cluster = engine.Key{Kind: domain.ClusterKind}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, not %v", what, err, want)
	}
}

func put(t *testing.T, s engine.Store, key engine.Key, revision int, data string) engine.Item {
	t.Helper()
	stored, err := s.Put(t.Context(), engine.Item{Key: key, Revision: revision, Data: []byte(data)})
	must(t, err)
	if stored.Key != key || stored.Revision != revision+1 || string(stored.Data) != data || stored.Where == "" {
		t.Fatalf("%s %q was stored on top of revision %d as %+v", key, data, revision, stored)
	}
	return stored
}

// started stores the cluster's item.
func started(t *testing.T, s engine.Store) { put(t, s, cluster, 0, "lab") }

// want checks the items of a kind, by name.
func want(t *testing.T, when string, s engine.Store, kind domain.Kind, items ...engine.Item) {
	t.Helper()
	found, err := s.List(t.Context(), kind)
	must(t, err)
	byKey := func(a, b engine.Item) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(found, byKey)
	slices.SortFunc(items, byKey)
	equal := func(a, b engine.Item) bool {
		return a.Key == b.Key && a.Revision == b.Revision && bytes.Equal(a.Data, b.Data) && a.Where == b.Where
	}
	if !slices.EqualFunc(found, items, equal) {
		t.Errorf("%s, the items of kind %q are %+v, not %+v", when, kind.Name, found, items)
	}
	for _, item := range items {
		if got, err := s.Get(t.Context(), item.Key); err != nil || !equal(got, item) {
			t.Errorf("%s, %s is %+v, not %+v (%v)", when, item.Key, got, item, err)
		}
	}
}

func testItems(t *testing.T, _ Harness, s engine.Store) {
	ctx := t.Context()
	_, err := s.Get(ctx, cluster)
	wantError(t, "a cluster that is not there", err, engine.ErrNotFound)
	for _, kind := range Kinds {
		want(t, "without a cluster", s, kind)
		_, err := s.Put(ctx, engine.Item{Key: engine.Key{Kind: kind, Name: "job"}, Data: []byte("a")})
		wantError(t, "an item without a cluster", err, engine.ErrNotFound)
	}
	must(t, s.Delete(ctx, cluster))
	started(t, s)
	_, err = s.Put(ctx, engine.Item{Key: cluster, Data: []byte("other")})
	wantError(t, "a write that expects nothing, over a cluster", err, engine.ErrConflict)
	// All have the same name, so that only the kind distinguishes them.
	job := map[domain.Kind]engine.Item{}
	for _, kind := range Kinds {
		want(t, "at first", s, kind)
		key := engine.Key{Kind: kind, Name: "job"}
		_, err := s.Get(ctx, key)
		wantError(t, "an item that is not there", err, engine.ErrNotFound)
		_, err = s.Put(ctx, engine.Item{Key: key, Revision: 1, Data: []byte("b")})
		wantError(t, "a write over an item that is not there", err, engine.ErrConflict)
		job[kind] = put(t, s, key, 0, "first "+kind.Name)
	}
	for _, kind := range Kinds {
		key := job[kind].Key
		want(t, "after the first write", s, kind, job[kind])
		for _, revision := range []int{0, 2} {
			_, err := s.Put(ctx, engine.Item{Key: key, Revision: revision, Data: []byte("b")})
			wantError(t, fmt.Sprintf("a write on top of revision %d, over revision 1", revision), err,
				engine.ErrConflict)
		}
		job[kind] = put(t, s, key, 1, "\x00second\n{\xff "+kind.Name)
		other := put(t, s, engine.Key{Kind: kind, Name: "job-2"}, 0, "other")
		want(t, "after another write", s, kind, job[kind], other)
		must(t, s.Delete(ctx, other.Key))
		must(t, s.Delete(ctx, other.Key))
		want(t, "after the end of one", s, kind, job[kind])
		_, err := s.Get(ctx, other.Key)
		wantError(t, "an item that was deleted", err, engine.ErrNotFound)
		put(t, s, other.Key, 0, "anew")
	}
}

func testNames(t *testing.T, h Harness, s engine.Store) {
	started(t, s)
	long := strings.Repeat("n", domain.MaxNameLength-1)
	for _, kind := range Kinds {
		var items []engine.Item
		for _, name := range []string{"a", "a-b", "7", "a/b", "a/b-c", long +
			"a", long + "b", long + "a/" + long + "a", long + "a/" + long + "b"} {
			items = append(items, put(t, s, engine.Key{Kind: kind, Name: name}, 0, name))
		}
		want(t, "under several names", s, kind, items...)
		for _, name := range []string{"", "A", "a b", "../a", "a.b", "/", "a/", "a/b/c", "a\n", long + "aa"} {
			_, err := s.Put(t.Context(), engine.Item{Key: engine.Key{Kind: kind, Name: name}, Data: []byte("a")})
			if err == nil || errors.Is(err, engine.ErrConflict) ||
				!strings.Contains(err.Error(), "lower-case letters") {
				t.Errorf("an item of the name %q: %v", name, err)
			}
		}
	}
	// Clusters with long names that share a prefix.
	first, second := h.Open(t, long+"c"), h.Open(t, long+"d")
	started(t, first)
	started(t, second)
	for _, kind := range Kinds {
		mine := put(t, first, engine.Key{Kind: kind, Name: long + "a"}, 0, "mine")
		theirs := put(t, second, engine.Key{Kind: kind, Name: long + "a"}, 0, "theirs")
		must(t, second.Delete(t.Context(), theirs.Key))
		want(t, "beside another cluster", first, kind, mine)
		want(t, "beside another cluster", second, kind)
	}
}

func testSizes(t *testing.T, h Harness, s engine.Store) {
	started(t, s)
	for _, kind := range Kinds {
		key, most := engine.Key{Kind: kind, Name: "large"}, cmp.Or(kind.MaxBytes, h.MaxItem)
		if most > 0 {
			_, err := s.Put(t.Context(), engine.Item{Key: key, Data: make([]byte, most+1)})
			if err == nil ||
				!strings.Contains(err.Error(),
					fmt.Sprintf("takes %d bytes, and at most %d are allowed", most+1, most)) {
				t.Errorf("an item that is too large: %v", err)
			}
		}
		if _, err := s.Put(t.Context(), engine.Item{Key: key}); err == nil ||
			!strings.Contains(err.Error(), "it is empty") {
			t.Errorf("an empty item: %v", err)
		}
		want(t, "after what was refused", s, kind)
		want(t, "of the largest size", s, kind, put(t, s, key, 0, strings.Repeat("\xff", cmp.Or(most, 2_000_000))))
	}
}

// testWriters: of several concurrent writers of one revision exactly one wins, round after round.
func testWriters(t *testing.T, _ Harness, s engine.Store) {
	started(t, s)
	for _, kind := range Kinds {
		key := engine.Key{Kind: kind, Name: "job"}
		for round := range 3 {
			results, errs := make([]engine.Item, 10), make([]error, 10)
			var writers sync.WaitGroup
			for i := range results {
				writers.Go(func() {
					results[i], errs[i] = s.Put(t.Context(),
						engine.Item{Key: key, Revision: round, Data: fmt.Append(nil, i)})
				})
			}
			writers.Wait()
			var won []engine.Item
			for i, err := range errs {
				if err == nil {
					won = append(won, results[i])
				} else {
					wantError(t, "one of several writers", err, engine.ErrConflict)
				}
			}
			if len(won) != 1 {
				t.Fatalf("in round %d, %d of %d writers won", round+1, len(won), len(results))
			}
			want(t, fmt.Sprintf("after round %d", round+1), s, kind, won[0])
		}
	}
}

// testEnd: no item outlives its cluster.
func testEnd(t *testing.T, _ Harness, s engine.Store) {
	started(t, s)
	for _, kind := range Kinds {
		put(t, s, engine.Key{Kind: kind, Name: "job"}, 0, "a")
	}
	must(t, s.Delete(t.Context(), cluster))
	_, err := s.Get(t.Context(), cluster)
	wantError(t, "a deleted cluster", err, engine.ErrNotFound)
	for _, kind := range Kinds {
		want(t, "of a deleted cluster", s, kind)
	}
	started(t, s)
	for _, kind := range Kinds {
		want(t, "of a new cluster of the name", s, kind)
	}
}

// testCorrupt: an unreadable item is an error that says where it is, is not overwritten, and does not hide readable
// ones.
func testCorrupt(t *testing.T, h Harness, s engine.Store) {
	if h.Corrupt == nil {
		t.Skip("nobody can change what this store has")
	}
	started(t, s)
	for i, kind := range Kinds {
		key, other := engine.Key{Kind: kind, Name: "job"}, engine.Key{Kind: kind, Name: "other"}
		put(t, s, key, 0, "a")
		put(t, s, other, 0, "b")
		where := h.Corrupt(t, s, key)
		for what, do := range map[string]func() error{
			"Get":  func() error { _, err := s.Get(t.Context(), key); return err },
			"List": func() error { _, err := s.List(t.Context(), kind); return err },
			"Put": func() error {
				_, err := s.Put(t.Context(), engine.Item{Key: key, Revision: 1, Data: []byte("c")})
				return err
			},
		} {
			err := do()
			if corrupt, is := errors.AsType[*engine.CorruptError](err); !is || !strings.Contains(corrupt.Where, where) {
				t.Errorf("%s of a corrupt item of kind %q: %v", what, kind.Name, err)
			}
		}
		if item, err := s.Get(t.Context(), other); err != nil || string(item.Data) != "b" {
			t.Errorf("beside a corrupt item, another is %+v (%v)", item, err)
		}
		if next := Kinds[(i+1)%len(Kinds)]; i+1 < len(Kinds) {
			want(t, "beside a corrupt item of another kind", s, next)
		}
	}
	must(t, s.Delete(t.Context(), cluster))
}

// testForeign: foreign data is not listed as items, and is left alone.
func testForeign(t *testing.T, h Harness, s engine.Store) {
	if h.Foreign == nil {
		t.Skip("nobody else can write to this store")
	}
	started(t, s)
	untouched := h.Foreign(t, s)
	for _, kind := range Kinds {
		want(t, "beside foreign things", s, kind)
		item := put(t, s, engine.Key{Kind: kind, Name: "job"}, 0, "a")
		want(t, "beside foreign things", s, kind, item)
		must(t, s.Delete(t.Context(), item.Key))
	}
	must(t, s.Delete(t.Context(), cluster))
	must(t, untouched())
}

// quiet is how long an event stream is watched when no event is expected.
const quiet = 100 * time.Millisecond

// testWatch: changes of watched items are reported, and no others.
func testWatch(t *testing.T, h Harness, s engine.Store) {
	if h.Watch == nil {
		t.Skip("this store can't be watched")
	}
	started(t, s)
	for _, kind := range Kinds {
		key := engine.Key{Kind: kind, Name: "job"}
		put(t, s, key, 0, "a")
		events := h.Watch(t, s)
		put(t, s, key, 1, "b")
		must(t, s.Delete(t.Context(), key))
		switch {
		case kind.Watched:
			select {
			case _, open := <-events:
				if !open {
					t.Fatal("the stream of events ended")
				}
			case <-time.After(patience.Limit):
				t.Fatalf("no event reported a change of kind %q", kind.Name)
			}
		case !h.SharedEvents:
			select {
			case <-events:
				t.Errorf("a change of kind %q was reported", kind.Name)
			case <-time.After(quiet):
			}
		}
	}
}

// testDeaths: if the caller of a change dies at any moment, the old item or the new one is read afterwards, and the
// next write based on it succeeds.
func testDeaths(t *testing.T, h Harness, s engine.Store) {
	if h.Dying == nil {
		t.Skip("nobody dies: this store dies with who changes it, or another run shows it")
	}
	started(t, s)
	for _, kind := range Kinds {
		key := engine.Key{Kind: kind, Name: "job"}
		for what, based := range map[string]int{
			"a write": 2, "a stale write": 1, "a write ahead": 4, "a deletion": -1,
		} {
			for moment, survived := 0, false; !survived; moment++ {
				put(t, s, key, 0, "first")
				before := put(t, s, key, 1, "second")
				change := Change{Item: engine.Item{Key: key, Revision: based, Data: []byte("mine")}, Delete: based < 0}
				survived = h.Dying(t, s, change, moment)
				found, err := s.Get(t.Context(), key)
				isOld := err == nil && found.Revision == before.Revision && string(found.Data) == "second"
				isNew := err == nil && found.Revision == before.Revision+1 && string(found.Data) == "mine" &&
					based == before.Revision
				isGone := errors.Is(err, engine.ErrNotFound) && change.Delete
				if !isOld && !isNew && !isGone ||
					survived && (isNew != (based == before.Revision) || isGone != change.Delete) {
					t.Fatalf("%s that died at moment %d (survived: %t) left %+v (%v)", what, moment, survived, found,
						err)
				}
				want(t, "after "+what, s, kind, put(t, s, key, found.Revision, "next"))
				must(t, s.Delete(t.Context(), key))
			}
		}
	}
}
