package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is a file of an image.
type File struct {
	// Path is the file's absolute path in the image. Its folders are created, owned by root.
	Path string
	// Mode is its permissions.
	Mode fs.FileMode
	// Size is the length of its content, in bytes.
	Size int64
	// Open opens the content. It is called more than once.
	Open func() (io.ReadCloser, error)
}

// FromBytes returns a file with this content.
func FromBytes(path string, mode fs.FileMode, content []byte) File {
	return File{Path: path, Mode: mode, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// FromDisk returns a copy of a file of this machine, with its permissions. It is read on demand, and never held in
// memory as a whole.
func FromDisk(path, source string) (File, error) {
	info, err := os.Stat(source)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a regular file", source)
	}
	return File{Path: path, Mode: info.Mode().Perm(), Size: info.Size(), Open: func() (io.ReadCloser, error) {
		return os.Open(source)
	}}, nil
}

// layer is an uncompressed layer that is generated from its files each time it is read: compression would take longer
// than it saves on the way to an engine.
type layer struct {
	entries []entry
	hash    v1.Hash
	size    int64
}

// entry is a file or folder of a layer.
type entry struct {
	header tar.Header
	open   func() (io.ReadCloser, error) // nil for a folder
}

// newLayer returns a layer of files, in any order.
func newLayer(files []File) (*layer, error) {
	entries := map[string]entry{}
	for _, file := range files {
		if !path.IsAbs(file.Path) || path.Clean(file.Path) != file.Path || file.Path == "/" {
			return nil, fmt.Errorf("file %q: the path must be absolute and clean, such as /bin/trainer", file.Path)
		}
		if _, twice := entries[file.Path]; twice {
			return nil, fmt.Errorf("file %q is given twice, or is also a folder", file.Path)
		}
		entries[file.Path] = entry{open: file.Open, header: tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(file.Path, "/"), Mode: int64(file.Mode.Perm()),
			Size:    file.Size,
			ModTime: epoch,
		}}
		for folder := path.Dir(file.Path); folder != "/"; folder = path.Dir(folder) {
			if above, known := entries[folder]; known && above.open != nil {
				return nil, fmt.Errorf("file %q is given twice, or is also a folder", folder)
			}
			entries[folder] = entry{header: tar.Header{
				Typeflag: tar.TypeDir, Name: strings.TrimPrefix(folder, "/") + "/", Mode: 0o755, ModTime: epoch,
			}}
		}
	}
	l := &layer{}
	for _, e := range entries {
		l.entries = append(l.entries, e)
	}
	// A folder's name sorts before those of its files.
	slices.SortFunc(l.entries, func(a, b entry) int { return strings.Compare(a.header.Name, b.header.Name) })
	content, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	l.hash, l.size, err = v1.SHA256(content)
	return l, err
}

// write writes the layer as a tar archive.
func (l *layer) write(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, e := range l.entries {
		if err := archive.WriteHeader(&e.header); err != nil {
			return err
		}
		if e.open == nil {
			continue
		}
		content, err := e.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(archive, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("/%s: %w", e.header.Name, err)
		}
	}
	return archive.Close()
}

// Uncompressed reads the layer.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.write(w)) }()
	return r, nil
}

// Compressed reads the layer as it is stored, which is uncompressed.
func (l *layer) Compressed() (io.ReadCloser, error) { return l.Uncompressed() }

// Digest returns the hash of the layer as it is stored.
func (l *layer) Digest() (v1.Hash, error) { return l.hash, nil }

// DiffID returns the hash of the uncompressed layer, which is the same.
func (l *layer) DiffID() (v1.Hash, error) { return l.hash, nil }

// Size returns the length of the layer in bytes.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType returns that of an uncompressed layer.
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }
