package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// maxDocument is how large a document may be, in bytes, a little below what the Swarm takes.
const maxDocument = 1_000_000

func (e *Engine) clusterSlot() slot            { return slot{cluster: e.cluster.Name, kind: kindCluster} }
func (e *Engine) groupSlot(group string) slot  { return slot{e.cluster.Name, kindGroup, group} }
func (e *Engine) gpuPoolSlot(pool string) slot { return slot{e.cluster.Name, kindGPUPool, pool} }
func (e *Engine) policySlot(key string) slot   { return slot{e.cluster.Name, kindPolicy, key} }

// Cluster returns the cluster's document.
func (e *Engine) Cluster(ctx context.Context) (domain.ClusterDocument, error) {
	return readDocument[domain.ClusterDocument](ctx, e, e.clusterSlot())
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

// PutCluster stores the cluster's document.
func (e *Engine) PutCluster(ctx context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	return putDocument(ctx, e, e.clusterSlot(), doc)
}

// Group returns the document of one group.
func (e *Engine) Group(ctx context.Context, name string) (domain.GroupDocument, error) {
	return readDocument[domain.GroupDocument](ctx, e, e.groupSlot(name))
}

// Groups returns the documents of all groups.
func (e *Engine) Groups(ctx context.Context) (map[string]domain.GroupDocument, error) {
	return readDocuments[domain.GroupDocument](ctx, e, kindGroup)
}

// PutGroup stores a group's document. Without the cluster's it is [engine.ErrNotFound].
func (e *Engine) PutGroup(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	stored, err := putDocument(ctx, e, e.groupSlot(doc.Spec.Name), doc)
	if err == nil {
		e.sweepAfter(ctx, stored)
	}
	return stored, err
}

// DeleteGroup removes the document of a group, and before that what is left of its members: containers, files and secrets.
func (e *Engine) DeleteGroup(ctx context.Context, group string) error {
	e.clearContainers(ctx, group)
	if err := e.sweep(ctx, group, nil); err != nil {
		return err
	}
	return e.removeDocument(ctx, e.groupSlot(group))
}

// GPUPools returns the documents of all GPU pools.
func (e *Engine) GPUPools(ctx context.Context) (map[string]domain.GPUPoolDocument, error) {
	return readDocuments[domain.GPUPoolDocument](ctx, e, kindGPUPool)
}

// PutGPUPool stores a pool's document. Without the cluster's it is [engine.ErrNotFound].
func (e *Engine) PutGPUPool(ctx context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	return putDocument(ctx, e, e.gpuPoolSlot(doc.Spec.Name), doc)
}

// DeleteGPUPool removes the document of a pool.
func (e *Engine) DeleteGPUPool(ctx context.Context, pool string) error {
	return e.removeDocument(ctx, e.gpuPoolSlot(pool))
}

// Policies returns the documents of all autoscaling policies.
func (e *Engine) Policies(ctx context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	return readDocuments[domain.AutoscalingPolicyDocument](ctx, e, kindPolicy)
}

// PutPolicy stores a policy's document. Without the cluster's it is [engine.ErrNotFound].
func (e *Engine) PutPolicy(ctx context.Context, doc domain.AutoscalingPolicyDocument) (domain.AutoscalingPolicyDocument, error) {
	return putDocument(ctx, e, e.policySlot(doc.Spec.Key()), doc)
}

// DeletePolicy removes the document of a policy.
func (e *Engine) DeletePolicy(ctx context.Context, key string) error {
	return e.removeDocument(ctx, e.policySlot(key))
}

// readDocument returns the document in a slot, or [engine.ErrNotFound].
func readDocument[T any](ctx context.Context, e *Engine, s slot) (doc T, err error) {
	configs, err := e.reads.configs(ctx)
	if err != nil {
		return doc, err
	}
	return decode[T](s, configs)
}

// readDocuments returns the documents of a kind by name.
func readDocuments[T any](ctx context.Context, e *Engine, kind string) (map[string]T, error) {
	configs, err := e.reads.configs(ctx)
	if err != nil {
		return nil, err
	}
	documents := map[string]T{}
	for s, revisions := range bySlot(configs) {
		if s.cluster != e.cluster.Name || s.kind != kind {
			continue
		}
		if documents[s.name], err = decode[T](s, revisions); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// decode returns a document as stored in config objects, or [engine.ErrNotFound].
func decode[T any](s slot, configs []swarm.Config) (doc T, err error) {
	last, err := s.latest(configs)
	if err != nil {
		return doc, err
	}
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

// putDocument stores a document in a slot, on top of its revision.
func putDocument[T any, P domain.Stored[T]](ctx context.Context, e *Engine, s slot, doc T) (T, error) {
	next := domain.Next[T, P](doc)
	data, err := json.Marshal(next)
	if err != nil {
		return doc, fmt.Errorf("the document of %s can't be written: %w", s, err)
	}
	if len(data) > maxDocument {
		return doc, fmt.Errorf("the document of %s takes %d bytes, and a Swarm stores at most %d: move files, environment and long commands into "+
			"the image or a volume, or split it up", s, len(data), maxDocument)
	}
	_, base := P(&doc).Header()
	readable := func(configs []swarm.Config) error {
		_, err := decode[T](s, configs)
		return err
	}
	if err := e.put(ctx, write{slot: s, base: *base, data: data, list: e.objects, readable: readable}); err != nil {
		return doc, err
	}
	return next, nil
}

// removeDocument removes the document in a slot.
func (e *Engine) removeDocument(ctx context.Context, own slot) error {
	return e.removeObjects(ctx, e.objects, func(s slot) bool { return s == own })
}

// deleteDocuments removes the cluster's documents, locks and records; the cluster's own document goes last, so that whoever dies before
// finds the cluster again. The holder of a lock is told by its release.
func (e *Engine) deleteDocuments(ctx context.Context) error {
	isDependent := func(s slot) bool { return s.kind == kindLock || s.isDocument() && s.kind != kindCluster }
	if err := e.removeObjects(ctx, e.objects, isDependent); err != nil {
		return err
	}
	if err := e.removeRecords(ctx); err != nil {
		return err
	}
	if err := e.removeObjects(ctx, e.objects, func(s slot) bool { return isDependent(s) || s == e.clusterSlot() }); err != nil {
		return err
	}
	return e.removeRecords(ctx) // one may have been written before the cluster was gone
}
