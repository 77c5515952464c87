package filesource

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// kinds is the error for anything but the supported archives.
const kinds = "not a folder or a tar, tar.gz or zip archive: put a single file into a folder"

func walkTar(file string, zipped bool, ignored rules, visit visitor) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var from io.Reader = f
	if zipped {
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("%s (%w)", kinds, err)
		}
		defer unzipped.Close()
		from = unzipped
	}
	archive := tar.NewReader(from)
	for first := true; ; first = false {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && first:
			return fmt.Errorf("%s (%w)", kinds, err)
		case err != nil:
			return fmt.Errorf("reading the archive: %w", err)
		}
		if err := visitTar(header, archive, ignored, visit); err != nil {
			return err
		}
	}
}

func visitTar(header *tar.Header, content io.Reader, ignored rules, visit visitor) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, isFile, err := entryName(header.Name, header.Typeflag == tar.TypeDir)
	if err != nil || !isFile || ignored.matchesWithin(name) {
		return err
	}
	file := domain.TreeFile{Path: name}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		file.Executable, file.Size = header.Mode&0o100 != 0, header.Size
		return visit(file, content)
	case tar.TypeSymlink:
		if header.Linkname == "" {
			return fmt.Errorf("the symbolic link %q has no target", name)
		}
		file.Link = header.Linkname
		return visit(file, nil)
	case tar.TypeLink:
		return fmt.Errorf("%q is a hard link to %q: create the archive without hard links (tar --hard-dereference)",
			name, header.Linkname)
	default:
		return fmt.Errorf("%q is neither a file, a folder nor a symbolic link (type %q)", name, header.Typeflag)
	}
}

// entryName returns the path of an entry of an archive, and false for folders, which only matter for what is in them.
func entryName(name string, isDir bool) (string, bool, error) {
	if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
		return "", false, fmt.Errorf("%q points outside the archive: paths in it must be relative, without \"..\"",
			name)
	}
	clean := path.Clean(name)
	if isDir || clean == "." {
		return clean, false, nil
	}
	return clean, true, domain.CheckFilePath(clean)
}

// maxLinkTarget is the maximum length of a link target that is stored as the content of an entry.
const maxLinkTarget = 4096

func walkZip(file string, ignored rules, visit visitor) error {
	archive, err := zip.OpenReader(file)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // entryName reports it
		return fmt.Errorf("%s (%w)", kinds, err)
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if err := visitZip(entry, ignored, visit); err != nil {
			return err
		}
	}
	return nil
}

// encrypted is the flag of an entry that needs a password.
const encrypted = 1

func visitZip(entry *zip.File, ignored rules, visit visitor) error {
	mode := entry.Mode()
	name, isFile, err := entryName(entry.Name, mode.IsDir())
	if err != nil || !isFile || ignored.matchesWithin(name) {
		return err
	}
	switch {
	case strings.Contains(name, `\`):
		return fmt.Errorf("%q contains a backslash: create the archive with forward slashes", name)
	case entry.Flags&encrypted != 0:
		return fmt.Errorf("%q is encrypted", name)
	case mode.Type()&^fs.ModeSymlink != 0:
		return fmt.Errorf("%q is neither a file, a folder nor a symbolic link (%s)", name, mode.Type())
	}
	content, err := entry.Open()
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	defer content.Close()
	if mode.IsRegular() {
		return visit(domain.TreeFile{Path: name, Executable: mode&0o100 != 0, Size: int64(entry.UncompressedSize64)}, content) //nolint:gosec // compared with what is read
	}
	target, err := io.ReadAll(io.LimitReader(content, maxLinkTarget+1))
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	if len(target) == 0 || len(target) > maxLinkTarget {
		return fmt.Errorf("the symbolic link %q has a target of %d bytes", name, len(target))
	}
	return visit(domain.TreeFile{Path: name, Link: string(target)}, nil)
}
