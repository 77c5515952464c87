package engine

import (
	"archive/tar"
	"context"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Folders are the folders that members leave behind and that outlive them.
type Folders interface {
	// MissingFolders returns those of the given folders that do not exist. A folder on a host that can't be asked is
	// not among them. Its number of requests to the engine does not depend on the number of folders per host.
	MissingFolders(ctx context.Context, folders []domain.KeptFolder) ([]domain.KeptFolder, error)
	// ReadFolder passes each entry of a folder to visit, as in a tar archive, with its path relative to the folder. A
	// missing folder is [ErrNotFound], and so is one of a host that the cluster no longer has.
	ReadFolder(ctx context.Context, folder domain.KeptFolder, visit FolderVisitor) error
	// RemoveFolders removes folders with all their content. Missing ones are ignored, and so are those in mounts that
	// an engine can't reach, and those of hosts that the cluster no longer has.
	RemoveFolders(ctx context.Context, folders []domain.KeptFolder) error
}

// FolderVisitor is called for one file or folder after the other. It has to read content before it returns.
type FolderVisitor func(header *tar.Header, content io.Reader) error
