package controller

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// FuzzHookCalls: any stored hook calls are read, or reported by name, and are replaced by the next write.
func FuzzHookCalls(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", "[]",
		`{"version":1,"policy":"job/worker","calls":[{"id":"x","moment":"before_removal","at":"2026-03-02T12:00:00Z","from":4,"to":2,"told":"2026-03-02T12:00:00Z"}]}`,
		`{"calls":[{}]}`, `{"calls":[{"told":1}]}`, `{"policy":"other/one"}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newItems()
		item := engine.Item{
			Key: engine.Key{Kind: new(domain.HookCallsDocument).Kind(), Name: "job/worker"}, Revision: 3, Data: data,
		}
		s.Set(item)
		known, unread, err := loadHookCalls(t.Context(), s)
		if err != nil || known["job/worker"] == nil ||
			unread != nil && !strings.Contains(unread.Error(), item.String()) {
			t.Fatalf("there are %v; %v, %v", known, unread, err)
		}
		call := domain.HookCall{ID: "another", Moment: domain.AfterAddition}
		if err := known["job/worker"].put(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		again, unread, err := loadHookCalls(t.Context(), s)
		if err != nil || unread != nil || indexOf(again["job/worker"].now, call.ID) < 0 {
			t.Errorf("what was stored is read as %+v; %v, %v", again, unread, err)
		}
	})
}
