package engine

import (
	"archive/tar"
	"context"
	"io"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Folders are what members leave behind: their folders outlive them.
type Folders interface {
	// MissingFolders returns those of some folders that are not there. One on a host that can't be asked is not among
	// them. Its number of requests to the engine does not depend on the number of folders of a host.
	MissingFolders(ctx context.Context, folders []domain.KeptFolder) ([]domain.KeptFolder, error)
	// ReadFolder hands over what is in a folder, each as a tar archive would have it, by its path in the folder. One
	// that is not there is [ErrNotFound].
	ReadFolder(ctx context.Context, folder domain.KeptFolder, visit FolderVisitor) error
	// RemoveFolders removes folders with all that is in them. Those that are not there are left alone, and so are those
	// in mounts that an engine can't reach into.
	RemoveFolders(ctx context.Context, folders []domain.KeptFolder) error
}

// FolderVisitor is handed one file or folder after the other. What content holds has to be read before it returns.
type FolderVisitor func(header *tar.Header, content io.Reader) error
