package swarm

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

// maxItem is how large an item may be, in bytes, a little below what the Swarm takes.
const maxItem = 1_000_000

// store keeps items as config objects of the Swarm, one a revision.
type store struct {
	cluster    string
	connection *dockerapi.Connection
	// planned are the items of all clusters that plans read, and may be remembered.
	planned dockerapi.List[swarm.Config]
}

// Get returns an item.
func (s store) Get(ctx context.Context, key engine.Key) (engine.Item, error) {
	list := s.planned
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
func (s store) List(ctx context.Context, kind domain.Kind) ([]engine.Item, error) {
	list := s.planned
	if !kind.Planned {
		list = s.connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.cluster), dockerapi.Labelled(spec.LabelKind, kind.Name))
	}
	configs, err := list(ctx)
	if err != nil {
		return nil, err
	}
	var items []engine.Item
	for own, revisions := range bySlot(configs) {
		if own.cluster != s.cluster || own.kind != kind.Name {
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
func (s store) Put(ctx context.Context, item engine.Item) (engine.Item, error) {
	if err := item.Check(engine.Traits{MaxItem: maxItem}); err != nil {
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

// Delete removes an item. With the cluster's, locks go, too: whoever holds one learns of it by its release.
func (s store) Delete(ctx context.Context, key engine.Key) error {
	own := s.slot(key)
	isOwn := func(found slot) bool { return found == own }
	switch {
	case key.Kind.Planned && key.Kind != domain.ClusterKind:
		return s.removeObjects(ctx, s.objects, isOwn)
	case !key.Kind.Planned:
		return s.removeObjects(ctx, s.revisionsOf(key), isOwn)
	}
	all := s.connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.cluster))
	dependent := func(found slot) bool { return !isOwn(found) && (found.isItem() || found.kind == kindLock) }
	// The cluster's own item goes last, so that whoever dies before finds the cluster again. What is written until then goes with it.
	if err := s.removeObjects(ctx, all, dependent); err != nil {
		return err
	}
	return s.removeObjects(ctx, all, func(found slot) bool { return isOwn(found) || dependent(found) })
}

// latest returns the revision of an item that counts, among config objects.
func (s store) latest(key engine.Key, configs []swarm.Config) (engine.Item, error) {
	last, err := s.slot(key).latest(configs)
	if err != nil {
		return engine.Item{}, err
	}
	return engine.Item{Key: key, Revision: last.number, Data: last.config.Spec.Data, Where: whereOf(last.config.Spec.Name)}, nil
}

// revisionsOf lists the revisions of an item, and perhaps some more objects.
func (s store) revisionsOf(key engine.Key) dockerapi.List[swarm.Config] {
	return s.connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.cluster), dockerapi.Labelled(spec.LabelKind, key.Kind.Name), dockerapi.Labelled(spec.LabelName, key.Name))
}

// beside lists the revisions of an item and the cluster's own item, and perhaps some more objects. Those that plans read are small enough to be
// listed all at once.
func (s store) beside(key engine.Key) dockerapi.List[swarm.Config] {
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

// objects returns the config objects of the cluster that plans read, as they are now.
func (s store) objects(ctx context.Context) ([]swarm.Config, error) {
	return s.connection.PlannedConfigs(dockerapi.Labelled(spec.LabelCluster, s.cluster))(ctx)
}

// clusterObjects returns the config objects that are the cluster's own item, as they are now.
func (s store) clusterObjects(ctx context.Context) ([]swarm.Config, error) {
	return s.connection.ConfigsWith(dockerapi.Labelled(spec.LabelCluster, s.cluster), dockerapi.Labelled(spec.LabelKind, domain.ClusterKind.Name))(ctx)
}

// clusters returns the names of the clusters on the Swarm at an endpoint; see [engine.Driver].
func clusters(ctx context.Context, endpoint string, settings engine.Settings) ([]string, error) {
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
		return nil, fmt.Errorf("a cluster was %w on the Swarm", engine.ErrNotFound)
	}
	return slices.Sorted(maps.Keys(names)), nil
}
