package engine

import (
	"context"
	"fmt"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// FileStore is implemented by engines that bring files to their hosts. What comes to them is a version, known by its
// digest, and never changed: another content is another version, in another folder.
type FileStore interface {
	// FilesPath returns the folder of a version, the same on every host. It does no I/O.
	FilesPath(digest string) string
	// FindFiles returns the versions that hosts have, by host, looked at in a number of requests that doesn't depend on
	// the number of versions or files. A cluster that is not there is [ErrNotFound]; a host that can't be looked at is
	// an error, unless it is known to be down.
	FindFiles(ctx context.Context) (map[string]HostFiles, error)
	// ProvideFiles sees to it that all hosts that are not known to be down have a version, whole. It appears at once,
	// or not at all; in one that was there, what is amiss is mended in place.
	ProvideFiles(ctx context.Context, spec FilesSpec) error
	// RemoveFiles removes versions from all hosts that are not known to be down, but for those that the specification
	// of a member refers to, whether it runs or is to. Those that are not there are left alone.
	RemoveFiles(ctx context.Context, digests []string) error
}

// HostFiles are the versions on a host.
type HostFiles struct {
	// Versions are by digest what is amiss with each, nothing where it is whole.
	Versions map[string][]Amiss
	// Away tells that the host is down, so that nothing is known of what it has.
	Away bool
}

// Amiss is a file that is not as it should be.
type Amiss struct {
	Path string `json:"path"`
	// Missing tells that it isn't there, rather than another.
	Missing bool `json:"missing,omitempty"`
}

// FilesSpec is a version that hosts should have.
type FilesSpec struct {
	Tree domain.FileTree
	// Content reads the regular files as a tar archive, in any order. It is called once a host at most. Each file has
	// to be checked by its digest in the tree; of several of one name, the one that has it is meant.
	Content func() (io.ReadCloser, error)
}

// Files returns the store of an engine's files, or an error where it brings none. An engine around another one tells
// which by a method Unwrap.
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
		return nil, fmt.Errorf("the engine %q brings no files to its hosts, as its members find theirs in images: put them into one, with trainyard_image", e.Traits().Name)
	}
	return store, nil
}

// interceptedFiles is the store of an engine whose calls are intercepted.
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
