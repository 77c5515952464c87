package enginetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// quiet is how long a stream of events is listened to in which nothing is to be heard.
const quiet = 100 * time.Millisecond

// awaitEvent waits for something to be reported.
func awaitEvent(t *testing.T, events <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-events:
		if !open {
			t.Fatal("the stream of events ended")
		}
	case <-time.After(patience.Limit):
		t.Fatalf("no event told of %s", what)
	}
}

// testRecords shows that records are kept beside the documents, by name, and that nobody is told of them.
func testRecords(t *testing.T, h Harness) {
	ctx := t.Context()
	record := func(name, data string) engine.Record { return engine.Record{Name: name, Data: []byte(data)} }
	e := h.Open(t, h.lab)
	if _, err := e.PutRecord(ctx, record("state", "a")); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a record without a cluster: %v, not ErrNotFound", err)
	}
	h.store(t, e)
	wantRecords := func(when, prefix string, want ...engine.Record) {
		t.Helper()
		stored := map[string]engine.Record{}
		for _, r := range want {
			stored[r.Name] = r
		}
		read, err := e.Records(ctx, prefix)
		must(t, err)
		if diff := cmp.Diff(stored, read); diff != "" {
			t.Errorf("%s, the records that begin with %q (-stored +read):\n%s", when, prefix, diff)
		}
	}
	put := func(r engine.Record) engine.Record {
		t.Helper()
		stored, err := e.PutRecord(ctx, r)
		must(t, err)
		return stored
	}
	wantRecords("before there are any", "")

	watching, end := context.WithCancel(ctx)
	defer end()
	events, err := e.Watch(watching)
	must(t, err)
	state, first, tenth := put(record("state", "\x00a")), put(record("history-1", "b")), put(record("history-10", "c"))
	if state.Revision != 1 {
		t.Errorf("the first write made revision %d", state.Revision)
	}
	wantRecords("of three", "", state, first, tenth)
	wantRecords("of three", "history-", first, tenth)
	wantRecords("of three", "history-10", tenth)
	wantRecords("of three", "history-2")
	if _, err := e.PutRecord(ctx, record("state", "d")); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a write that expects nothing, over a record: %v, not ErrConflict", err)
	}
	if _, err := e.PutRecord(ctx, engine.Record{Name: "none", Revision: 1, Data: []byte("d")}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a write over a record that is not there: %v, not ErrConflict", err)
	}
	state.Data = bytes.Repeat([]byte{0xff}, engine.MaxRecord)
	oneWins(t, func() error {
		_, err := e.PutRecord(ctx, state)
		return err
	})
	state.Revision++
	wantRecords("after a change", "state", state)
	if !h.SharedEvents {
		select {
		case <-events:
			t.Error("records were reported as changes")
		case <-time.After(quiet):
		}
	}

	for what, refused := range map[string]engine.Record{
		"an empty record":                    record("empty", ""),
		"a record that is too large":         {Name: "large", Data: make([]byte, engine.MaxRecord+1)},
		"a record without a name":            record("", "a"),
		"a record with a name that is none":  record("../cluster", "a"),
		"a record with a name that is long":  record(strings.Repeat("a", 33), "a"),
		"a record with a name in upper case": record("State", "a"),
	} {
		if _, err := e.PutRecord(ctx, refused); err == nil || errors.Is(err, engine.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}

	must(t, e.DeleteRecord(ctx, "history-1"))
	must(t, e.DeleteRecord(ctx, "history-1"))
	wantRecords("after the end of one", "history-1", tenth)
	must(t, e.DeleteCluster(ctx))
	h.store(t, e)
	wantRecords("in a new cluster of the name", "")
}
