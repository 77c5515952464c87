package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// build builds an image or fails the test, and returns its ID.
func build(t *testing.T, config v1.Config, files ...File) (v1.Image, string) {
	t.Helper()
	img, err := Build(config, files...)
	if err != nil {
		t.Fatal(err)
	}
	id, err := ID(img)
	if err != nil {
		t.Fatal(err)
	}
	return img, id
}

func TestBuildIsDeterministic(t *testing.T) {
	config := v1.Config{Entrypoint: []string{"/bin/a"}, Env: []string{"A=1"}}
	a, b := FromBytes("/bin/a", 0o755, []byte("content a")), FromBytes("/etc/b", 0o644, []byte("content b"))
	img, id := build(t, config, a, b)
	if err := validate.Image(img, validate.Fast); err != nil {
		t.Error(err)
	}
	source := filepath.Join(t.TempDir(), "anything")
	if err := os.WriteFile(source, []byte("content a"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	fromDisk, err := FromDisk("/bin/a", source)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		config v1.Config
		files  []File
		same   bool
	}{
		{"the same again", config, []File{a, b}, true},
		{"in another order", config, []File{b, a}, true},
		{"from disk", config, []File{fromDisk, b}, true},
		{"other content", config, []File{a, FromBytes("/etc/b", 0o644, []byte("content c"))}, false},
		{"another mode", config, []File{a, FromBytes("/etc/b", 0o600, []byte("content b"))}, false},
		{"another path", config, []File{a, FromBytes("/etc/c", 0o644, []byte("content b"))}, false},
		{"another entrypoint", v1.Config{Entrypoint: []string{"/bin/b"}, Env: []string{"A=1"}}, []File{a, b}, false},
		{"no file", config, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, other := build(t, test.config, test.files...); (other == id) != test.same {
				t.Errorf("ID %s, before %s; want them to be the same: %t", other, id, test.same)
			}
		})
	}
}

// archived returns the files of a docker-archive by name.
func archived(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return content
		}
		if err != nil {
			t.Fatal(err)
		}
		if content[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrite(t *testing.T) {
	img, id := build(t, v1.Config{Entrypoint: []string{"/usr/local/bin/trainer"}, Labels: map[string]string{"a": "b"}},
		FromBytes("/usr/local/bin/trainer", 0o755, []byte("a program")),
		FromBytes("/usr/share/data", 0o644, []byte("digits")))
	var archive, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&archive, &again} {
		if err := Write(out, "trainer:1.2", img); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("an image is not written the same each time")
	}
	content := archived(t, &archive)
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(content["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].Config != id || !slices.Equal(manifest[0].RepoTags, []string{"trainer:1.2"}) ||
		len(manifest[0].Layers) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(content[id], &config); err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Config.Labels["a"] != "b" ||
		!slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/trainer"}) {
		t.Errorf("the configuration is %+v", config)
	}
	var entries []string
	for layer := tar.NewReader(bytes.NewReader(content[manifest[0].Layers[0]])); ; {
		header, err := layer.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(layer)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(epoch) || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %s and belongs to %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		entries = append(entries, fmt.Sprintf("%s %o %s", header.Name, header.Mode, data))
	}
	want := []string{
		"usr/ 755 ", "usr/local/ 755 ", "usr/local/bin/ 755 ", "usr/local/bin/trainer 755 a program",
		"usr/share/ 755 ", "usr/share/data 644 digits",
	}
	if !slices.Equal(entries, want) {
		t.Errorf("the layer holds\n%s\nwant\n%s", strings.Join(entries, "\n"), strings.Join(want, "\n"))
	}
}

func TestWriteReferences(t *testing.T) {
	img, _ := build(t, v1.Config{}, FromBytes("/a", 0o644, nil))
	digest := "@sha256:" + strings.Repeat("0", 64)
	for ref, want := range map[string]string{
		"trainer":                     "trainer:latest",
		"team/trainer:1":              "team/trainer:1",
		"docker.io/library/trainer":   "trainer:latest",
		"registry.example:5000/a/b":   "registry.example:5000/a/b:latest",
		"Trainer":                     "",
		"trainer:1:2":                 "",
		"":                            "",
		"trainer" + digest:            "",
		"trainer:1" + digest:          "",
		strings.TrimLeft(digest, "@"): "",
	} {
		var archive bytes.Buffer
		err := Write(&archive, ref, img)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", ref)) {
				t.Errorf("%q: error %v", ref, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", ref, err)
			continue
		}
		if manifest := string(archived(t, &archive)["manifest.json"]); !strings.Contains(manifest,
			`"RepoTags":["`+want+`"]`) {
			t.Errorf("%q: want %s in the manifest: %s", ref, want, manifest)
		}
	}
}

func TestBuildRejects(t *testing.T) {
	file := func(path string) File { return FromBytes(path, 0o644, []byte("x")) }
	failing := File{Path: "/a", Size: 1, Open: func() (io.ReadCloser, error) { return nil, os.ErrPermission }}
	longer, shorter := file("/a"), file("/a")
	longer.Size, shorter.Size = 2, 0
	for _, test := range []struct {
		name  string
		files []File
		want  string
	}{
		{"relative", []File{file("bin/a")}, `"bin/a"`},
		{"unclean", []File{file("/bin/../a")}, `"/bin/../a"`},
		{"root", []File{file("/")}, `"/"`},
		{"twice", []File{file("/a"), file("/a")}, `"/a" is given twice`},
		{"file, then folder", []File{file("/a"), file("/a/b")}, `"/a" is given twice, or is also a folder`},
		{"folder, then file", []File{file("/a/b"), file("/a")}, `"/a" is given twice, or is also a folder`},
		{"unreadable", []File{failing}, "permission denied"},
		{"shorter than its size", []File{longer}, "missed writing"},
		{"longer than its size", []File{shorter}, "write too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Build(v1.Config{}, test.files...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
	if _, err := FromDisk("/a", t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder as a file: error %v", err)
	}
	if _, err := FromDisk("/a", filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: error %v", err)
	}
}
