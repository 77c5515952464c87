package imagesource

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// tarOf returns a tar archive of files, in order.
func tarOf(t testing.TB, files ...file) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.content))}
		if f.link != "" {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, f.link, 0
		}
		if err := errors.Join(w.WriteHeader(header), writeAll(w, f)); err != nil {
			t.Skip(err) // no tar archive can have such a file
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func writeAll(w io.Writer, f file) error {
	if f.link != "" {
		return nil
	}
	_, err := io.WriteString(w, f.content)
	return err
}

// expectArchive fails unless a file is refused with an error that names it, or is an image that loads as it was read.
func expectArchive(t *testing.T, file, ref string) {
	t.Helper()
	archive, err := OpenArchive(file, ref)
	if err != nil {
		if !strings.Contains(err.Error(), file) {
			t.Errorf("the error does not name the file: %v", err)
		}
		return
	}
	if !digestPattern.MatchString(archive.Content) || !digestPattern.MatchString(archive.Digest) {
		t.Errorf("the digests are %q and %q", archive.Content, archive.Digest)
	}
	content, err := archive.Untagged()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	loaded := filepath.Join(filepath.Dir(file), "loaded.tar")
	to, err := os.Create(loaded)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, content)
	if err = errors.Join(err, to.Close()); err != nil {
		if !strings.Contains(err.Error(), file) {
			t.Errorf("the error does not name the file: %v", err)
		}
		return
	}
	again, err := OpenArchive(loaded, "other:1")
	if err != nil || again.Content != archive.Content {
		t.Errorf("%s is loaded as %s (%v)", archive.Content, again.Content, err)
	}
}

// FuzzOpenArchive: any file is a valid archive, or is refused with its name.
func FuzzOpenArchive(f *testing.F) {
	manifest := `[{"Config":"config.json","RepoTags":["trainer:1"],"Layers":["layer.tar"]}]`
	f.Add([]byte("trainer"), "trainer:1")
	f.Add([]byte{}, "")
	f.Add(tarOf(f), "trainer:1")
	f.Add(tarOf(f, file{name: "manifest.json", content: manifest}, file{name: "config.json", content: "{}"},
		file{name: "layer.tar"}), "trainer:1")
	f.Add(tarOf(f, file{name: "manifest.json", link: "manifest.json"}), "trainer:1")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte, ref string) {
		file := filepath.Join(dir, "images.tar")
		must(t, os.WriteFile(file, content, 0o600))
		expectArchive(t, file, ref)
	})
}

// FuzzArchiveManifest checks the same for any manifest.
func FuzzArchiveManifest(f *testing.F) {
	f.Add(`[{"Config":"config.json","RepoTags":["trainer:1"],"Layers":["layer.tar"]}]`,
		`{"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`, "layer.tar", "",
		"trainer:1")
	f.Add(`[{"Config":"config.json"},{"Config":"config.json","RepoTags":["a","trainer"],"Layers":[]}]`,
		`{"config":{"Healthcheck":{"Interval":-1}}}`, "layer.tar", "config.json", "docker.io/library/trainer:latest")
	f.Add(`[null]`, `null`, "a", "b", "")
	f.Add(`[]`, ``, "", "", "")
	f.Add(`[{"Config":"repositories"}]`, ``, "repositories", "config.json", "")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, manifest, config, layer, link, ref string) {
		content := tarOf(t, file{name: "manifest.json", content: manifest}, file{name: "config.json", content: config},
			file{name: layer, content: "layer", link: link})
		file := filepath.Join(dir, "images.tar")
		must(t, os.WriteFile(file, content, 0o600))
		expectArchive(t, file, ref)
	})
}

// FuzzIgnored: a context has its Dockerfile and .dockerignore whatever is ignored, or the error
// names the file at fault.
func FuzzIgnored(f *testing.F) {
	for _, ignore := range []string{
		"", "*", "**", "!", "data\n!data/keep.txt\n", "[a-\n", "[z-a]\n", "*\n!src\n", "\xef\xbb\xbf# all\n/*\n",
		"Dockerfile*\n.dockerignore\n", strings.Repeat("a", 1<<17),
	} {
		f.Add(ignore, "Dockerfile")
	}
	f.Add("*", "docker[1/file*")
	f.Add("*", "!Dockerfile")
	f.Add("*", ` \`)
	f.Fuzz(func(t *testing.T, ignore, dockerfile string) {
		root := t.TempDir()
		b := Build{Context: root, Dockerfile: dockerfile}
		for name, content := range map[string]string{
			dockerfile: "FROM scratch\n", "data/keep.txt": "k", "src/c.py": "c", ignoreFile: ignore,
		} {
			at := filepath.Join(root, name)
			if !filepath.IsLocal(name) || os.MkdirAll(filepath.Dir(at), 0o700) != nil ||
				os.WriteFile(at, []byte(content), 0o600) != nil {
				t.Skip("no such file can be")
			}
		}
		digest, err := b.Digest()
		if err != nil {
			if !strings.Contains(err.Error(), filepath.Join(root, ignoreFile)) {
				t.Errorf("the error does not name %s: %v", ignoreFile, err)
			}
			return
		}
		if again, err := b.Digest(); err != nil || again != digest {
			t.Errorf("the digest is %s, and then %s (%v)", digest, again, err)
		}
		var names []string
		for _, entry := range entries(t, read(t, b.Tar)) {
			names = append(names, entry.name)
		}
		for _, needed := range []string{ignoreFile, path.Clean(dockerfile)} {
			if !slices.Contains(names, needed) {
				t.Errorf("%q is not among %q", needed, names)
			}
		}
		if plain := "data/keep.txt"; strings.TrimSpace(ignore) == "" && !slices.Contains(names, plain) {
			t.Errorf("%q is not among %q, and nothing is left out", plain, names)
		}
	})
}
