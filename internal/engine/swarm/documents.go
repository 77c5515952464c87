package swarm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// maxDocument is how large a document may be, in bytes, a little below what the Swarm takes.
const maxDocument = 1_000_000

// slot is where a document is stored. The data of a config object can't be changed, so that each revision is an object of its own, and
// the highest one counts. Only one writer can create the object of a revision.
type slot struct{ cluster, kind, name string }

// The kinds of config objects that are documents or locks, by [labelKind].
const (
	kindCluster = "cluster"
	kindGroup   = "group"
	kindGPUPool = "gpu-pool"
	kindLock    = "lock"
)

// namedBy is the label that names what a document is about, by its kind.
var namedBy = map[string]string{kindGroup: labelGroup, kindGPUPool: labelPool}

func (e *Engine) clusterSlot() slot            { return slot{cluster: e.cluster.Name, kind: kindCluster} }
func (e *Engine) groupSlot(group string) slot  { return slot{e.cluster.Name, kindGroup, group} }
func (e *Engine) gpuPoolSlot(pool string) slot { return slot{e.cluster.Name, kindGPUPool, pool} }

// String names the document in an error.
func (s slot) String() string {
	switch s.kind {
	case kindCluster:
		return fmt.Sprintf("cluster %q", s.cluster)
	case kindGPUPool:
		return fmt.Sprintf("GPU pool %q of cluster %q", s.name, s.cluster)
	}
	return fmt.Sprintf("group %q of cluster %q", s.name, s.cluster)
}

// annotations are the name and labels of the object of a revision.
func (s slot) annotations(revision int) swarm.Annotations {
	parts := []string{s.cluster, s.kind}
	labels := map[string]string{labelCluster: s.cluster, labelKind: s.kind, labelRevision: strconv.Itoa(revision)}
	if s.name != "" {
		parts = append(parts, s.name)
		labels[namedBy[s.kind]] = s.name
	}
	return swarm.Annotations{Name: objectName(append(parts, strconv.Itoa(revision))...), Labels: labels}
}

// slotOf returns the slot of which an object is a revision.
func slotOf(config swarm.Config) slot {
	labels := config.Spec.Labels
	kind := labels[labelKind]
	return slot{labels[labelCluster], kind, labels[cmp.Or(namedBy[kind], labelGroup)]}
}

// revision is one revision of a document.
type revision struct {
	number int
	config swarm.Config
}

// revisions returns the revisions of a document among config objects, the one that counts last.
func (s slot) revisions(configs []swarm.Config) ([]revision, error) {
	var found []revision
	for _, config := range configs {
		if slotOf(config) != s {
			continue
		}
		number := revisionOf(config)
		if number == 0 {
			return nil, corrupt(config, fmt.Errorf("its label %s is %q, not a number from 1 on", labelRevision, config.Spec.Labels[labelRevision]))
		}
		found = append(found, revision{number, config})
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// revisionOf returns the revision that an object is labelled with, or 0.
func revisionOf(config swarm.Config) int {
	number, err := strconv.Atoi(config.Spec.Labels[labelRevision])
	if err != nil || number < 1 {
		return 0
	}
	return number
}

// latest returns a document as stored in config objects, or [engine.ErrNotFound].
func latest[T any](s slot, configs []swarm.Config) (doc T, err error) {
	revisions, err := s.revisions(configs)
	if err != nil {
		return doc, err
	}
	if len(revisions) == 0 {
		return doc, engine.ErrNotFound
	}
	last := revisions[len(revisions)-1]
	var header struct{ Version, Revision int }
	err = json.Unmarshal(last.config.Spec.Data, &header)
	switch {
	case err != nil:
	case header.Version != domain.DocumentVersion:
		err = fmt.Errorf("it has version %d, and this build reads version %d", header.Version, domain.DocumentVersion)
	case header.Revision != last.number:
		err = fmt.Errorf("it holds revision %d, and its label says %d", header.Revision, last.number)
	default:
		err = json.Unmarshal(last.config.Spec.Data, &doc)
	}
	if err != nil {
		return doc, corrupt(last.config, err)
	}
	return doc, nil
}

func corrupt(config swarm.Config, err error) error {
	return &engine.CorruptError{Where: "config object " + config.Spec.Name, Err: err}
}

// Cluster returns the cluster's document.
func (e *Engine) Cluster(ctx context.Context) (doc domain.ClusterDocument, err error) {
	configs, err := e.reads.configs(ctx)
	if err != nil {
		return doc, err
	}
	return latest[domain.ClusterDocument](e.clusterSlot(), configs)
}

// Clusters returns the names of the clusters on the Swarm; see [engine.List].
func Clusters(ctx context.Context, settings engine.Settings) ([]string, error) {
	e, err := Open(domain.ClusterRef{}, settings, Program{})
	if err != nil {
		return nil, err
	}
	configs, err := e.findConfigs(ctx, filters.Arg("label", labelKind+"="+kindCluster))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, config := range configs {
		names = append(names, slotOf(config).cluster)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("a cluster was %w on the Swarm", engine.ErrNotFound)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Group returns the document of one group.
func (e *Engine) Group(ctx context.Context, name string) (doc domain.GroupDocument, err error) {
	configs, err := e.reads.configs(ctx)
	if err != nil {
		return doc, err
	}
	return latest[domain.GroupDocument](e.groupSlot(name), configs)
}

// Groups returns the documents of all groups.
func (e *Engine) Groups(ctx context.Context) (map[string]domain.GroupDocument, error) {
	return all[domain.GroupDocument](ctx, e, kindGroup)
}

// GPUPools returns the documents of all GPU pools.
func (e *Engine) GPUPools(ctx context.Context) (map[string]domain.GPUPoolDocument, error) {
	return all[domain.GPUPoolDocument](ctx, e, kindGPUPool)
}

// all returns the documents of a kind by name.
func all[T any](ctx context.Context, e *Engine, kind string) (map[string]T, error) {
	configs, err := e.reads.configs(ctx)
	if err != nil {
		return nil, err
	}
	bySlot := map[slot][]swarm.Config{}
	for _, config := range configs {
		if s := slotOf(config); s.cluster == e.cluster.Name && s.kind == kind {
			bySlot[s] = append(bySlot[s], config)
		}
	}
	documents := make(map[string]T, len(bySlot))
	for s, revisions := range bySlot {
		if documents[s.name], err = latest[T](s, revisions); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// PutCluster stores the cluster's document.
func (e *Engine) PutCluster(ctx context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	next := doc
	next.Version = domain.DocumentVersion
	next.Revision++
	if err := put(ctx, e, e.clusterSlot(), doc.Revision, next); err != nil {
		return doc, err
	}
	return next, nil
}

// PutGroup stores a group's document. Without the cluster's it is [engine.ErrNotFound].
func (e *Engine) PutGroup(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	next := doc
	next.Version = domain.DocumentVersion
	next.Revision++
	if err := put(ctx, e, e.groupSlot(doc.Spec.Name), doc.Revision, next); err != nil {
		return doc, err
	}
	e.sweepAfter(ctx, next)
	return next, nil
}

// PutGPUPool stores a pool's document. Without the cluster's it is [engine.ErrNotFound].
func (e *Engine) PutGPUPool(ctx context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	next := doc
	next.Version = domain.DocumentVersion
	next.Revision++
	if err := put(ctx, e, e.gpuPoolSlot(doc.Spec.Name), doc.Revision, next); err != nil {
		return doc, err
	}
	return next, nil
}

// put stores the revision after base of a document. It may be called by several at a time, and may die at any point: the objects are looked
// at before and after, and what is found then decides which of the writers has won.
func put[T any](ctx context.Context, e *Engine, s slot, base int, doc T) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("the document of %s can't be written: %w", s, err)
	}
	if len(data) > maxDocument {
		return fmt.Errorf("the document of %s takes %d bytes, and a Swarm stores at most %d: move files, environment and long commands into "+
			"the image or a volume, or split it up", s, len(data), maxDocument)
	}
	before, err := e.objects(ctx)
	if err != nil {
		return err
	}
	if _, err := latest[T](s, before); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	if err := s.check(before, base); err != nil {
		return err
	}
	m, err := e.manager(ctx)
	if err != nil {
		return err
	}
	annotations := s.annotations(base + 1)
	created, err := m.ConfigCreate(ctx, swarm.ConfigSpec{Annotations: annotations, Data: data})
	if cerrdefs.IsConflict(err) {
		return e.explainTaken(ctx, s, annotations.Name)
	}
	if err != nil {
		return fmt.Errorf("config object %s can't be created: %w", annotations.Name, err)
	}
	after, err := e.objects(ctx)
	if err != nil {
		return fmt.Errorf("%s was stored, but not looked at again: %w", s, err)
	}
	return e.settle(ctx, s, base, created.ID, after)
}

// settle tells whether the object that was created for the revision after base is the document, by what else is there. It removes
// what is not.
func (e *Engine) settle(ctx context.Context, s slot, base int, id string, after []swarm.Config) error {
	revisions, err := s.revisions(after)
	if err == nil {
		err = s.check(after, base+1)
	}
	if err == nil && base > 0 && !slices.ContainsFunc(revisions, func(r revision) bool { return r.number == base }) {
		// Nobody but a writer of a higher revision removes a lower one, unless the document was deleted.
		err = fmt.Errorf("%w: %s was deleted", engine.ErrConflict, s)
	}
	if err != nil {
		return errors.Join(err, e.removeConfig(ctx, id))
	}
	for _, r := range revisions[:len(revisions)-1] {
		_ = e.removeConfig(ctx, r.config.ID) // the document is stored: the next writer removes what is left below it
	}
	return nil
}

// check returns [engine.ErrConflict] unless the document is stored with this revision, 0 for none, and [engine.ErrNotFound]
// for one of a cluster that is not there.
func (s slot) check(configs []swarm.Config, expected int) error {
	revisions, err := s.revisions(configs)
	if err != nil {
		return err
	}
	found := 0
	if len(revisions) > 0 {
		found = revisions[len(revisions)-1].number
	}
	if found != expected {
		return fmt.Errorf("%w: expected revision %d of %s, found %d", engine.ErrConflict, expected, s, found)
	}
	if s.kind != kindCluster && !clusterAmong(configs, s.cluster) {
		return fmt.Errorf("cluster %q: %w", s.cluster, engine.ErrNotFound)
	}
	return nil
}

// clusterAmong tells whether a cluster's document is among config objects.
func clusterAmong(configs []swarm.Config, cluster string) bool {
	return slices.ContainsFunc(configs, func(c swarm.Config) bool { return slotOf(c) == slot{cluster: cluster, kind: kindCluster} })
}

// explainTaken returns the error for a name that somebody's config object has: another writer's of the same document, as a rule.
func (e *Engine) explainTaken(ctx context.Context, s slot, name string) error {
	taken, err := e.configNamed(ctx, name)
	if err != nil {
		return err
	}
	if taken != nil && slotOf(*taken) != s {
		return foreign(name)
	}
	return fmt.Errorf("%w: %s was written by another run", engine.ErrConflict, s)
}

// DeleteGroup removes the document of a group, and before that what is left of its members: containers, files and secrets.
func (e *Engine) DeleteGroup(ctx context.Context, group string) error {
	e.clearContainers(ctx, group)
	if err := e.sweep(ctx, group); err != nil {
		return err
	}
	own := e.groupSlot(group)
	return e.removeObjects(ctx, func(s slot) bool { return s == own })
}

// DeleteGPUPool removes the document of a pool.
func (e *Engine) DeleteGPUPool(ctx context.Context, pool string) error {
	own := e.gpuPoolSlot(pool)
	return e.removeObjects(ctx, func(s slot) bool { return s == own })
}

// deleteDocuments removes the cluster's documents and locks; the cluster's own document goes last, so that whoever dies before
// finds the cluster again. The holder of a lock is told by its release.
func (e *Engine) deleteDocuments(ctx context.Context) error {
	isDependent := func(s slot) bool { return s.kind == kindGroup || s.kind == kindGPUPool || s.kind == kindLock }
	if err := e.removeObjects(ctx, isDependent); err != nil {
		return err
	}
	return e.removeObjects(ctx, func(s slot) bool { return isDependent(s) || s == e.clusterSlot() })
}

// removeObjects removes the documents and locks in some slots, until none is left: a write may come in between.
func (e *Engine) removeObjects(ctx context.Context, in func(slot) bool) error {
	for {
		configs, err := e.objects(ctx)
		if err != nil {
			return err
		}
		configs = slices.DeleteFunc(configs, func(c swarm.Config) bool { return !in(slotOf(c)) })
		if len(configs) == 0 {
			return nil
		}
		// The highest revision goes last: without it the one below would count.
		slices.SortFunc(configs, func(a, b swarm.Config) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
		for _, config := range configs {
			if err := e.removeConfig(ctx, config.ID); err != nil {
				return err
			}
		}
	}
}
