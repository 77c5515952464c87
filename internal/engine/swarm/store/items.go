// Package store keeps the state of a cluster as config objects of its Swarm: items, one object per revision, and locks,
// which are objects with a lease.
package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// MaxItem is the maximum size of an item in bytes, a little below the Swarm's limit.
const MaxItem = 1_000_000

// Items keeps a cluster's items as config objects of the Swarm, one per revision.
type Items struct{ in dockerapi.Swarm }

// NewItems returns the items of a cluster. Those that plans read may come from the Swarm's cached reads.
func NewItems(in dockerapi.Swarm) Items { return Items{in} }

// Get returns an item.
func (s Items) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	list := s.in.Reads.Configs
	if !key.Kind.Planned {
		list = s.revisionsOf(key)
	}
	configs, err := list(ctx)
	if err != nil {
		return engine.Item{}, err
	}
	return s.latest(key, configs)
}

// List returns the items of a kind.
func (s Items) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	list := s.in.Reads.Configs
	if !kind.Planned {
		list = s.in.Connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.in.Cluster),
			dockerapi.Labelled(spec.LabelKind, kind.Name))
	}
	configs, err := list(ctx)
	if err != nil {
		return nil, err
	}
	var items []engine.Item
	for own, revisions := range bySlot(configs) {
		if own.cluster != s.in.Cluster || own.kind != kind.Name {
			continue
		}
		item, err := s.latest(engine.Key{Kind: kind, Name: own.name}, revisions)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// Put stores an item.
func (s Items) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	if err := item.Check(engine.Traits{MaxItem: MaxItem}); err != nil {
		return item, err
	}
	name, err := s.put(ctx, item)
	if err != nil {
		return item, err
	}
	item.Revision++
	item.Where = whereOf(name)
	return item, nil
}

// Delete removes an item. With the cluster's, locks are removed too: a holder notices when it releases its lock.
func (s Items) Delete(ctx context.Context, key engine.Key) error {
	own := s.slot(key)
	isOwn := func(found slot) bool { return found == own }
	switch {
	case key.Kind.Planned && key.Kind != domain.ClusterKind:
		return s.removeObjects(ctx, s.objects, isOwn)
	case !key.Kind.Planned:
		return s.removeObjects(ctx, s.revisionsOf(key), isOwn)
	}
	all := s.in.Connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.in.Cluster))
	dependent := func(found slot) bool { return !isOwn(found) && (found.isItem() || found.kind == kindLock) }
	// The cluster's own item is removed last, so that the cluster is still found after a crash. What is written until
	// then is removed with it.
	if err := s.removeObjects(ctx, all, dependent); err != nil {
		return err
	}
	return s.removeObjects(ctx, all, func(found slot) bool { return isOwn(found) || dependent(found) })
}

// latest returns an item's current revision among config objects.
func (s Items) latest(key engine.Key, configs []swarm.Config) (engine.Item, error) {
	last, err := s.slot(key).latest(configs)
	if err != nil {
		return engine.Item{}, err
	}
	return engine.Item{
		Key: key, Revision: last.number, Data: last.config.Spec.Data, Where: whereOf(last.config.Spec.Name),
	}, nil
}

// revisionsOf lists the revisions of an item, and perhaps other objects.
func (s Items) revisionsOf(key engine.Key) dockerapi.List[swarm.Config] {
	return s.in.Connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.in.Cluster),
		dockerapi.Labelled(spec.LabelKind, key.Kind.Name), dockerapi.Labelled(spec.LabelName, key.Name))
}

// beside lists the revisions of an item and the cluster's own item, and perhaps other objects. Items that plans read
// are small enough to be listed all at once.
func (s Items) beside(key engine.Key) dockerapi.List[swarm.Config] {
	if key.Kind.Planned {
		return s.objects
	}
	return func(ctx context.Context) ([]swarm.Config, error) {
		revisions, err := s.revisionsOf(key)(ctx)
		if err != nil {
			return nil, err
		}
		cluster, err := s.clusterObjects(ctx)
		return append(revisions, cluster...), err
	}
}

// objects returns the cluster's config objects that plans read, as they are now.
func (s Items) objects(ctx context.Context) ([]swarm.Config, error) {
	return s.in.Connection.PlannedConfigs(dockerapi.Labelled(spec.LabelCluster, s.in.Cluster))(ctx)
}

// clusterObjects returns the config objects of the cluster's own item, as they are now.
func (s Items) clusterObjects(ctx context.Context) ([]swarm.Config, error) {
	return s.in.Connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.in.Cluster),
		dockerapi.Labelled(spec.LabelKind, domain.ClusterKind.Name))(ctx)
}

// Clusters returns the names of the clusters on the Swarm at an endpoint; see [engine.Driver].
func Clusters(ctx context.Context, endpoint string, settings engine.Settings) ([]string, error) {
	c, err := dockerapi.New(domain.ClusterRef{Endpoint: endpoint}, settings)
	if err != nil {
		return nil, err
	}
	configs, err := c.ConfigsWith(dockerapi.Labelled(spec.LabelKind, domain.ClusterKind.Name))(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, config := range configs {
		names[slotOf(config).cluster] = true
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("cluster %w on the Swarm", engine.ErrNotFound)
	}
	return slices.Sorted(maps.Keys(names)), nil
}
