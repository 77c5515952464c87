package imagesource

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// archived writes images to a docker-archive as docker save does, and returns its path and their content digests.
func archived(t *testing.T, refs ...string) (file string, ids map[string]string) {
	t.Helper()
	images, ids := map[name.Reference]v1.Image{}, map[string]string{}
	for _, ref := range refs {
		img, err := random.Image(100, 2)
		must(t, err)
		tag, err := name.NewTag(ref)
		must(t, err)
		config, err := img.ConfigFile()
		must(t, err)
		images[tag], ids[ref] = img, ContentDigest(*config)
	}
	file = filepath.Join(t.TempDir(), "images.tar")
	must(t, tarball.MultiRefWriteToFile(file, images))
	return file, ids
}

func TestOpenArchive(t *testing.T) {
	one, ids := archived(t, "trainer:1.2")
	several, all := archived(t, "trainer:1.2", "docker.io/library/tester:latest")
	for name, test := range map[string]struct{ file, ref, want string }{
		"the only image, whatever it is called": {one, "other:3", ids["trainer:1.2"]},
		"one of several":                        {several, "trainer:1.2", all["trainer:1.2"]},
		"one of several, by its name cut short": {several, "tester", all["docker.io/library/tester:latest"]},
		"one of several, by its name in full":   {several, "docker.io/library/trainer:1.2", all["trainer:1.2"]},
	} {
		archive, err := OpenArchive(test.file, test.ref)
		if err != nil || archive.Content != test.want {
			t.Errorf("%s: got %s (%v), want %s", name, archive.Content, err, test.want)
		}
	}
}

func TestArchivesThatAreNone(t *testing.T) {
	several, _ := archived(t, "trainer:1.2", "tester:1")
	whole, _ := archived(t, "trainer:1.2")
	content, err := os.ReadFile(whole)
	must(t, err)
	write := func(name string, content []byte) string {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, content, 0o600))
		return file
	}
	var empty bytes.Buffer
	must(t, tar.NewWriter(&empty).Close())
	for name, test := range map[string]struct{ file, says string }{
		"no file":         {"/nowhere/trainer.tar", "no such file"},
		"no archive":      {write("text", []byte("trainer")), "is not a docker-archive"},
		"no manifest":     {write("empty.tar", empty.Bytes()), "is not a docker-archive"},
		"cut off":         {write("half.tar", content[:len(content)/3]), "docker-archive"},
		"none of several": {several, `holds 2 images, but not "trainer:2": there are`},
	} {
		if _, err := OpenArchive(test.file, "trainer:2"); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func TestDigestOfArchive(t *testing.T) {
	first, _ := archived(t, "trainer:1.2")
	other, _ := archived(t, "trainer:1.2")
	digest := func(file string) string {
		archive, err := OpenArchive(file, "trainer:1.2")
		must(t, err)
		return archive.Digest
	}
	content, err := os.ReadFile(first)
	must(t, err)
	copied := filepath.Join(t.TempDir(), "copy.tar")
	must(t, os.WriteFile(copied, content, 0o600))
	if digest(first) != digest(copied) || digest(first) == digest(other) {
		t.Errorf("the digests of an archive, its copy and another are %s, %s and %s", digest(first), digest(copied),
			digest(other))
	}
}

// The loaded archive has no reference, and holds the same image.
func TestUntagged(t *testing.T) {
	file, ids := archived(t, "trainer:1.2", "tester:1")
	archive, err := OpenArchive(file, "tester:1")
	must(t, err)
	content := read(t, archive.Untagged)
	var manifest tarball.Manifest
	for _, entry := range entries(t, content) {
		switch entry.name {
		case "manifest.json":
			must(t, json.Unmarshal([]byte(entry.content), &manifest))
		case "repositories", "index.json":
			t.Errorf("%s is among what is loaded", entry.name)
		}
	}
	if len(manifest) != 1 || manifest[0].RepoTags != nil {
		t.Errorf("the images that are loaded are %+v", manifest)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, nil)
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	if content := ContentDigest(*config); content != ids["tester:1"] {
		t.Errorf("what is loaded is %s, not %s", content, ids["tester:1"])
	}
	layers, err := img.Layers()
	must(t, err)
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		must(t, err)
		hash, _, err := v1.SHA256(content)
		must(t, err)
		want, err := layer.DiffID()
		must(t, err)
		if hash != want {
			t.Errorf("a layer is %s, want %s", hash, want)
		}
	}
}

// file is a file of a tar archive, with the parts of its header that a build can see.
type file struct {
	name, content, link string
	mode                int64
	owner               [2]int
}

func read(t *testing.T, open func() (io.ReadCloser, error)) []byte {
	t.Helper()
	r, err := open()
	must(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	must(t, err)
	return content
}

// entries returns the files of a tar archive.
func entries(t *testing.T, content []byte) (files []file) {
	t.Helper()
	archive := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		files = append(files,
			file{header.Name, string(content), header.Linkname, header.Mode, [2]int{header.Uid, header.Gid}})
	}
}

func wantNames(t *testing.T, when string, files []file, want ...string) {
	t.Helper()
	var got []string
	for _, f := range files {
		got = append(got, f.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}
