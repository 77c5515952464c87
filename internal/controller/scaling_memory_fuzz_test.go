package controller

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// FuzzMemory: any stored state is read, or reported by name; what was read is the same after being stored again.
func FuzzMemory(f *testing.F) {
	zip := func(text string) []byte {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write([]byte(text)); err != nil {
			f.Fatal(err)
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return zipped.Bytes()
	}
	for _, name := range []string{"0", "7", "1023", "1024", "-1", "", "x", "01", "+1", "99999999999999999999"} {
		f.Add(name, []byte(
			`{"job/worker":{"since":"2026-03-02T12:00:00Z","windows":{"{}":{"length":"1m","values":[{"at":"2026-03-02T12:00:00Z","value":1}]}}}}`,
		), true)
	}
	for _, text := range []string{
		"", "null", "[]", "{}", `{"":null}`, `{"a":{"metrics":{"m":{"forecast":{"season":{}}}}}}`,
		`{"a":{"windows":{"":{}}}}`, `{"a":1}`, `{"a":{}} and more`,
	} {
		f.Add("3", []byte(text), true)
		f.Add("3", []byte(text), false)
	}
	f.Add("3", zip(`{"a":{}}`)[:20], false)
	f.Fuzz(func(t *testing.T, name string, data []byte, plain bool) {
		if plain {
			data = zip(string(data))
		}
		s := newItems()
		stored := engine.Item{Key: engine.Key{Kind: memoryKind, Name: name}, Revision: 1, Data: data}
		s.Set(stored)
		m := newMemory(s)
		known, unread, err := m.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if unread != nil && (len(known) > 0 || !strings.Contains(unread.Error(), stored.String())) {
			t.Errorf("%d policies are read, and %v", len(known), unread)
		}
		all := map[string]*followed{}
		for key, policy := range known {
			all[key] = &followed{state: policy.State, windows: policy.Windows}
		}
		if err := m.store(t.Context(), all, noon); err != nil {
			t.Fatalf("what was read can't be stored: %v", err)
		}
		again, _, err := newMemory(s).load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packed(t, known), packed(t, again)) {
			t.Errorf("%+v is stored, and %+v is read", known, again)
		}
	})
}

func packed(t *testing.T, value any) []byte {
	t.Helper()
	data, err := pack(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
