//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var _ engine.FileStore = &Engine{}

// content is this machine's store of files, which serves all hosts of the cluster.
func (e *Engine) content() filestore.Store { return filestore.Store{Dir: e.dir.Path(statedir.Content)} }

// FilesPath returns the folder of a version.
func (e *Engine) FilesPath(digest string) string { return e.content().Path(digest) }

// FindFiles checks the versions on this machine.
func (e *Engine) FindFiles(ctx context.Context) (map[string]engine.HostFiles, error) {
	return e.foundFiles(ctx)
}

func (e *Engine) findFiles(ctx context.Context) (map[string]engine.HostFiles, error) {
	cluster, err := engine.Cluster(ctx, e)
	if err != nil {
		return nil, err
	}
	digests, err := e.content().Versions()
	if err != nil {
		return nil, err
	}
	versions := map[string][]engine.FileFault{}
	for _, digest := range digests {
		if versions[digest], err = e.content().Check(ctx, digest); err != nil {
			return nil, err
		}
	}
	found := map[string]engine.HostFiles{}
	for host := range cluster.Spec.Hosts {
		found[host] = engine.HostFiles{Versions: versions}
	}
	return found, nil
}

// ProvideFiles writes a version, or repairs its damaged files.
func (e *Engine) ProvideFiles(ctx context.Context, spec engine.FilesSpec) error {
	return e.content().Provide(ctx, spec.Tree, spec.Content)
}

// RemoveFiles removes versions that no member refers to.
func (e *Engine) RemoveFiles(ctx context.Context, digests []string) error {
	used, err := e.UsedFiles(digests)
	if err != nil {
		return err
	}
	return e.content().Remove(ctx,
		slices.DeleteFunc(slices.Clone(digests), func(digest string) bool { return slices.Contains(used, digest) }))
}

// UsedFiles returns the given versions that the specification of a member refers to.
func (e *Engine) UsedFiles(digests []string) (used []string, err error) {
	// Staged before current, the order in which a specification moves, so that none is missed on the way.
	for _, folder := range []string{statedir.Staged, statedir.Specs} {
		names, err := e.dir.Names(folder)
		if err != nil {
			return nil, err
		}
		for name := range names {
			specification, err := os.ReadFile(e.dir.Document(folder, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, digest := range digests {
				if bytes.Contains(specification, []byte(strings.TrimPrefix(digest, "sha256:"))) {
					used = append(used, digest)
				}
			}
		}
	}
	return used, nil
}
