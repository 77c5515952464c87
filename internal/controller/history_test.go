package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// records keeps records in memory, as an engine does.
type records struct {
	mutex sync.Mutex
	kept  map[string]engine.Record
	// fault is asked before and after each call: what it returns is the error of the call.
	fault func(call string, done bool) error
	calls []string
}

func newRecords() *records {
	return &records{kept: map[string]engine.Record{}, fault: func(string, bool) error { return nil }}
}

func (r *records) do(call string, do func() error) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls = append(r.calls, call)
	if err := r.fault(call, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return r.fault(call, true)
}

func (r *records) Records(_ context.Context, prefix string) (found map[string]engine.Record, err error) {
	err = r.do("read "+prefix, func() error {
		found = maps.Clone(r.kept)
		maps.DeleteFunc(found, func(name string, _ engine.Record) bool { return !strings.HasPrefix(name, prefix) })
		return nil
	})
	return found, err
}

func (r *records) PutRecord(_ context.Context, record engine.Record) (engine.Record, error) {
	err := r.do("put "+record.Name, func() error {
		if err := record.Check(); err != nil {
			return err
		}
		if r.kept[record.Name].Revision != record.Revision {
			return engine.ErrConflict
		}
		record.Revision++
		r.kept[record.Name] = record
		return nil
	})
	return record, err
}

func (r *records) DeleteRecord(_ context.Context, name string) error {
	return r.do("delete "+name, func() error {
		delete(r.kept, name)
		return nil
	})
}

// counts returns the counts that the stored history tells of.
func (r *records) counts(t rapid.TB) string {
	t.Helper()
	kept, err := autoscale.ReadHistory(engine.RecordData(r.kept), noon.Add(time.Hour), autoscale.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for _, e := range kept {
		counts = append(counts, fmt.Sprintf("%d→%d", e.From, e.To))
	}
	return strings.Join(counts, " ")
}

// decided is a decision of a policy.
func decided(at time.Time, from, to int) autoscale.Entry {
	return autoscale.NewEntry("job/worker", at, from, autoscale.Decision{From: from, To: to})
}

// What changed a count is stored at once, all else from time to time, and a new controller goes on with all of it.
func TestHistoryIsStored(t *testing.T) {
	stored := newRecords()
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
	if len(stored.kept) != 1 || stored.kept["scaling-history-1"].Revision != 3 {
		t.Errorf("%+v is stored", stored.kept)
	}
	calls := len(stored.calls)
	flush(time.Minute, "1→1 1→2 1→2 2→2 2→3")
	if len(stored.calls) != calls {
		t.Errorf("without anything to store there were %v", stored.calls[calls:])
	}
}

// The more there is to write again, the longer what changed nothing waits.
func TestLargeHistoryRests(t *testing.T) {
	h := newHistoryKeeper(newRecords())
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

// Whichever calls fail, before they were done or after that: nothing is lost, and nothing stored twice.
func TestHistoryOutlastsFaults(t *testing.T) {
	down := errors.New("the engine is down")
	rapid.Check(t, func(t *rapid.T) {
		stored := newRecords()
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

// A controller that has been replaced learns of it, and goes on with what the other stored once it has loaded that.
func TestHistoryOfAnother(t *testing.T) {
	stored := newRecords()
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
		t.Errorf("the first is told %v", err)
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
		t.Errorf("the second is told %v", err)
	}
}

// What can't be read is told once, and does not keep the history from going on.
func TestHistoryGoesOnBesideWhatIsCorrupt(t *testing.T) {
	stored := newRecords()
	stored.kept["scaling-history-1"] = engine.Record{Name: "scaling-history-1", Revision: 5, Data: []byte("no chunk")}
	h := newHistoryKeeper(stored)
	h.Add(decided(noon, 1, 2))
	var fault *autoscale.ChunkError
	if err := h.Flush(t.Context(), noon); !errors.As(err, &fault) || fault.Name != "scaling-history-1" {
		t.Errorf("the error is %v", err)
	}
	h.Add(decided(noon.Add(time.Minute), 2, 3))
	if err := h.Flush(t.Context(), noon.Add(time.Minute)); err != nil {
		t.Errorf("it is told again: %v", err)
	}
	want := map[string]int{"scaling-history-1": 5, "scaling-history-2": 2}
	got := map[string]int{}
	for name, record := range stored.kept {
		got[name] = record.Revision
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// A record takes what a chunk may have.
func TestChunksFitIntoRecords(t *testing.T) {
	if autoscale.MaxChunk > engine.MaxRecord {
		t.Errorf("a chunk may have %d bytes, and a record %d", autoscale.MaxChunk, engine.MaxRecord)
	}
}
