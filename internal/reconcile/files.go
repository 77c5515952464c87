package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Files are files as read from the cluster.
type Files struct {
	Document domain.FilesDocument
	// Path is the folder of their version on each host; Hosts is what each host has.
	Path  string
	Hosts map[string]engine.HostFiles
}

// FilesLock returns the name of the lock that an apply of files holds.
func FilesLock(name string) string { return "files " + name }

// FilesInUseError means that files can't be removed because groups or sweeps refer to them.
type FilesInUseError struct {
	Cluster, Name, Path string
	// Groups and Sweeps are the names of those.
	Groups, Sweeps []string
}

// Error says what to do about it.
func (e *FilesInUseError) Error() string {
	return fmt.Sprintf("files %q of cluster %q are in use by %s, which refer to %s: destroy those first, or point "+
		"them to other files",
		e.Name, e.Cluster, domain.EnumerateUsers(e.Groups, e.Sweeps), e.Path)
}

// Files returns files as they are now, or [engine.ErrNotFound].
func (r Reconciler) Files(ctx context.Context, name string) (Files, error) {
	store, err := engine.Files(r.Engine)
	if err != nil {
		return Files{}, err
	}
	doc, err := engine.Get[domain.FilesDocument](ctx, r.Engine, name)
	if err != nil {
		return Files{}, err
	}
	found, err := store.FindFiles(ctx)
	if errors.Is(err, engine.ErrNotFound) {
		return Files{}, fmt.Errorf("files %q exist, but the document of their cluster %q is missing; apply the "+
			"cluster alone to store it again (-target)", name, doc.Spec.Cluster)
	}
	return Files{doc, store.FilesPath(doc.Digest), found}, err
}

// PutFiles brings a version of files to all hosts and removes versions that nothing refers to any more. If
// created is set, existing files are an error unless they are the same, or their creation never finished;
// adopted reports the former.
func (r Reconciler) PutFiles(
	ctx context.Context, spec domain.Files, version engine.FilesSpec, created bool,
) (adopted bool, err error) {
	store, err := engine.Files(r.Engine)
	if err != nil {
		return false, err
	}
	release, err := r.lock(ctx, FilesLock(spec.Name), "apply of files "+spec.Name)
	if errors.Is(err, engine.ErrNotFound) {
		return false, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()

	doc := domain.FilesDocument{Spec: spec, Digest: version.Tree.Digest(), SizeBytes: version.Tree.Size()}
	doc, adopted, err = r.announceFiles(ctx, doc, created)
	if err == nil {
		err = store.ProvideFiles(ctx, version)
	}
	if err == nil && doc.Applying {
		doc.Applying = false
		_, err = engine.Put(ctx, r.Engine, doc)
	}
	if err != nil {
		return false, err
	}
	r.pruneFiles(ctx)
	return adopted, nil
}

// announceFiles stores which version the hosts are about to get, which protects that version from being pruned.
func (r Reconciler) announceFiles(
	ctx context.Context, doc domain.FilesDocument, created bool,
) (_ domain.FilesDocument, adopted bool, err error) {
	release, err := r.lock(ctx, allocationLock, "apply of files "+doc.Spec.Name)
	if err != nil {
		return doc, false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	existing, err := engine.Get[domain.FilesDocument](ctx, r.Engine, doc.Spec.Name)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return doc, false, err
	}
	stored := err == nil
	doc.Header = existing.Header
	if stored && reflect.DeepEqual(existing, doc) {
		return doc, created, nil
	}
	if stored && created && !existing.Applying {
		return doc, false, fmt.Errorf("cluster %q already has files %q, from %q; choose another name, or import "+
			"them: terraform import <address> %s",

			doc.Spec.Cluster, doc.Spec.Name, existing.Spec.Source,
			r.Engine.Traits().ImportFrom+domain.GroupID(doc.Spec.Cluster, doc.Spec.Name))
	}
	doc.Applying = true
	doc, err = engine.Put(ctx, r.Engine, doc)
	if errors.Is(err, engine.ErrNotFound) {
		err = fmt.Errorf("cluster %q: %w", doc.Spec.Cluster, err)
	}
	return doc, false, err
}

// DeleteFiles removes files unless a group or sweep refers to them. It does nothing if they are gone.
func (r Reconciler) DeleteFiles(ctx context.Context, cluster, name string) (err error) {
	store, err := engine.Files(r.Engine)
	if err != nil {
		return err
	}
	release, err := r.lock(ctx, FilesLock(name), "removal of files "+name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // the files are gone with the cluster
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := r.withdrawFiles(ctx, store, cluster, name); err != nil {
		return err
	}
	r.pruneFiles(ctx)
	return nil
}

// withdrawFiles deletes the document of files that nothing refers to. It holds the allocation lock, so that no group or
// sweep that might refer to them is stored meanwhile.
func (r Reconciler) withdrawFiles(ctx context.Context, store engine.FileStore, cluster, name string) (err error) {
	release, err := r.lock(ctx, allocationLock, "removal of files "+name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	documents, err := engine.List[domain.FilesDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	doc, found := documents[name]
	if !found {
		return nil
	}
	delete(documents, name)
	shared := slices.ContainsFunc(slices.Collect(maps.Values(documents)),
		func(other domain.FilesDocument) bool { return other.Digest == doc.Digest })
	if !shared {
		groups, sweeps, err := r.usersOfFiles(ctx, doc.Digest)
		if err != nil {
			return err
		}
		if len(groups)+len(sweeps) > 0 {
			return &FilesInUseError{cluster, name, store.FilesPath(doc.Digest), groups, sweeps}
		}
	}
	return engine.Delete[domain.FilesDocument](ctx, r.Engine, name)
}

// refersTo reports whether a stored specification contains the path of a version, anywhere.
func refersTo(specification []byte, digest string) bool {
	return bytes.Contains(specification, []byte(strings.TrimPrefix(digest, "sha256:")))
}

// usersOfFiles returns the names of the groups and sweeps that refer to a version.
func (r Reconciler) usersOfFiles(ctx context.Context, digest string) (groups, sweeps []string, err error) {
	for _, users := range []struct {
		kind  domain.Kind
		names *[]string
	}{{domain.GroupKind, &groups}, {domain.SweepKind, &sweeps}, {domain.SweepRunsKind, &sweeps}} {
		specifications, err := engine.Contents(ctx, r.Engine, users.kind)
		if err != nil {
			return nil, nil, err
		}
		for name, specification := range specifications {
			of, _, _ := strings.Cut(name, "/")
			if refersTo(specification, digest) && !slices.Contains(*users.names, of) {
				*users.names = append(*users.names, of)
			}
		}
	}
	return groups, sweeps, nil
}

// pruneFiles removes the versions that no specification refers to. What can't be removed now is
// left to the next change.
func (r Reconciler) pruneFiles(ctx context.Context) {
	if err := r.tryPruneFiles(ctx); err != nil {
		r.say(ctx, "", "removing unused versions of files failed", slog.String("error", err.Error()))
	}
}

func (r Reconciler) tryPruneFiles(ctx context.Context) (err error) {
	store, err := engine.Files(r.Engine)
	if err != nil {
		return err
	}
	hosts, err := store.FindFiles(ctx) // slow, so not under the allocation lock
	if err != nil {
		return err
	}
	unused := map[string]bool{}
	for _, found := range hosts {
		for digest := range found.Versions {
			unused[digest] = true
		}
	}
	if len(unused) == 0 {
		return nil
	}
	release, err := r.lock(ctx, allocationLock, "removal of unused files")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	documents, err := engine.List[domain.FilesDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	for _, doc := range documents {
		delete(unused, doc.Digest)
	}
	for digest := range unused {
		groups, sweeps, err := r.usersOfFiles(ctx, digest)
		if err != nil {
			return err
		}
		if len(groups)+len(sweeps) > 0 {
			delete(unused, digest)
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return store.RemoveFiles(ctx, slices.Sorted(maps.Keys(unused)))
}

// pruneFilesAfter calls pruneFiles after a change of a group or sweep, which may have been the last user of a version.
func (r Reconciler) pruneFilesAfter(ctx context.Context) {
	if _, err := engine.Files(r.Engine); err != nil {
		return // this engine keeps no files
	}
	if documents, err := engine.List[domain.FilesDocument](ctx, r.Engine); err == nil && len(documents) > 0 {
		r.pruneFiles(ctx)
	}
}

// withoutArriving removes the command and the working directory from a specification if they arrive with files of the
// same apply, as preflight can't find them yet.
func (r Reconciler) withoutArriving(spec domain.MemberSpec) domain.MemberSpec {
	for _, path := range r.Arriving {
		inFolder := strings.Contains(spec.WorkingDir, path)
		if inFolder || len(spec.Command) > 0 && strings.Contains(spec.Command[0], path) ||
			strings.Contains(spec.Env["PATH"], path) {
			spec.Command = nil
		}
		if inFolder {
			spec.WorkingDir = ""
		}
	}
	return spec
}
