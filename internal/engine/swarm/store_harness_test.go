//go:build linux

package swarm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// StoreOn is the harness for the suite of stores on a bed.
func StoreOn(bed *testbed.Bed) storetest.Harness {
	return storetest.Harness{
		Open: func(t *testing.T, cluster string) engine.Store {
			e, proxy := documentsOn(t, bed, cluster)
			return proxied{e, proxy}
		},
		MaxItem: store.MaxItem,
		Watch: func(t *testing.T, s engine.Store) <-chan struct{} {
			events, err := proxiedIn(t, s).Watch(t.Context())
			must(t, err)
			return events
		},
		SharedEvents: true,
		Corrupt: func(t *testing.T, s engine.Store, key engine.Key) string {
			return corruptIn(t, proxiedIn(t, s).Engine, key)
		},
		Foreign: func(t *testing.T, s engine.Store) func() error { return foreignIn(t, proxiedIn(t, s).Engine) },
		Dying: func(t *testing.T, s engine.Store, change storetest.Change, moment int) bool {
			survived, err := swarmtest.Dies(t, s, proxiedIn(t, s).proxy, change, moment)
			if survived && err != nil && !errors.Is(err, engine.ErrConflict) {
				t.Error(err)
			}
			return survived
		},
	}
}

// proxied is an engine, and the proxy through which it reaches its manager.
type proxied struct {
	*Engine
	proxy *testbed.Proxy
}

// proxiedIn returns a store as [StoreOn] opened it.
func proxiedIn(t *testing.T, s engine.Store) proxied {
	t.Helper()
	p, ok := s.(proxied)
	if !ok {
		t.Fatalf("%T is not of these tests", s)
	}
	return p
}

// corruptIn replaces an item's object with one whose revision is not a number, and returns the object's name.
func corruptIn(t *testing.T, e *Engine, key engine.Key) (object string) {
	t.Helper()
	item, err := e.Get(t.Context(), key)
	must(t, err)
	object = strings.TrimPrefix(item.Where, "config object ")
	found, err := e.Connection.ConfigNamed(t.Context(), object)
	must(t, err)
	must(t, e.Connection.RemoveConfig(t.Context(), found.ID))
	found.Spec.Labels[spec.LabelRevision] = "one"
	swarmtest.Leave(t, e.Connection, found.Spec)
	return object
}

// foreignIn creates objects that are named like later revisions of items, but lack all or one of the labels that would
// make them items.
func foreignIn(t *testing.T, e *Engine) (untouched func() error) {
	t.Helper()
	var theirs []swarm.Config
	for _, kind := range storetest.Kinds {
		for i, lacking := range []string{"", spec.LabelCluster, spec.LabelKind} {
			annotations := e.Annotations(engine.Key{Kind: kind, Name: "job"}, 7+i)
			delete(annotations.Labels, lacking)
			if lacking == "" {
				annotations = swarm.Annotations{Name: strings.ToUpper(annotations.Name)}
			}
			swarmtest.Leave(t, e.Connection, swarm.ConfigSpec{Annotations: annotations, Data: []byte("theirs")})
			found, err := e.Connection.ConfigNamed(t.Context(), annotations.Name)
			must(t, err)
			theirs = append(theirs, *found)
		}
	}
	return func() error {
		for _, before := range theirs {
			after, err := e.Connection.ConfigNamed(t.Context(), before.Spec.Name)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(&before, after); diff != "" {
				return fmt.Errorf("somebody's config object was changed (-before +after):\n%s", diff)
			}
		}
		return nil
	}
}
