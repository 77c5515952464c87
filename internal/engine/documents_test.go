package engine_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored returns a store that holds a cluster, a group and a policy.
func stored(t *testing.T) (*storetest.Memory, domain.GroupDocument) {
	t.Helper()
	s := &storetest.Memory{}
	_, err := engine.Put(t.Context(), s, domain.ClusterDocument{Spec: domain.Cluster{Name: "lab"}})
	must(t, err)
	group, err := engine.Put(t.Context(), s,
		domain.GroupDocument{Spec: domain.Group{Cluster: "lab", Name: "job"}, Counts: map[string]int{"worker": 2}})
	must(t, err)
	_, err = engine.Put(t.Context(), s,
		domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{Group: "job", Role: "worker", Max: 4}})
	must(t, err)
	return s, group
}

func TestDocuments(t *testing.T) {
	ctx := t.Context()
	s, group := stored(t)
	if want := (domain.Header{Version: domain.DocumentVersion, Revision: 1}); group.Header != want {
		t.Errorf("a new document has %+v", group.Header)
	}
	read, err := engine.Get[domain.GroupDocument](ctx, s, "job")
	must(t, err)
	groups, err := engine.List[domain.GroupDocument](ctx, s)
	must(t, err)
	if diff := cmp.Diff([]domain.GroupDocument{group, group},
		[]domain.GroupDocument{read, groups["job"]}); diff != "" || len(groups) != 1 {
		t.Errorf("as written and as read (-want +got):\n%s", diff)
	}
	cluster, err := engine.Cluster(ctx, s)
	must(t, err)
	policies, err := engine.List[domain.AutoscalingPolicyDocument](ctx, s)
	must(t, err)
	if policies["job/worker"].Spec.Max != 4 || cluster.Spec.Name != "lab" {
		t.Errorf("the cluster is %+v, the policies are %+v", cluster, policies)
	}
	if _, err := engine.Put(ctx, s, domain.GroupDocument{Spec: group.Spec}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a write that expects nothing, over a document: %v", err)
	}
	must(t, engine.Delete[domain.GroupDocument](ctx, s, "job"))
	if _, err := engine.Get[domain.GroupDocument](ctx, s, "job"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a deleted document: %v", err)
	}
}

// TestUnreadableDocuments: a document that this build can't read is an error that names the place and the reason, in a
// list too.
func TestUnreadableDocuments(t *testing.T) {
	s, group := stored(t)
	for data, reason := range map[string]string{
		`{"version":1,`:            "unexpected end",
		`{"version":1,"counts":3}`: "counts",
		`{"version":99}`:           "it has version 99, and this version of Trainyard supports version 1",
		// The version is reported, rather than the field that a later version changed.
		`{"counts":3,"version":99}`: "it has version 99",
		`[]`:                        "it has version 0",
	} {
		s.Set(engine.Item{
			Key: engine.Key{Kind: domain.GroupKind, Name: "job"}, Revision: 1, Data: []byte(data), Where: "shelf 3",
		})
		_, get := engine.Get[domain.GroupDocument](t.Context(), s, "job")
		_, list := engine.List[domain.GroupDocument](t.Context(), s)
		var again engine.Decoded[domain.GroupDocument, *domain.GroupDocument]
		_, listAgain := again.List(t.Context(), s)
		for _, err := range []error{get, list, listAgain} {
			corrupt, is := errors.AsType[*engine.CorruptError](err)
			if !is || corrupt.Where != "shelf 3" || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v", data, err)
			}
		}
	}
	if _, err := engine.List[domain.AutoscalingPolicyDocument](t.Context(), s); err != nil {
		t.Errorf("documents of another type: %v", err)
	}
	_ = group
}

// TestContents: items that are not documents are returned as stored.
func TestContents(t *testing.T) {
	s, _ := stored(t)
	note := domain.Kind{Name: "note", Noun: "note"}
	for _, name := range []string{"1", "2"} {
		_, err := s.Put(t.Context(), engine.Item{Key: engine.Key{Kind: note, Name: name}, Data: []byte("note " + name)})
		must(t, err)
	}
	contents, err := engine.Contents(t.Context(), s, note)
	must(t, err)
	if len(contents) != 2 || string(contents["1"]) != "note 1" || string(contents["2"]) != "note 2" {
		t.Errorf("the notes are %q", contents)
	}
}

// TestDecoded: documents are decoded again only after a change, including a deletion in between.
func TestDecoded(t *testing.T) {
	s, group := stored(t)
	var groups engine.Decoded[domain.GroupDocument, *domain.GroupDocument]
	list := func() map[string]domain.GroupDocument {
		t.Helper()
		documents, err := groups.List(t.Context(), s)
		must(t, err)
		return documents
	}
	first := list()
	if again := list(); !maps.EqualFunc(first, again, func(a, b domain.GroupDocument) bool {
		return cmp.Equal(a, b)
	}) || len(first) != 1 {
		t.Errorf("the groups are %+v, and then %+v", first, again)
	}
	list()["job"].Counts["worker"] = 7 // the document is shared, so this shows whether it is decoded again
	if list()["job"].Counts["worker"] != 7 {
		t.Error("what has not changed is decoded anew")
	}
	group.Counts = map[string]int{"worker": 3}
	group, err := engine.Put(t.Context(), s, group)
	must(t, err)
	if doc := list()["job"]; doc.Counts["worker"] != 3 || doc.Revision != 2 {
		t.Errorf("after a change it is %+v", doc)
	}
	must(t, engine.Delete[domain.GroupDocument](t.Context(), s, "job"))
	if left := list(); len(left) != 0 {
		t.Errorf("after its end there is %v", slices.Collect(maps.Keys(left)))
	}
	_ = group
}
