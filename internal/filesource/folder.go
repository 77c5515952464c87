package filesource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// folder is the list of files in a folder.
type folder struct {
	root  string
	files []domain.TreeFile
}

// listFolder lists the files of a folder with their sizes. It reads none of them, so that a folder that is too
// large is refused at once.
func listFolder(ctx context.Context, root string, ignored rules) (folder, error) {
	f := folder{root: root}
	var size int64
	var list func(dir string, ignored rules) error
	list = func(dir string, ignored rules) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ignored, err := ignored.in(root, dir)
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := path.Join(dir, entry.Name())
			if entry.Name() == gitFolder || ignored.matches(name, entry.IsDir()) {
				continue
			}
			if entry.IsDir() {
				if err := list(name, ignored); err != nil {
					return err
				}
				continue
			}
			file, err := listFile(root, name, entry)
			if err != nil {
				return err
			}
			f.files = append(f.files, file)
			size += file.Size
		}
		return nil
	}
	err := list(".", ignored)
	switch {
	case err != nil:
	case len(f.files) == 0:
		err = errors.New("it has no files, or all are ignored (.git, .gitignore, excludes)")
	case len(f.files) > domain.MaxTreeFiles:
		err = domain.TooManyFiles(len(f.files))
	case size > domain.MaxTreeBytes:
		err = domain.TooManyBytes(size)
	}
	return f, err
}

func listFile(root, name string, entry fs.DirEntry) (domain.TreeFile, error) {
	file := domain.TreeFile{Path: name}
	info, err := entry.Info()
	if err != nil {
		return file, err
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		file.Link, err = os.Readlink(filepath.Join(root, name))
	case mode.IsRegular():
		file.Size, file.Executable = info.Size(), mode&0o100 != 0
	default:
		err = fmt.Errorf("%q is neither a file, a folder nor a symbolic link (%s): exclude it", name, mode.Type())
	}
	return file, err
}

func (f folder) walk(visit visitor) error {
	for _, file := range f.files {
		if err := f.visit(file, visit); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) visit(file domain.TreeFile, visit visitor) error {
	if file.Link != "" {
		return visit(file, nil)
	}
	content, err := os.Open(filepath.Join(f.root, file.Path))
	if err != nil {
		return err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q changed while it was read", file.Path)
	}
	file.Size = info.Size()
	return visit(file, io.LimitReader(content, file.Size)) // it may grow meanwhile
}
