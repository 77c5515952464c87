// Package filesource reads files that will be copied to hosts, from a folder of this machine or an archive. It returns
// a [domain.FileTree], which has no times and no owners, and the contents as a tar stream.
package filesource

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Source is what files are read from.
type Source struct {
	// Path is a folder, or a tar, tar.gz or zip archive.
	Path string
	// Excludes are patterns of what to ignore, as in .gitignore.
	Excludes []string
}

// Content is the files of a source.
type Content struct {
	Tree domain.FileTree
	walk func(visit visitor) error
	path string
}

// visitor is called with each file, and its content if it has one. Some of the files may not be in the tree.
type visitor func(file domain.TreeFile, content io.Reader) error

// Read reads the list of files with their digests.
func (s Source) Read(ctx context.Context) (Content, error) {
	content, err := s.read(ctx)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", s.Path, withoutPath(err, s.Path))
	}
	return content, err
}

// withoutPath returns a file system error without the path of the source.
func withoutPath(err error, path string) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok && of.Path == path {
		return of.Err
	}
	return err
}

func (s Source) read(ctx context.Context) (Content, error) {
	ignored := newRules(s.Excludes)
	info, err := os.Stat(s.Path)
	if err != nil {
		return Content{}, err
	}
	var walk func(visit visitor) error
	switch {
	case info.IsDir():
		files, err := listFolder(ctx, s.Path, ignored)
		if err != nil {
			return Content{}, err
		}
		walk = files.walk
	case info.Mode().IsRegular():
		if walk, err = archiveWalk(s.Path, ignored); err != nil {
			return Content{}, err
		}
	default:
		return Content{}, errors.New("it is neither a folder nor a regular file")
	}
	c := Content{walk: walk, path: s.Path}
	if c.Tree, err = treeOf(ctx, walk); err != nil {
		return Content{}, err
	}
	return c, c.Tree.Check()
}

// treeOf reads all files. If several have the same path, as is possible in a tar archive, the last one counts.
func treeOf(ctx context.Context, walk func(visitor) error) (domain.FileTree, error) {
	files, size := map[string]domain.TreeFile{}, int64(0)
	err := walk(func(file domain.TreeFile, content io.Reader) error {
		if err := errors.Join(ctx.Err(), domain.CheckFilePath(file.Path)); err != nil {
			return err
		}
		if content != nil {
			if file.Size > domain.MaxTreeBytes-size { // as declared
				return domain.TooManyBytes(size + file.Size)
			}
			hash := sha256.New()
			n, err := io.Copy(hash, io.LimitReader(content, domain.MaxTreeBytes-size+1))
			if err != nil {
				return fmt.Errorf("%s: %w", file.Path, err)
			}
			file.Size, file.SHA256 = n, hex.EncodeToString(hash.Sum(nil))
			if size += n; size > domain.MaxTreeBytes {
				return domain.TooManyBytes(size)
			}
		}
		if files[file.Path] = file; len(files) > domain.MaxTreeFiles {
			return domain.TooManyFiles(len(files))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tree := make(domain.FileTree, 0, len(files))
	for _, file := range files {
		tree = append(tree, file)
	}
	tree.Sort()
	return tree, nil
}

// Tar reads the contents of the regular files as a tar archive. If a file has changed since, the
// archive ends with an error.
func (c Content) Tar() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		buffered := bufio.NewWriterSize(w, 1<<20)
		w.CloseWithError(errors.Join(c.write(buffered), buffered.Flush()))
	}()
	return r, nil
}

func (c Content) write(w io.Writer) error {
	wanted := make(map[string]domain.TreeFile, len(c.Tree))
	for _, file := range c.Tree {
		if file.Link == "" {
			wanted[file.Path] = file
		}
	}
	archive := tar.NewWriter(w)
	err := c.walk(func(file domain.TreeFile, content io.Reader) error {
		want, found := wanted[file.Path]
		if !found || content == nil || file.Size != want.Size {
			return nil
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Path, Mode: 0o600, Size: file.Size, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(archive, hash), content); err != nil {
			return fmt.Errorf("%s changed while it was read: %w", file.Path, err)
		}
		if hex.EncodeToString(hash.Sum(nil)) == want.SHA256 {
			delete(wanted, file.Path)
		}
		return nil
	})
	if err == nil && len(wanted) > 0 {
		var changed []string
		for name := range wanted {
			changed = append(changed, name)
		}
		err = fmt.Errorf("it changed while it was read: %s", domain.Enumerate(changed))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return archive.Close()
}

// The first bytes of archives.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zipMagic  = [][]byte{[]byte("PK\x03\x04"), []byte("PK\x05\x06")}
)

// archiveWalk returns a function that walks the files of an archive, whose kind it detects by the first bytes.
func archiveWalk(path string, ignored rules) (func(visitor) error, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	first := make([]byte, 4)
	n, err := io.ReadFull(file, first)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	first = first[:n]
	for _, magic := range zipMagic {
		if bytes.HasPrefix(first, magic) {
			return func(visit visitor) error { return walkZip(path, ignored, visit) }, nil
		}
	}
	zipped := bytes.HasPrefix(first, gzipMagic)
	return func(visit visitor) error { return walkTar(path, zipped, ignored, visit) }, nil
}
