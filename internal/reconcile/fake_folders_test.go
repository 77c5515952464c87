package reconcile_test

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func (f *fake) MissingFolders(_ context.Context, folders []domain.KeptFolder) (missing []domain.KeptFolder, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, folder := range folders {
		if !f.folders[folder] {
			missing = append(missing, folder)
		}
	}
	return missing, nil
}

func (f *fake) ReadFolder(context.Context, domain.KeptFolder, engine.FolderVisitor) error {
	return engine.ErrNotFound
}

func (f *fake) RemoveFolders(_ context.Context, folders []domain.KeptFolder) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, folder := range folders {
		delete(f.folders, folder)
	}
	return nil
}
