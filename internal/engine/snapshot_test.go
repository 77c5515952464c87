package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// counting counts the reads of a store. All reads fail while it is broken, and lists fail while it is unlisted.
type counting struct {
	engine.Store
	reads            []string
	broken, unlisted error
}

func (c *counting) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	c.reads = append(c.reads, "get "+key.Kind.Name)
	if c.broken != nil {
		return engine.Item{}, c.broken
	}
	return c.Store.Get(ctx, key)
}

func (c *counting) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	c.reads = append(c.reads, "list "+kind.Name)
	if c.unlisted != nil {
		return nil, c.unlisted
	}
	return c.Store.List(ctx, kind)
}

// TestReadOnce: each item and each list is read once; writes go to the store, based on its own revision.
func TestReadOnce(t *testing.T) {
	ctx := t.Context()
	memory, group := stored(t)
	store := &counting{Store: memory, broken: errors.New("no quorum")}
	s := engine.ReadOnce(store)
	if _, err := engine.Cluster(ctx, s); !errors.Is(err, store.broken) {
		t.Errorf("a store that is broken: %v", err)
	}
	store.broken = nil
	for range 2 {
		_, clusterErr := engine.Cluster(ctx, s)
		_, groupErr := engine.Get[domain.GroupDocument](ctx, s, "job")
		policies, policiesErr := engine.List[domain.AutoscalingPolicyDocument](ctx, s)
		policy, policyErr := engine.Get[domain.AutoscalingPolicyDocument](ctx, s, "job/worker")
		must(t, errors.Join(clusterErr, groupErr, policiesErr, policyErr))
		if len(policies) != 1 || policy.Spec.Max != 4 {
			t.Errorf("the policy is %+v", policy)
		}
		if _, err := engine.Get[domain.AutoscalingPolicyDocument](ctx, s,
			"job/ps"); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("a policy that is not there: %v", err)
		}
	}
	if want := []string{"get cluster", "get cluster", "list group", "list policy"}; !slices.Equal(store.reads, want) {
		t.Errorf("the reads were %q, not %q", store.reads, want)
	}
	group.Counts = nil
	next, err := engine.Put(ctx, s, group)
	must(t, err)
	if read, err := engine.Get[domain.GroupDocument](ctx, s, "job"); err != nil || read.Revision != 1 {
		t.Errorf("after a write, the snapshot has revision %d (%v)", read.Revision, err)
	}
	if _, err := engine.Put(ctx, s, next); err != nil {
		t.Errorf("another write: %v", err)
	}
}

// TestReadOnceBesideUnreadable: a group can be read, and destroyed, though another one is unreadable.
func TestReadOnceBesideUnreadable(t *testing.T) {
	memory, _ := stored(t)
	store := &counting{
		Store: memory, unlisted: &engine.CorruptError{Where: "another group", Err: errors.New("cut off")},
	}
	s := engine.ReadOnce(store)
	if doc, err := engine.Get[domain.GroupDocument](t.Context(), s, "job"); err != nil || doc.Spec.Name != "job" {
		t.Errorf("beside one that can't be read: %+v (%v)", doc, err)
	}
}

var _ engine.Store = &storetest.Memory{}
