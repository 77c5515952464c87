package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// FileStore is implemented by engines that bring files to their hosts. Files come as versions, identified by their
// digest and immutable: other content is another version in another folder.
type FileStore interface {
	// FilesPath returns the folder of a version, the same on every host. It does no I/O.
	FilesPath(digest string) string
	// FindFiles returns the versions that hosts have, by host, in a number of requests that doesn't depend on the
	// number of versions or files. A missing cluster is [ErrNotFound]; a host that can't be asked is an error, unless
	// it is known to be down.
	FindFiles(ctx context.Context) (map[string]HostFiles, error)
	// ProvideFiles ensures that all hosts not known to be down have a complete copy of a version. A new version appears
	// atomically; in an existing one, damaged files are repaired in place.
	ProvideFiles(ctx context.Context, spec FilesSpec) error
	// RemoveFiles removes versions from all hosts not known to be down, except those that the specification of a
	// running or stopped member refers to. Missing ones are ignored.
	RemoveFiles(ctx context.Context, digests []string) error
}

// HostFiles are the versions on a host.
type HostFiles struct {
	// Versions maps each version's digest to its damaged files, none if it is intact.
	Versions map[string][]FileFault
	// Away means that the host is down, so that its versions are unknown.
	Away bool
}

// FileFault is a missing or damaged file.
type FileFault struct {
	Path string `json:"path"`
	// Missing means that the file does not exist, rather than having other content.
	Missing bool `json:"missing,omitempty"`
}

// FilesSpec is a version that hosts should have.
type FilesSpec struct {
	Tree domain.FileTree
	// Content reads the regular files as a tar archive, in any order. It is called at most once per host. Each file has
	// to be checked against its digest in the tree; of several with the same name, the one that matches is used.
	Content func() (io.ReadCloser, error)
}

// Files returns the engine's file store, or an error if it has none. It looks through wrapping engines by their method
// Unwrap.
func Files(e Engine) (FileStore, error) {
	switch i := e.(type) {
	case readingOnce:
		return Files(i.Engine)
	case intercepted:
		store, err := Files(i.engine)
		if err != nil {
			return nil, err
		}
		return interceptedFiles{store, i}, nil
	case interface{ Unwrap() Engine }:
		return Files(i.Unwrap())
	}
	store, ok := e.(FileStore)
	if !ok {
		return nil, fmt.Errorf("the engine %q does not copy files to its hosts, as its members find theirs in "+
			"images: put them into one, with trainyard_image", e.Traits().Name)
	}
	return store, nil
}

// interceptedFiles is the file store of an engine whose calls are intercepted.
type interceptedFiles struct {
	store FileStore
	calls intercepted
}

func (i interceptedFiles) FilesPath(digest string) string { return i.store.FilesPath(digest) }

func (i interceptedFiles) FindFiles(ctx context.Context) (map[string]HostFiles, error) {
	return reads(ctx, i.calls, "FindFiles", func() (map[string]HostFiles, error) { return i.store.FindFiles(ctx) })
}

func (i interceptedFiles) ProvideFiles(ctx context.Context, spec FilesSpec) error {
	return i.calls.acts(ctx, "ProvideFiles", func() error { return i.store.ProvideFiles(ctx, spec) })
}

func (i interceptedFiles) RemoveFiles(ctx context.Context, digests []string) error {
	return i.calls.acts(ctx, "RemoveFiles", func() error { return i.store.RemoveFiles(ctx, digests) })
}
