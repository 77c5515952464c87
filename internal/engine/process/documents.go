package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
	return read[domain.ClusterDocument](e.dir.ClusterDocument())
}

// PutCluster stores the cluster's document.
func (e *Engine) PutCluster(ctx context.Context, doc domain.ClusterDocument) (domain.ClusterDocument, error) {
	if err := e.dir.Create(); err != nil {
		return doc, fmt.Errorf("the state directory can't be made: %w", err)
	}
	return put(ctx, e, e.dir.ClusterDocument(), doc)
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
	return read[domain.GroupDocument](e.file(statedir.Groups, name))
}

// Groups returns the documents of all groups.
func (e *Engine) Groups(context.Context) (map[string]domain.GroupDocument, error) {
	return all[domain.GroupDocument](e, statedir.Groups, "")
}

// PutGroup stores a group's document.
func (e *Engine) PutGroup(ctx context.Context, doc domain.GroupDocument) (domain.GroupDocument, error) {
	return put(ctx, e, e.file(statedir.Groups, doc.Spec.Name), doc)
}

// DeleteGroup removes the document of a group.
func (e *Engine) DeleteGroup(_ context.Context, group string) error {
	return statedir.Delete(e.file(statedir.Groups, group))
}

// GPUPools returns the documents of all GPU pools.
func (e *Engine) GPUPools(context.Context) (map[string]domain.GPUPoolDocument, error) {
	return all[domain.GPUPoolDocument](e, statedir.GPUPools, "")
}

// PutGPUPool stores a pool's document.
func (e *Engine) PutGPUPool(ctx context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	return put(ctx, e, e.file(statedir.GPUPools, doc.Spec.Name), doc)
}

// DeleteGPUPool removes the document of a pool.
func (e *Engine) DeleteGPUPool(_ context.Context, pool string) error {
	return statedir.Delete(e.file(statedir.GPUPools, pool))
}

// Policies returns the documents of all autoscaling policies.
func (e *Engine) Policies(ctx context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	return e.policies(ctx)
}

func (e *Engine) readPolicies(context.Context) (map[string]domain.AutoscalingPolicyDocument, error) {
	listed, err := e.policyFiles.List()
	if err != nil {
		return nil, err
	}
	return documents(listed, "", func(name string, stamp statedir.Stamp) (domain.AutoscalingPolicyDocument, error) {
		doc, err := e.policyFiles.Read(name, stamp)
		return known(e.dir.Document(statedir.Policies, name), doc, err)
	})
}

// PutPolicy stores a policy's document.
func (e *Engine) PutPolicy(ctx context.Context, doc domain.AutoscalingPolicyDocument) (domain.AutoscalingPolicyDocument, error) {
	return put(ctx, e, e.file(statedir.Policies, doc.Spec.Key()), doc)
}

// DeletePolicy removes the document of a policy.
func (e *Engine) DeletePolicy(_ context.Context, key string) error {
	return statedir.Delete(e.file(statedir.Policies, key))
}

// The slash in a policy's key is a dot in the name of its file: no other name has either.
const slash, dot = "/", "."

// file is where the document of a key is stored.
func (e *Engine) file(folder, key string) string {
	return e.dir.Document(folder, strings.ReplaceAll(key, slash, dot))
}

// all returns the documents in a folder whose keys begin with a prefix, by key.
func all[T any, P domain.Stored[T]](e *Engine, folder, prefix string) (map[string]T, error) {
	listed, err := e.dir.List(folder)
	if err != nil {
		return nil, err
	}
	return documents(listed, prefix, func(name string, _ statedir.Stamp) (T, error) { return read[T, P](e.dir.Document(folder, name)) })
}

// documents returns those of the documents that were listed whose keys begin with a prefix, by key.
func documents[T any](listed map[string]statedir.Stamp, prefix string, read func(name string, stamp statedir.Stamp) (T, error)) (map[string]T, error) {
	found := make(map[string]T, len(listed))
	for name, stamp := range listed {
		key := strings.ReplaceAll(name, dot, slash)
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		doc, err := read(name, stamp)
		if errors.Is(err, engine.ErrNotFound) {
			continue // deleted since it was listed
		}
		if err != nil {
			return nil, err
		}
		found[key] = doc
	}
	return found, nil
}

// read returns the document in a file, or an error about one of a version that this build does not know.
func read[T any, P domain.Stored[T]](path string) (T, error) {
	doc, err := statedir.Read[T](path)
	return known[T, P](path, doc, err)
}

// known returns a document that was read from a file, or an error about one of a version that this build does not know.
func known[T any, P domain.Stored[T]](path string, doc T, err error) (T, error) {
	if err != nil {
		return doc, err
	}
	if version, _ := P(&doc).Header(); *version != domain.DocumentVersion {
		return doc, &engine.CorruptError{Where: path, Err: fmt.Errorf("it has version %d, and this build reads version %d", *version, domain.DocumentVersion)}
	}
	return doc, nil
}

// put stores a document in a file, on top of its revision.
func put[T any, P domain.Stored[T]](ctx context.Context, e *Engine, path string, doc T) (T, error) {
	next := domain.Next[T, P](doc)
	err := e.replace(ctx, func() error {
		stored, err := read[T, P](path)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		_, found := P(&stored).Header()
		_, expected := P(&doc).Header()
		if *found != *expected {
			return fmt.Errorf("%w: expected revision %d, found %d", engine.ErrConflict, *expected, *found)
		}
		if err := statedir.MakeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		return statedir.Write(path, next, statedir.Durable)
	})
	if err != nil {
		return doc, err
	}
	return next, nil
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
