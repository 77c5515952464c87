//go:build linux

package filestore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// stamp changes whenever the content of a file may have changed. Changed is the ctime, which can only be forged by
// setting the clock.
type stamp struct {
	Size    int64  `json:"size"`
	Inode   uint64 `json:"inode"`
	Changed int64  `json:"changed"`
}

// stampOf returns the stamp of a file. Links have none, as reading them is cheap.
func stampOf(files string, file domain.TreeFile) (stamp, error) {
	info, err := os.Lstat(filepath.Join(files, file.Path))
	if err != nil || file.Link != "" {
		return stamp{}, err
	}
	return stampIn(info), nil
}

func stampIn(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode, s.Changed = stat.Ino, stat.Ctim.Nano()
	}
	return s
}

// Check returns the files of an existing version that are missing or altered. It only reads those touched since they
// were last verified.
func (s Store) Check(ctx context.Context, digest string) ([]engine.FileFault, error) {
	version := s.version(digest)
	known, err := readManifest(version, digest)
	if err != nil {
		return nil, err
	}
	if known == nil {
		return []engine.FileFault{{Path: manifestFile, Missing: true}}, nil
	}
	before := slices.Clone(known.Stamps)
	faults, err := check(ctx, version, known)
	if err == nil && !slices.Equal(before, known.Stamps) {
		_ = writeManifest(version, known) // if this fails, the next check reads them again
	}
	return faults, err
}

// check compares the files of a version with its manifest, and updates the stamps of correct ones.
func check(ctx context.Context, version string, known *manifest) (faults []engine.FileFault, err error) {
	files := filepath.Join(version, filesFolder)
	absent := map[string]bool{}
	for _, folder := range foldersOf(known.Files) {
		info, err := os.Lstat(filepath.Join(files, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, err
		}
		absent[folder] = err != nil || !info.IsDir() || absent[path.Dir(folder)]
	}
	for i, file := range known.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if absent[path.Dir(file.Path)] {
			faults = append(faults, engine.FileFault{Path: file.Path, Missing: true})
			continue
		}
		right, err := known.right(files, i)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults = append(faults, engine.FileFault{Path: file.Path, Missing: true})
		case err != nil:
			return nil, err
		case !right:
			faults = append(faults, engine.FileFault{Path: file.Path})
		}
	}
	return faults, nil
}

// right reports whether a file matches the manifest.
func (m *manifest) right(files string, i int) (bool, error) {
	file, at := m.Files[i], filepath.Join(files, m.Files[i].Path)
	info, err := os.Lstat(at)
	if err != nil {
		return false, err
	}
	if file.Link != "" {
		if info.Mode()&fs.ModeSymlink == 0 {
			return false, nil
		}
		target, err := os.Readlink(at)
		return target == file.Link, err
	}
	if !info.Mode().IsRegular() || info.Size() != file.Size || (info.Mode()&0o100 != 0) != file.Executable {
		return false, nil
	}
	found := stampIn(info)
	if found == m.Stamps[i] {
		return true, nil
	}
	digest, err := digestOf(at)
	if err != nil || digest != file.SHA256 {
		return false, err
	}
	m.Stamps[i] = found
	return true, nil
}

func digestOf(path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// foldersOf returns the directories of a tree, parents first.
func foldersOf(tree domain.FileTree) []string {
	seen := map[string]bool{".": true}
	folders := []string{"."}
	for _, file := range tree {
		for folder := path.Dir(file.Path); !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			folders = append(folders, folder)
		}
	}
	slices.SortFunc(folders[1:], func(a, b string) int { return cmp.Compare(a, b) })
	return folders
}
