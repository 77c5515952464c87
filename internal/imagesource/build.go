package imagesource

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// ignoreFile is the ignore file of a build context.
const ignoreFile = ".dockerignore"

// Build is how an image is built.
type Build struct {
	// Context is the folder that the Dockerfile copies from.
	Context string `json:"-"`
	// Dockerfile is its path in that folder.
	Dockerfile string `json:"dockerfile"`
	// Target is the stage that is built; empty for the last one.
	Target string `json:"target,omitempty"`
	// Args are the values of ARG instructions.
	Args map[string]string `json:"args,omitempty"`
}

// Check returns why the image can't be built, as far as is possible without reading the whole folder.
func (b Build) Check() error {
	info, err := os.Stat(b.Context)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", b.Context)
	}
	if !filepath.IsLocal(b.Dockerfile) {
		return fmt.Errorf("the Dockerfile %q is outside the folder %s: use a path within it", b.Dockerfile, b.Context)
	}
	file := filepath.Join(b.Context, b.Dockerfile)
	if info, err = os.Stat(file); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file)
	}
	return nil
}

// Digest returns the digest of everything on this machine that the image is built from: the files, without modification
// times, as a checkout sets new ones, and the other settings of the build.
func (b Build) Digest() (string, error) {
	if err := b.Check(); err != nil {
		return "", err
	}
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(b); err != nil {
		return "", err
	}
	if err := b.write(hash, func(time.Time) time.Time { return time.Time{} }); err != nil {
		return "", err
	}
	return encoded(hash.Sum(nil)), nil
}

// Tar reads the context as a tar archive.
func (b Build) Tar() (io.ReadCloser, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(b.write(w, func(changed time.Time) time.Time { return changed })) }()
	return r, nil
}

// write writes the context as a tar archive with these times, and with files owned by root.
func (b Build) write(w io.Writer, at func(changed time.Time) time.Time) error {
	root, err := filepath.EvalSymlinks(b.Context)
	if err != nil {
		return err
	}
	left, err := b.leftOut(root)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == root {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		skip, whole, err := left.out(name)
		switch {
		case err != nil:
			return err
		case whole && entry.IsDir():
			return filepath.SkipDir
		case skip, entry.Type()&fs.ModeSocket != 0:
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return addFile(archive, file, name, info, at(info.ModTime()))
	})
	return errors.Join(err, archive.Close())
}

// leftOut is what to leave out of a context. The Dockerfile and .dockerignore are always sent, as the Docker Engine
// needs them; it leaves them out itself.
type leftOut struct {
	list, dockerfile string
	patterns         *patternmatcher.PatternMatcher
}

// leftOut returns what to leave out of the context.
func (b Build) leftOut(root string) (leftOut, error) {
	left := leftOut{list: filepath.Join(root, ignoreFile), dockerfile: filepath.Clean(b.Dockerfile)}
	var patterns []string
	list, err := os.Open(left.list)
	if err == nil {
		defer list.Close()
		patterns, err = ignorefile.ReadAll(list)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		left.patterns, err = patternmatcher.New(patterns)
	}
	return left, left.named(err)
}

// out reports whether to leave out a file, and whether everything below it can be left out as well.
func (l leftOut) out(name string) (skip, whole bool, err error) {
	if name == ignoreFile || name == l.dockerfile {
		return false, false, nil
	}
	skip, err = l.patterns.MatchesOrParentMatches(name)
	whole = skip && !l.patterns.Exclusions() && !strings.HasPrefix(l.dockerfile, name+string(filepath.Separator))
	return skip, whole, l.named(err)
}

// named adds the name of the ignore file to an error.
func (l leftOut) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", l.list, err)
}

// addFile adds a file of any type to a context.
func addFile(to *tar.Writer, file, name string, info fs.FileInfo, changed time.Time) error {
	var link string
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	header.Name, header.Linkname = filepath.ToSlash(name), filepath.ToSlash(header.Linkname)
	header.Mode = modeIn(runtime.GOOS, info.Mode(), header.Mode)
	if info.IsDir() {
		header.Name += "/"
	}
	header.ModTime, header.AccessTime, header.ChangeTime = changed, time.Time{}, time.Time{}
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if !info.Mode().IsRegular() {
		return to.WriteHeader(header)
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := add(to, header, content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// modeIn returns the permissions in an image for a file with this mode and these permissions, as far as possible the
// same on all systems. Windows does not know which files are executable, so all are, as with the docker command.
func modeIn(goos string, mode fs.FileMode, permissions int64) int64 {
	switch {
	case mode&fs.ModeSymlink != 0:
		return 0o777 // as on Linux; macOS differs
	case goos == "windows":
		return 0o755
	}
	return permissions
}
