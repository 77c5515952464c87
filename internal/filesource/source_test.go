//go:build linux

package filesource

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// tarOf returns a tar archive of these entries, in order. An entry with content is a regular file,
// unless it has another type.
func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, header := range entries {
		content := header.PAXRecords["content"]
		header.PAXRecords = nil
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		header.Size = int64(len(content))
		if err := w.WriteHeader(&header); err != nil {
			t.Skip(err) // no tar archive can have such an entry
		}
		_, err := io.WriteString(w, content)
		must(t, err)
	}
	must(t, w.Close())
	return archive.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, PAXRecords: map[string]string{"content": content}}
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

// zipOf returns a zip archive of files with these modes.
func zipOf(t testing.TB, modes map[string]fs.FileMode) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for name, mode := range modes {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate}
		header.SetMode(mode)
		to, err := w.CreateHeader(header)
		must(t, err)
		_, err = io.WriteString(to, "train.py")
		must(t, err)
	}
	must(t, w.Close())
	return archive.Bytes()
}

func saved(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code.archive")
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

func read(t testing.TB, path string) Content {
	t.Helper()
	content, err := Source{Path: path}.Read(t.Context())
	must(t, err)
	return content
}

// TestSameFromAnything: a folder and archives with the same files give the same version, whatever else differs.
func TestSameFromAnything(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"train.py": "train.py", "bin/run": "train.py", ".git/config": "", "bin/.git": "gitdir: elsewhere",
	})
	must(t, os.Chmod(filepath.Join(folder, "bin/run"), 0o755))
	must(t, os.Symlink("train.py", filepath.Join(folder, "link")))
	must(t, os.Mkdir(filepath.Join(folder, "empty"), 0o700))
	want := read(t, folder)
	archive := tarOf(t,
		tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header"},
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755},
		file("./train.py", "an earlier one"), file("./train.py", "train.py"),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./link", Linkname: "train.py"},
		tar.Header{Name: "bin/run", Mode: 0o711, Uname: "ops", PAXRecords: map[string]string{"content": "train.py"}},
	)
	for name, path := range map[string]string{
		"tar": saved(t, archive), "tar.gz": saved(t, zipped(t, archive)),
		"zip": saved(t, zipOf(t, map[string]fs.FileMode{
			"train.py": 0o600, "bin/run": 0o755, "bin/": fs.ModeDir | 0o755, "link": fs.ModeSymlink | 0o777,
		})),
	} {
		got := read(t, path)
		if diff := cmp.Diff(want.Tree, got.Tree); diff != "" || got.Tree.Digest() != want.Tree.Digest() {
			t.Errorf("%s (-folder +archive):\n%s", name, diff)
		}
		expectContents(t, got)
	}
	expectContents(t, want)
	must(t, os.Symlink(folder, folder+"-link"))
	if through := read(t, folder+"-link"); through.Tree.Digest() != want.Tree.Digest() {
		t.Errorf("through a link the folder has %v", through.Tree)
	}
}

// expectContents fails unless the contents match the tree.
func expectContents(t testing.TB, c Content) {
	t.Helper()
	r, err := c.Tar()
	must(t, err)
	defer r.Close()
	archive := tar.NewReader(r)
	missing := map[string]domain.TreeFile{}
	for _, file := range c.Tree {
		if file.Link == "" {
			missing[file.Path] = file
		}
	}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		size, err := io.Copy(io.Discard, archive)
		must(t, err)
		if want := missing[header.Name]; want.Size == size && header.Typeflag == tar.TypeReg {
			delete(missing, header.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the contents of %v are missing", missing)
	}
}

func TestFoldersThatCannotBeBrought(t *testing.T) {
	for name, test := range map[string]struct {
		make func(folder string) error
		says string
	}{
		"nothing": {func(string) error { return nil }, "it has no files"},
		"nothing but ignored": {
			func(f string) error { return os.WriteFile(f+"/.gitignore", []byte("*\n"), 0o600) }, "it has no files",
		},
		"nothing but .git": {
			func(f string) error { return os.MkdirAll(f+"/.git/objects", 0o700) }, "it has no files",
		},
		"a pipe": {
			func(f string) error { return syscall.Mkfifo(f+"/pipe", 0o600) },
			`"pipe" is neither a file, a folder nor a symbolic link`,
		},
		"a link out of it": {
			func(f string) error { return os.Symlink("../secret", f+"/link") },
			`the symbolic link "link" points outside the source, to "../secret"`,
		},
		"an absolute link": {
			func(f string) error { return os.Symlink("/etc/passwd", f+"/link") },
			`points outside the source, to "/etc/passwd"`,
		},
		"an unreadable name": {
			func(f string) error { return os.WriteFile(f+"/a\xff", nil, 0o600) }, "not valid UTF-8",
		},
		"too large": {
			func(f string) error { return sparse(f+"/data.bin", 5<<30) }, "5.0 GiB; at most 4 GiB",
		},
		"a list that is a link": {func(f string) error { return os.Symlink("rules", f+"/.gitignore") }, ""},
	} {
		folder := t.TempDir()
		must(t, test.make(folder))
		_, err := Source{Path: folder}.Read(t.Context())
		if test.says == "" && err != nil || test.says != "" &&
			(err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), folder+": ")) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := (Source{Path: t.TempDir()}).Read(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func sparse(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

func TestArchivesThatCannotBeBrought(t *testing.T) {
	whole := tarOf(t, file("a.py", strings.Repeat("a", 2000)))
	for name, test := range map[string]struct {
		archive []byte
		says    string
	}{
		"nothing":          {nil, "there are no files"},
		"an empty archive": {tarOf(t), "there are no files"},
		"a text":           {[]byte("print()\n"), "not a folder or a tar, tar.gz or zip archive"},
		"a longer text": {
			bytes.Repeat([]byte("print()\n"), 200), "not a folder or a tar, tar.gz or zip archive",
		},
		"a zipped text": {
			zipped(t, bytes.Repeat([]byte("print()\n"), 200)), "not a folder or a tar, tar.gz or zip archive",
		},
		"no gzip":           {[]byte{0x1f, 0x8b, 0, 0}, "not a folder or a tar, tar.gz or zip archive"},
		"no zip":            {[]byte("PK\x03\x04..."), "not a folder or a tar, tar.gz or zip archive"},
		"cut off":           {whole[:1500], "unexpected EOF"},
		"cut off zipped":    {zipped(t, whole)[:40], "unexpected EOF"},
		"the parent":        {tarOf(t, file("../a", "")), `"../a" points outside the archive`},
		"the parent, later": {tarOf(t, file("a/../../b", "")), `"a/../../b" points outside the archive`},
		"there and back":    {tarOf(t, file("a/../b", "")), "points outside the archive"},
		"absolute":          {tarOf(t, file("/etc/passwd", "")), `"/etc/passwd" points outside the archive`},
		"a link out of it": {
			tarOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "../x"}),
			`the symbolic link "l" points outside the source`,
		},
		"a file through a link": {
			tarOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, file("l/passwd", "")),
			`"l" is both a file and a folder`,
		},
		"a device": {
			tarOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}),
			`"null" is neither a file, a folder nor a symbolic link`,
		},
		"a hard link": {
			tarOf(t, file("a", "a"), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}),
			`"b" is a hard link to "a": create the archive without hard links (tar --hard-dereference)`,
		},
		"a zip with the parent": {
			zipOf(t, map[string]fs.FileMode{"../a": 0o600}), `"../a" points outside the archive`,
		},
		"a zip with a backslash": {zipOf(t, map[string]fs.FileMode{`a\b`: 0o600}), "contains a backslash"},
		"a zip with a device": {
			zipOf(t, map[string]fs.FileMode{"a": fs.ModeDevice | 0o600}),
			`"a" is neither a file, a folder nor a symbolic link`,
		},
		"a zip with an odd link": {
			zipOf(t, map[string]fs.FileMode{"a/b": fs.ModeSymlink, "a/train.py": fs.ModeSymlink}), "part of a loop",
		},
		"a zip that is encrypted": {encryptedZip(t), "is encrypted"},
	} {
		path := saved(t, test.archive)
		_, err := Source{Path: path}.Read(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
	if _, err := (Source{Path: "/no/such/folder"}).Read(t.Context()); err == nil ||
		err.Error() != "/no/such/folder: no such file or directory" {
		t.Errorf("no such folder: got %v", err)
	}
	if _, err := (Source{Path: "/dev/null"}).Read(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "neither a folder nor a regular file") {
		t.Errorf("a device: got %v", err)
	}
}

// encryptedZip returns an archive with an entry marked as encrypted, in both headers.
func encryptedZip(t testing.TB) []byte {
	t.Helper()
	archive := zipOf(t, map[string]fs.FileMode{"a": 0o600})
	central := bytes.Index(archive, []byte("PK\x01\x02"))
	archive[6] |= encrypted
	archive[central+8] |= encrypted
	return archive
}

// A large file in an archive is refused by its declared size, without reading it.
func TestLargeArchive(t *testing.T) {
	var archive bytes.Buffer
	must(t, tar.NewWriter(&archive).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "data.bin", Mode: 0o600, Size: 1 << 40,
	}))
	_, err := Source{Path: saved(t, archive.Bytes())}.Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1024.0 GiB; at most 4 GiB") {
		t.Errorf("got %v", err)
	}
}

// A file that changes after it was read is an error, and not brought as something else.
func TestChangesWhileRead(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"another content": func(path string) error { return os.WriteFile(path, []byte("b"), 0o600) },
		"another size":    func(path string) error { return os.WriteFile(path, []byte("longer"), 0o600) },
		"gone":            os.Remove,
		"a pipe": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/dev/null", path))
		},
	} {
		folder := t.TempDir()
		write(t, folder, map[string]string{"a": "a"})
		content := read(t, folder)
		must(t, change(filepath.Join(folder, "a")))
		r, err := content.Tar()
		must(t, err)
		if _, err := io.Copy(io.Discard, r); err == nil || !strings.HasPrefix(err.Error(), folder+": ") {
			t.Errorf("%s: got %v", name, err)
		}
		r.Close()
	}
}

// FuzzArchive: any file is refused with its name, or read as a valid tree with matching contents.
func FuzzArchive(f *testing.F) {
	link := tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "a/b"}
	for _, archive := range [][]byte{
		nil, []byte("train"), tarOf(f), tarOf(f, file("a/b", "content"), link),
		zipped(f, tarOf(f, file("a", "1"), file("a", "2"))),
		tarOf(f, file("../a", "")), tarOf(f, file("a", ""), file("a/b", "")),
		zipOf(f, map[string]fs.FileMode{"a/b": 0o755, "l": fs.ModeSymlink}),
		zipOf(f, map[string]fs.FileMode{"/a": 0o600}), encryptedZip(f),
	} {
		f.Add(archive)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, archive []byte) {
		path := filepath.Join(dir, "code.archive")
		must(t, os.WriteFile(path, archive, 0o600))
		content, err := Source{Path: path}.Read(t.Context())
		if err != nil {
			if !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		must(t, content.Tree.Check())
		expectContents(t, content)
	})
}
