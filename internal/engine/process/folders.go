//go:build linux

package process

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// MissingFolders checks folders of this machine.
func (e *Engine) MissingFolders(
	_ context.Context, folders []domain.KeptFolder,
) (missing []domain.KeptFolder, err error) {
	for _, folder := range folders {
		_, err := os.Stat(folder.OnHost())
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, folder)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// ReadFolder reads a folder of this machine. Sockets and other special files are skipped.
func (e *Engine) ReadFolder(ctx context.Context, folder domain.KeptFolder, visit engine.FolderVisitor) error {
	root := folder.OnHost()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if path != root && errors.Is(err, fs.ErrNotExist) {
			return nil // a folder that the running program has removed meanwhile
		}
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visitFile(path, name, entry, visit)
	})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(root); errors.Is(gone, fs.ErrNotExist) {
			return fmt.Errorf("folder %s of %s: %w", root, folder.Member, engine.ErrNotFound)
		}
	}
	return err
}

// visitFile passes on a file or folder. One that disappears meanwhile is skipped, as a running program may remove it.
func visitFile(path, name string, entry fs.DirEntry, visit engine.FolderVisitor) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && info.Mode().Type()&^fs.ModeSymlink != 0 {
		return nil
	}
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err = os.Readlink(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name = filepath.ToSlash(name)
	if !info.Mode().IsRegular() {
		return visit(header, nil)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	// The file may grow or shrink meanwhile, but an archive needs exactly the size in its header.
	return visit(header, io.LimitReader(io.MultiReader(file, zeros{}), header.Size))
}

// zeros reads as an endless stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// RemoveFolders removes folders of this machine, and the members' own folders around them if these are empty then.
func (e *Engine) RemoveFolders(_ context.Context, folders []domain.KeptFolder) error {
	for _, folder := range folders {
		root := folder.OnHost()
		if err := os.RemoveAll(root); err != nil {
			return err
		}
		own := e.dir.WorkDir(folder.Member)
		for around := filepath.Dir(root); around == own ||
			strings.HasPrefix(around, own+"/"); around = filepath.Dir(around) {
			_ = os.Remove(around) // fails if something is left in it
		}
	}
	return nil
}
