package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// documentsLock guards the moment between looking at a document's revision and replacing it.
const (
	documentsLock  = "documents"
	documentsRetry = 2 * time.Millisecond
)

// Cluster returns the cluster's document.
func (e *Engine) Cluster(context.Context) (domain.ClusterDocument, error) {
	doc, err := statedir.Read[domain.ClusterDocument](e.dir.ClusterDocument())
	return doc, checked(err, doc.Version, e.dir.ClusterDocument())
}

// PutCluster stores the cluster's document.
func (e *Engine) PutCluster(ctx context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	if err := e.dir.Create(); err != nil {
		return doc, fmt.Errorf("the state directory can't be made: %w", err)
	}
	err := e.replace(ctx, func() error {
		stored, err := e.Cluster(ctx)
		if err := mayReplace(err, stored.Revision, doc.Revision); err != nil {
			return err
		}
		doc.Version = domain.DocumentVersion
		doc.Revision++
		return statedir.Write(e.dir.ClusterDocument(), doc, statedir.Durable)
	})
	return doc, err
}

// DeleteCluster ends whatever still runs, the supervisor last, and removes the state directory, but for working
// directories in which something was left.
func (e *Engine) DeleteCluster(ctx context.Context) error {
	// The controller first: it might be about to restart a group, and would start members that were just removed.
	if err := e.StopController(ctx); err != nil {
		return err
	}
	if err := e.removeAll(ctx); err != nil {
		return err
	}
	if err := statedir.Delete(e.dir.ClusterDocument()); err != nil {
		return err
	}
	err := e.dir.AwaitRelease(ctx, statedir.SupervisorLock)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("the supervisor of cluster %q has not ended: %w", e.dir.Cluster, err)
	}
	return e.dir.Remove()
}

// Group returns the document of one group.
func (e *Engine) Group(_ context.Context, name string) (domain.GroupDocument, error) {
	path := e.dir.Document(statedir.Groups, name)
	doc, err := statedir.Read[domain.GroupDocument](path)
	return doc, checked(err, doc.Version, path)
}

// Groups returns the documents of all groups.
func (e *Engine) Groups(ctx context.Context) (map[string]domain.GroupDocument, error) {
	return all(e, statedir.Groups, func(name string) (domain.GroupDocument, error) { return e.Group(ctx, name) })
}

// GPUPools returns the documents of all GPU pools.
func (e *Engine) GPUPools(context.Context) (map[string]domain.GPUPoolDocument, error) {
	return all(e, statedir.GPUPools, e.gpuPool)
}

func (e *Engine) gpuPool(name string) (domain.GPUPoolDocument, error) {
	path := e.dir.Document(statedir.GPUPools, name)
	doc, err := statedir.Read[domain.GPUPoolDocument](path)
	return doc, checked(err, doc.Version, path)
}

// all returns the documents in a folder by name.
func all[T any](e *Engine, folder string, read func(name string) (T, error)) (map[string]T, error) {
	names, err := e.dir.List(folder)
	if err != nil {
		return nil, err
	}
	documents := make(map[string]T, len(names))
	for name := range names {
		doc, err := read(name)
		if errors.Is(err, engine.ErrNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		documents[name] = doc
	}
	return documents, nil
}

// PutGroup stores a group's document.
func (e *Engine) PutGroup(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	err := e.replace(ctx, func() error {
		stored, err := e.Group(ctx, doc.Spec.Name)
		if err := mayReplace(err, stored.Revision, doc.Revision); err != nil {
			return err
		}
		doc.Version = domain.DocumentVersion
		doc.Revision++
		return statedir.Write(e.dir.Document(statedir.Groups, doc.Spec.Name), doc, statedir.Durable)
	})
	return doc, err
}

// DeleteGroup removes the document of a group.
func (e *Engine) DeleteGroup(_ context.Context, group string) error {
	return statedir.Delete(e.dir.Document(statedir.Groups, group))
}

// PutGPUPool stores a pool's document.
func (e *Engine) PutGPUPool(ctx context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	err := e.replace(ctx, func() error {
		// A directory that an earlier version made has no folder for pools.
		if err := e.dir.Create(); err != nil {
			return err
		}
		stored, err := e.gpuPool(doc.Spec.Name)
		if err := mayReplace(err, stored.Revision, doc.Revision); err != nil {
			return err
		}
		doc.Version = domain.DocumentVersion
		doc.Revision++
		return statedir.Write(e.dir.Document(statedir.GPUPools, doc.Spec.Name), doc, statedir.Durable)
	})
	return doc, err
}

// DeleteGPUPool removes the document of a pool.
func (e *Engine) DeleteGPUPool(_ context.Context, pool string) error {
	return statedir.Delete(e.dir.Document(statedir.GPUPools, pool))
}

// replace runs a function while nobody else replaces a document of the cluster.
func (e *Engine) replace(ctx context.Context, write func() error) (err error) {
	for {
		lock, err := e.dir.Lock(documentsLock, engine.Holder{Who: "a write of a document", Since: time.Now()})
		var locked *engine.LockedError
		switch {
		case err == nil:
			return errors.Join(write(), lock.Release())
		case errors.Is(err, engine.ErrNotFound):
			return fmt.Errorf("cluster %q: %w", e.dir.Cluster, err)
		case !errors.As(err, &locked):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(documentsRetry):
		}
	}
}

func mayReplace(err error, stored, expected int) error {
	switch {
	case err != nil && !errors.Is(err, engine.ErrNotFound):
		return err
	case stored != expected:
		return fmt.Errorf("%w: expected revision %d, found %d", engine.ErrConflict, expected, stored)
	}
	return nil
}

// checked returns a reading error, or one about a document of a version that this build does not know.
func checked(err error, version int, path string) error {
	if err == nil && version != domain.DocumentVersion {
		return &engine.CorruptError{Where: path, Err: fmt.Errorf("it has version %d, and this build reads version %d", version, domain.DocumentVersion)}
	}
	return err
}
