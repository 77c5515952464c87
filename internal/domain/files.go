package domain

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// FilesKind is the kind of [FilesDocument].
var FilesKind = Kind{Name: "files", Noun: "files", Planned: true}

// Files are a folder or archive of the machine that runs the apply, copied to every host.
type Files struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Source is the path on the machine that runs the apply. Excludes are patterns of what to leave out, as in
	// .gitignore.
	Source   string   `json:"source"`
	Excludes []string `json:"excludes,omitempty"`
}

// FilesDocument is what is stored with the cluster about files: where they came from, and the version that hosts have.
type FilesDocument struct {
	Header
	Spec Files `json:"spec"`
	// Digest is the version's [FileTree.Digest], and SizeBytes its size.
	Digest    string `json:"digest"`
	SizeBytes int64  `json:"size_bytes"`
	// Applying is true from the first write of an apply until all hosts have the version. If it is true and nobody
	// holds the lock, an apply died or failed, and the next one takes over.
	Applying bool `json:"applying,omitempty"`
}

// Kind returns [FilesKind].
func (*FilesDocument) Kind() Kind { return FilesKind }

// Key returns the name of the files.
func (d *FilesDocument) Key() string { return d.Spec.Name }

// Validate returns what is wrong with files, as far as that is possible without reading their source.
func (f Files) Validate() Problems {
	var ps Problems
	CheckName(&ps, Path{"name"}, "files", f.Name)
	if f.Source == "" {
		ps.Add(Path{"source"}, "Missing source",
			"files need a source: the path of a folder, or of a tar, tar.gz or zip archive")
	}
	for i, pattern := range f.Excludes {
		if strings.TrimSpace(pattern) == "" {
			ps.Add(Path{"excludes", i}, "Empty pattern",
				"%q matches nothing: use patterns as in .gitignore, such as \"*.ckpt\" or \"/data/\"", pattern)
		}
	}
	return ps
}

// TreeFile is one file of a tree: a symbolic link if Link, its target, is set, and a regular file otherwise.
type TreeFile struct {
	// Path is relative to the tree, with slashes.
	Path       string `json:"path"`
	Executable bool   `json:"executable,omitempty"`
	Size       int64  `json:"size,omitempty"`
	// SHA256 is the digest of the content, in hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
	Link   string `json:"link,omitempty"`
}

// FileTree lists the files of one version, ordered by path. Folders exist only through the files in them.
type FileTree []TreeFile

// Limits of a tree.
const (
	MaxTreeFiles = 100_000
	MaxTreeBytes = 4 << 30
	maxFilePath  = 1024
	maxFileName  = 255
	maxFileLinks = 40
)

// Digest identifies a tree by its paths, contents, executable bits and links, as "sha256:" and 64 hexadecimal digits.
func (t FileTree) Digest() string {
	hash := sha256.New()
	for _, f := range t {
		kind, value := "file", f.SHA256
		switch {
		case f.Link != "":
			kind, value = "link", f.Link
		case f.Executable:
			kind = "executable"
		}
		fmt.Fprintf(hash, "%s\x00%s\x00%s\x00", kind, f.Path, value)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Size returns the number of bytes of all files.
func (t FileTree) Size() (size int64) {
	for _, f := range t {
		size += f.Size
	}
	return size
}

// Sort orders the files by path.
func (t FileTree) Sort() {
	slices.SortFunc(t, func(a, b TreeFile) int { return cmp.Compare(a.Path, b.Path) })
}

// Check returns an error if a host can't hold the tree: a file in the place of another, or a link that leads out of it.
func (t FileTree) Check() error {
	files := make(map[string]TreeFile, len(t))
	folders := map[string]bool{".": true}
	for i, f := range t {
		if err := CheckFilePath(f.Path); err != nil {
			return err
		}
		if i > 0 && t[i-1].Path >= f.Path {
			return fmt.Errorf("%q is duplicated or out of order", f.Path)
		}
		files[f.Path] = f
		for folder := path.Dir(f.Path); !folders[folder]; folder = path.Dir(folder) {
			folders[folder] = true
		}
	}
	switch size := t.Size(); {
	case len(t) == 0:
		return fmt.Errorf("there are no files")
	case len(t) > MaxTreeFiles:
		return TooManyFiles(len(t))
	case size > MaxTreeBytes:
		return TooManyBytes(size)
	}
	for _, f := range t {
		if folders[f.Path] {
			return fmt.Errorf("%q is both a file and a folder", f.Path)
		}
		if f.Link != "" {
			if err := checkLink(files, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// TooManyFiles returns the error for a tree of too many files.
func TooManyFiles(n int) error {
	return fmt.Errorf("it has %d files; at most %d are allowed: exclude what members don't need with .gitignore "+
		"or excludes",
		n, MaxTreeFiles)
}

// TooManyBytes returns the error for a tree that is too large.
func TooManyBytes(size int64) error {
	return fmt.Errorf("its files have %.1f GiB; at most %d GiB are allowed: exclude data and checkpoints with "+
		".gitignore or excludes, and keep them on a shared volume",
		float64(size)/(1<<30), MaxTreeBytes>>30)
}

// CheckFilePath returns an error if name can't be the path of a file in a tree.
func CheckFilePath(name string) error {
	switch {
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("the name %q is not valid UTF-8", name)
	case path.IsAbs(name):
		return fmt.Errorf("%q is an absolute path; paths must be relative", name)
	case name == ".." || strings.HasPrefix(path.Clean(name), "../"):
		return fmt.Errorf("%q points outside the source", name)
	case name == "" || name == "." || path.Clean(name) != name:
		return fmt.Errorf("%q is not a valid file path", name)
	case len(name) > maxFilePath:
		return fmt.Errorf("the path %q has %d bytes; at most %d are allowed", name, len(name), maxFilePath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxFileName {
			return fmt.Errorf("the name %q has %d bytes; at most %d are allowed", part, len(part), maxFileName)
		}
	}
	return nil
}

// checkLink follows a link, and links it leads through, as the kernel does. It may dangle, but must not leave the tree.
func checkLink(files map[string]TreeFile, link TreeFile) error {
	at, left := path.Dir(link.Path), link.Link
	if !utf8.ValidString(left) || strings.ContainsRune(left, 0) || len(left) > maxFilePath {
		return fmt.Errorf("the target of the symbolic link %q must be valid UTF-8 of at most %d bytes", link.Path,
			maxFilePath)
	}
	outside := fmt.Errorf("the symbolic link %q points outside the source, to %q; links must stay within it", link.Path,
		link.Link)
	for links := 0; left != ""; {
		if strings.HasPrefix(left, "/") {
			return outside
		}
		step, rest, _ := strings.Cut(left, "/")
		left = strings.TrimLeft(rest, "/")
		switch step {
		case ".", "":
			continue
		case "..":
			if at == "." {
				return outside
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, step)
		through, found := files[next]
		if !found || through.Link == "" {
			at = next
			continue
		}
		if links++; links > maxFileLinks {
			return fmt.Errorf("the symbolic link %q is part of a loop", link.Path)
		}
		left = strings.TrimSuffix(through.Link+"/"+left, "/")
	}
	return nil
}
