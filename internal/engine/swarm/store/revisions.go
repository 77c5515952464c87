package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// slot is where an item is stored. The data of a config object can't be changed, so each revision is an object of its
// own, and the highest one is current. Only one writer can create the object of a revision.
type slot struct{ cluster, kind, name string }

// kindLock is the value of [spec.LabelKind] for locks.
const kindLock = "lock"

func (s Items) slot(key engine.Key) slot { return slot{s.in.Cluster, key.Kind.Name, key.Name} }

// isItem reports whether the slot is that of an item, and not of a lock or a member's file.
func (s slot) isItem() bool { return s.kind != "" && s.kind != kindLock && s.kind != spec.KindFile }

// Annotations are the name and labels of the object for a revision of an item.
func (s Items) Annotations(key engine.Key, revision int) swarm.Annotations {
	number := strconv.Itoa(revision)
	labels := map[string]string{
		spec.LabelCluster: s.in.Cluster, spec.LabelKind: key.Kind.Name, spec.LabelRevision: number,
	}
	if key.Name != "" {
		labels[spec.LabelName] = key.Name
	}
	parts := slices.DeleteFunc([]string{s.in.Cluster, key.Kind.Name, key.Name, number},
		func(part string) bool { return part == "" })
	return swarm.Annotations{Name: spec.ItemName(key.Kind, parts...), Labels: labels}
}

// slotOf returns the slot that an object is a revision of.
func slotOf(config swarm.Config) slot {
	labels := config.Spec.Labels
	return slot{labels[spec.LabelCluster], labels[spec.LabelKind], labels[spec.LabelName]}
}

// bySlot returns config objects by their slots.
func bySlot(configs []swarm.Config) map[slot][]swarm.Config {
	of := map[slot][]swarm.Config{}
	for _, config := range configs {
		of[slotOf(config)] = append(of[slotOf(config)], config)
	}
	return of
}

// revision is one revision of what is stored in a slot.
type revision struct {
	number int
	config swarm.Config
}

// revisions returns the revisions in a slot among config objects, the current one last.
func (s slot) revisions(configs []swarm.Config) ([]revision, error) {
	var found []revision
	for _, config := range configs {
		if slotOf(config) != s {
			continue
		}
		number := revisionOf(config)
		if number == 0 {
			return nil, corrupt(config, fmt.Errorf("its label %s is %q, not a positive number", spec.LabelRevision,
				config.Spec.Labels[spec.LabelRevision]))
		}
		found = append(found, revision{number, config})
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// revisionOf returns the revision in an object's label, or 0.
func revisionOf(config swarm.Config) int {
	return spec.NumberIn(config.Spec.Labels, spec.LabelRevision)
}

// latest returns the current revision among config objects, or [engine.ErrNotFound].
func (s slot) latest(configs []swarm.Config) (revision, error) {
	revisions, err := s.revisions(configs)
	if err != nil {
		return revision{}, err
	}
	if len(revisions) == 0 {
		return revision{}, engine.ErrNotFound
	}
	return revisions[len(revisions)-1], nil
}

func corrupt(config swarm.Config, err error) error {
	return &engine.CorruptError{Where: whereOf(config.Spec.Name), Err: err}
}

// whereOf names a config object as the location of an item.
func whereOf(object string) string { return "config object " + object }

// put stores the next revision of an item, and returns the name of its object. It is safe against concurrent writers
// and against a crash at any point: it lists the objects before and after, and the second list decides which writer has
// won.
func (s Items) put(ctx context.Context, item engine.Item) (object string, err error) {
	list := s.beside(item.Key)
	before, err := list(ctx)
	if err != nil {
		return "", err
	}
	if err := s.check(before, item.Key, item.Revision); err != nil {
		return "", err
	}
	m, err := s.in.Connection.Manager(ctx)
	if err != nil {
		return "", err
	}
	annotations := s.Annotations(item.Key, item.Revision+1)
	created, err := m.ConfigCreate(ctx, swarm.ConfigSpec{Annotations: annotations, Data: item.Data})
	if cerrdefs.IsConflict(err) {
		return "", s.explainTaken(ctx, item.Key, annotations.Name)
	}
	if err != nil {
		return "", fmt.Errorf("creating config object %s: %w", annotations.Name, err)
	}
	after, err := list(ctx)
	if err != nil {
		return "", fmt.Errorf("%s of cluster %q was stored, but could not be verified: %w", item.Key, s.in.Cluster, err)
	}
	return annotations.Name, s.settle(ctx, item, created.ID, after)
}

// settle decides whether the object that was created for an item's next revision is the current one, by the objects
// listed afterwards. It removes those that are not.
func (s Items) settle(ctx context.Context, item engine.Item, id string, after []swarm.Config) error {
	base := item.Revision
	revisions, err := s.slot(item.Key).revisions(after)
	if err == nil {
		err = s.check(after, item.Key, base+1)
	}
	if err == nil && base > 0 && !slices.ContainsFunc(revisions, func(r revision) bool { return r.number == base }) {
		// A lower revision is only removed by a writer of a higher one, unless the item was deleted.
		err = fmt.Errorf("%w: %s of cluster %q was deleted", engine.ErrConflict, item.Key, s.in.Cluster)
	}
	if err != nil {
		return errors.Join(err, s.in.Connection.RemoveConfig(ctx, id))
	}
	for _, r := range revisions[:len(revisions)-1] {
		// the item is stored: the next writer removes what is left below it
		_ = s.in.Connection.RemoveConfig(ctx, r.config.ID)
	}
	return nil
}

// check returns [engine.ErrConflict] unless an item has this revision, 0 for none, and [engine.ErrNotFound] for an item
// of a missing cluster.
func (s Items) check(configs []swarm.Config, key engine.Key, expected int) error {
	last, err := s.slot(key).latest(configs)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if last.number != expected {
		return fmt.Errorf("%w: expected revision %d of %s of cluster %q, found %d", engine.ErrConflict, expected, key,
			s.in.Cluster, last.number)
	}
	if key.Kind != domain.ClusterKind && !clusterAmong(configs, s.in.Cluster) {
		return fmt.Errorf("cluster %q: %w", s.in.Cluster, engine.ErrNotFound)
	}
	return nil
}

// clusterAmong reports whether a cluster's document is among config objects.
func clusterAmong(configs []swarm.Config, cluster string) bool {
	return slices.ContainsFunc(configs,
		func(c swarm.Config) bool { return slotOf(c) == slot{cluster: cluster, kind: domain.ClusterKind.Name} })
}

// explainTaken returns the error for a name that is taken by a config object: usually another writer's to the same
// slot.
func (s Items) explainTaken(ctx context.Context, key engine.Key, name string) error {
	taken, err := s.in.Connection.ConfigNamed(ctx, name)
	if err != nil {
		return err
	}
	if taken != nil && slotOf(*taken) != s.slot(key) {
		return dockerapi.Foreign(name)
	}
	return fmt.Errorf("%w: %s of cluster %q was written by another run", engine.ErrConflict, key, s.in.Cluster)
}

// removeObjects removes the listed objects in some slots, and lists again until none is left, as a write may come in
// between.
func (s Items) removeObjects(ctx context.Context, list dockerapi.List[swarm.Config], in func(slot) bool) error {
	for {
		configs, err := list(ctx)
		if err != nil {
			return err
		}
		configs = slices.DeleteFunc(configs, func(c swarm.Config) bool { return !in(slotOf(c)) })
		if len(configs) == 0 {
			return nil
		}
		// The highest revision is removed last: without it, the one below would be current.
		slices.SortFunc(configs, func(a, b swarm.Config) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
		for _, config := range configs {
			if err := s.in.Connection.RemoveConfig(ctx, config.ID); err != nil {
				return err
			}
		}
	}
}

// IsKept reports whether a config object is an item or a lock of a cluster.
func IsKept(config swarm.Config) bool {
	of := slotOf(config)
	return of.isItem() || of.kind == kindLock
}
