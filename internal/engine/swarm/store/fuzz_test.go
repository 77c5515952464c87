package store

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// FuzzSlot: an object's labels identify its revision, and its name the properties of its kind.
func FuzzSlot(f *testing.F) {
	kinds := append([]domain.Kind{domain.ClusterKind, domain.GPUPoolKind}, storetest.Kinds...)
	for i := range kinds {
		f.Add("lab", i, "job", 1)
		f.Add("", i, "", 1<<30)
		f.Add(strings.Repeat("c", 100), i, "a.b/c\x00", 7)
	}
	f.Fuzz(func(t *testing.T, cluster string, kind int, name string, revision int) {
		if kind < 0 || kind >= len(kinds) || revision < 1 || revision > math.MaxInt32 {
			t.Skip("there is none")
		}
		s, key := storeOf(cluster), engine.Key{Kind: kinds[kind], Name: name}
		if key.Kind == domain.ClusterKind {
			key.Name = ""
		}
		config := swarm.Config{Spec: swarm.ConfigSpec{Annotations: s.Annotations(key, revision), Data: []byte("a")}}
		own := s.slot(key)
		last, err := own.latest([]swarm.Config{config})
		if err != nil || last.number != revision || slotOf(config) != own || !own.isItem() {
			t.Errorf("revision %d of %s is read as %d of %s (%v)", revision, own, last.number, slotOf(config), err)
		}
		if len(config.Spec.Name) > longestName || !strings.HasPrefix(config.Spec.Name, spec.ItemPrefix(key.Kind)) ||
			spec.IsQuiet(config.Spec.Name) == key.Kind.Watched {
			t.Errorf("%q is too long for the name of an object, or not known as of its kind", config.Spec.Name)
		}
	})
}

// FuzzDecode: whatever an object holds is either a document that is the same after being written again, or an error
// that names the object.
func FuzzDecode(f *testing.F) {
	for _, data := range []string{
		"", "null", "[]", `{"version":1}`,
		`{"version":1,"spec":{"name":"job","roles":{"w":{"replicas":-1}}},"counts":{"w":-1},"absent":{"w":[]}}`,
		`{"version":1,"before":{"before":{}},"scaled":{"w":{}},"assignments":{"a":{"gpus":[]}}}`,
		`{"version":1,"spec":{"hosts":{"a":{"joined":true}},"agent":{}}}`,
		`{"version":1,"spec":{"metrics":{"a":{"window":"-1s"}}}}`,
		`{"VERSION":1,"version":1,"revision":2,"Revision":2}`, `{"version":1,"spec":{"name":"\ud800"}}`,
		`{"version":1,"started_at":"9999-12-31T23:59:60Z"}`, `{"version":1e0}`,
	} {
		f.Add("1", []byte(data))
	}
	for _, label := range []string{"", "0", "-1", "+1", "01", "one", "99999999999999999999"} {
		f.Add(label, []byte(`{"version":1}`))
	}
	f.Fuzz(func(t *testing.T, label string, data []byte) {
		expectDocument[domain.ClusterDocument](t, label, data)
		expectDocument[domain.GroupDocument](t, label, data)
		expectDocument[domain.GPUPoolDocument](t, label, data)
		expectDocument[domain.AutoscalingPolicyDocument](t, label, data)
	})
}

func expectDocument[T any, P domain.Document[T]](t *testing.T, label string, data []byte) {
	t.Helper()
	key := engine.Key{Kind: P(new(T)).Kind()}
	annotations := func() swarm.Annotations { return storeOf("lab").Annotations(key, 1) }
	get := func(data []byte) (T, error) {
		config := swarm.Config{Spec: swarm.ConfigSpec{Annotations: annotations(), Data: data}}
		config.Spec.Labels[spec.LabelRevision] = label
		return engine.Get[T, P](t.Context(), storeOf("lab", config), key.Name)
	}
	doc, err := get(data)
	if err != nil {
		corrupt, is := errors.AsType[*engine.CorruptError](err)
		if name := annotations().Name; !is || !strings.Contains(corrupt.Where, name) {
			t.Errorf("the error does not name the object %s: %v", name, err)
		}
		return
	}
	if number, err := strconv.Atoi(label); err != nil || P(&doc).Head().Revision != number {
		t.Errorf("revision %q is read as %d", label, P(&doc).Head().Revision)
	}
	written, err := json.Marshal(doc)
	if err != nil {
		t.Fatalf("what was read can't be written: %v", err)
	}
	again, err := get(written)
	if err != nil {
		t.Fatalf("%s is written, and can't be read: %v", written, err)
	}
	if rewritten, err := json.Marshal(again); err != nil || string(rewritten) != string(written) {
		t.Errorf("%s is written, and %s is read (%v)", written, rewritten, err)
	}
}
