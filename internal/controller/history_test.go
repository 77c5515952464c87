package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// items is an in-memory store. Its calls are recorded, and can be made to fail.
type items struct {
	storetest.Memory

	mutex sync.Mutex
	// fault is called before and after each call; the error that it returns becomes that of the call.
	fault func(call string, done bool) error
	calls []string
}

// putChunk is the prefix of calls that store a part of the history.
var putChunk = "put " + autoscale.HistoryKind.Name + "/"

func newItems() *items {
	i := &items{fault: noFault}
	i.Set(engine.Item{Key: engine.Key{Kind: domain.ClusterKind}, Revision: 1, Data: []byte(`{"version":1}`)})
	return i
}

func noFault(string, bool) error { return nil }

// do makes a call, unless its caller's context is done.
func (i *items) do(ctx context.Context, call string, do func() error) error {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	i.calls = append(i.calls, call)
	if err := i.fault(call, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return i.fault(call, true)
}

func (i *items) Get(ctx context.Context, key engine.Key) (item engine.Item, err error) {
	err = i.do(ctx, "get "+key.Kind.Name+"/"+key.Name, func() (err error) {
		item, err = i.Memory.Get(ctx, key)
		return err
	})
	return item, err
}

func (i *items) List(ctx context.Context, kind domain.Kind) (found []engine.Item, err error) {
	err = i.do(ctx, "list "+kind.Name, func() (err error) {
		found, err = i.Memory.List(ctx, kind)
		return err
	})
	return found, err
}

func (i *items) Put(ctx context.Context, item engine.Item) (stored engine.Item, err error) {
	err = i.do(ctx, "put "+item.Kind.Name+"/"+item.Name, func() (err error) {
		stored, err = i.Memory.Put(ctx, item)
		return err
	})
	return stored, err
}

func (i *items) Delete(ctx context.Context, key engine.Key) error {
	return i.do(ctx, "delete "+key.Kind.Name+"/"+key.Name, func() error { return i.Memory.Delete(ctx, key) })
}

// documentOf returns a stored document, bypassing faults.
func documentOf[T any, P domain.Document[T]](t testing.TB, i *items, name string) T {
	t.Helper()
	doc, err := engine.Get[T, P](t.Context(), &i.Memory, name)
	if err != nil {
		t.Error(err)
	}
	return doc
}

// edit changes or creates a stored document, bypassing faults.
func edit[T any, P domain.Document[T]](t testing.TB, i *items, name string, change func(doc *T)) T {
	t.Helper()
	doc, err := engine.Get[T, P](t.Context(), &i.Memory, name)
	if err == nil || errors.Is(err, engine.ErrNotFound) {
		change(&doc)
		doc, err = engine.Put[T, P](t.Context(), &i.Memory, doc)
	}
	if err != nil {
		t.Error(err)
	}
	return doc
}

// revisions returns the revisions of the items of a kind, by name.
func (i *items) revisions(t testing.TB, kind domain.Kind) map[string]int {
	t.Helper()
	found, err := i.Memory.List(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	revisions := map[string]int{}
	for _, item := range found {
		revisions[item.Name] = item.Revision
	}
	return revisions
}

// entries returns the entries of the stored history.
func (i *items) entries(t rapid.TB, now time.Time, selection autoscale.Selection) []autoscale.Entry {
	t.Helper()
	stored, err := engine.Contents(context.Background(), &i.Memory, autoscale.HistoryKind)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := autoscale.ReadHistory(stored, now, selection)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// counts returns the changes of count in the stored history.
func (i *items) counts(t rapid.TB) string {
	t.Helper()
	var counts []string
	for _, e := range i.entries(t, noon.Add(time.Hour), autoscale.Selection{}) {
		counts = append(counts, fmt.Sprintf("%d→%d", e.From, e.To))
	}
	return strings.Join(counts, " ")
}

// decided returns the entry of a policy's decision.
func decided(at time.Time, from, to int) autoscale.Entry {
	return autoscale.NewEntry("job/worker", at, from, autoscale.Decision{From: from, To: to})
}

// Changes of count are stored at once, all else from time to time, and a new controller continues with all of it.
func TestHistoryIsStored(t *testing.T) {
	stored := newItems()
	h := newHistoryKeeper(stored)
	if err := h.Load(t.Context(), noon); err != nil || !h.Due().IsZero() {
		t.Fatalf("an empty history is due at %s (%v)", h.Due(), err)
	}
	due := func(want time.Duration) {
		t.Helper()
		if got := h.Due(); !got.Equal(noon.Add(want)) {
			t.Errorf("it is due at %s, want %s", got, noon.Add(want))
		}
	}
	flush := func(at time.Duration, want string) {
		t.Helper()
		if err := h.Flush(t.Context(), noon.Add(at)); err != nil {
			t.Fatal(err)
		}
		if got := stored.counts(t); got != want || !h.Due().IsZero() {
			t.Errorf("after %s, %q is stored, want %q, and more is due at %s", at, got, want, h.Due())
		}
	}
	h.Add(decided(noon, 1, 1))
	if h.Due().After(noon) {
		t.Errorf("the first entry is due at %s", h.Due())
	}
	flush(0, "1→1")
	h.Add(decided(noon.Add(5*time.Second), 1, 1))
	due(30 * time.Second)
	held := decided(noon.Add(10*time.Second), 1, 2)
	held.Outcome = autoscale.OutcomeHeld
	h.Add(held)
	due(30 * time.Second)
	h.Add(decided(noon.Add(15*time.Second), 1, 2))
	due(15 * time.Second)
	h.Add(decided(noon.Add(20*time.Second), 2, 2))
	due(15 * time.Second)
	flush(21*time.Second, "1→1 1→2 1→2 2→2")

	h.Add(decided(noon.Add(25*time.Second), 2, 2))
	due(51 * time.Second)
	h = newHistoryKeeper(stored)
	h.Add(decided(noon.Add(30*time.Second), 2, 3))
	flush(30*time.Second, "1→1 1→2 1→2 2→2 2→3")
	if diff := cmp.Diff(map[string]int{"1": 3}, stored.revisions(t, autoscale.HistoryKind)); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	calls := len(stored.calls)
	flush(time.Minute, "1→1 1→2 1→2 2→2 2→3")
	if len(stored.calls) != calls {
		t.Errorf("without anything to store there were %v", stored.calls[calls:])
	}
}

// The more there is to rewrite, the longer entries without a change wait.
func TestLargeHistoryRests(t *testing.T) {
	h := newHistoryKeeper(newItems())
	for i := range 2000 {
		e := decided(noon, i, i)
		e.Policy = fmt.Sprintf("job-%d/worker", i)
		e.OutcomeWhy = fmt.Sprint(i*i*i, i*i*i*i)
		h.Add(e)
	}
	if err := h.Flush(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	size := h.archive.Newest()
	h.Add(decided(noon.Add(time.Second), 1, 1))
	if rest := h.Due().Sub(noon); size < 40*quietRate || rest != time.Duration(size)*time.Second/quietRate {
		t.Errorf("with %d bytes, it rests for %s", size, rest)
	}
}

// Whichever calls fail, before or after taking effect, nothing is lost and nothing is stored twice.
func TestHistoryOutlastsFaults(t *testing.T) {
	down := errors.New("the engine is down")
	rapid.Check(t, func(t *rapid.T) {
		stored := newItems()
		h := newHistoryKeeper(stored)
		var want []string
		rounds := rapid.IntRange(1, 10).Draw(t, "rounds")
		for i := range rounds {
			at := noon.Add(time.Duration(i) * time.Minute)
			h.Add(decided(at, i, i+1))
			want = append(want, fmt.Sprintf("%d→%d", i, i+1))
			failed := false
			stored.fault = func(call string, done bool) error {
				if failed = i < rounds-1 && rapid.IntRange(0, 3).Draw(t, call) == 0; failed {
					return down
				}
				return nil
			}
			err := h.Flush(t.Context(), at)
			switch due := h.Due(); {
			case failed && (!errors.Is(err, down) || !due.Equal(at.Add(afterFault))):
				t.Fatalf("after a fault it is due again at %s (%v)", due, err)
			case !failed && (err != nil || !due.IsZero()):
				t.Fatalf("without a fault it is due again at %s (%v)", due, err)
			}
		}
		if got := stored.counts(t); got != strings.Join(want, " ") {
			t.Errorf("%q is stored, want %q", got, want)
		}
	})
}

// A replaced controller gets a conflict, and continues with the other's entries after loading them.
func TestHistoryOfAnother(t *testing.T) {
	stored := newItems()
	first, second := newHistoryKeeper(stored), newHistoryKeeper(stored)
	add := func(h *historyKeeper, i int) error {
		at := noon.Add(time.Duration(i) * time.Minute)
		h.Add(decided(at, i, i+1))
		return h.Flush(t.Context(), at)
	}
	if err := errors.Join(add(first, 0), add(second, 1)); err != nil {
		t.Fatal(err)
	}
	if err := add(first, 2); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("the first gets %v", err)
	}
	if got := stored.counts(t); got != "0→1 1→2" {
		t.Errorf("%q is stored", got)
	}
	if err := errors.Join(first.Load(t.Context(), noon.Add(time.Hour)), add(first, 3)); err != nil {
		t.Fatal(err)
	}
	if got := stored.counts(t); got != "0→1 1→2 3→4" {
		t.Errorf("%q is stored", got)
	}
	if err := add(second, 4); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("the second gets %v", err)
	}
}

// A corrupt chunk is reported once, and does not stop the history.
func TestHistoryGoesOnBesideWhatIsCorrupt(t *testing.T) {
	stored := newItems()
	stored.Set(engine.Item{Key: chunkKey("1"), Revision: 5, Data: []byte("no chunk")})
	h := newHistoryKeeper(stored)
	h.Add(decided(noon, 1, 2))
	var fault *autoscale.ChunkError
	if err := h.Flush(t.Context(), noon); !errors.As(err, &fault) || fault.Name != "1" {
		t.Errorf("the error is %v", err)
	}
	h.Add(decided(noon.Add(time.Minute), 2, 3))
	if err := h.Flush(t.Context(), noon.Add(time.Minute)); err != nil {
		t.Errorf("it is reported again: %v", err)
	}
	if diff := cmp.Diff(map[string]int{"1": 5, "2": 2}, stored.revisions(t, autoscale.HistoryKind)); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// The conformance tests of stores cover items as large as chunks and shards may be.
func TestChunksAndShardsFitIntoStores(t *testing.T) {
	shown := 0
	for _, kind := range storetest.Kinds {
		shown = max(shown, kind.MaxBytes)
	}
	for _, kind := range []domain.Kind{autoscale.HistoryKind, memoryKind} {
		if kind.MaxBytes > shown {
			t.Errorf("an item of kind %q may have %d bytes, and stores are shown to take %d", kind.Name, kind.MaxBytes,
				shown)
		}
	}
}
