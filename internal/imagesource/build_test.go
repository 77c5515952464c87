package imagesource

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// folder returns a folder with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o644))
	}
	return root
}

func build(root string) Build { return Build{Context: root, Dockerfile: "Dockerfile"} }

func TestContext(t *testing.T) {
	root := folder(t, map[string]string{"Dockerfile": "FROM scratch\n", "src/train.py": "pass\n"})
	must(t, os.Chmod(filepath.Join(root, "src/train.py"), 0o755))
	must(t, os.Symlink("src/train.py", filepath.Join(root, "train")))
	if os.Getuid() == 0 {
		must(t, os.Chown(filepath.Join(root, "Dockerfile"), 1000, 1000)) // root owns it in an image
	}
	socket, err := net.Listen("unix", filepath.Join(root, "socket"))
	must(t, err)
	defer socket.Close()

	linked := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(root, linked))
	want := []file{
		{name: "Dockerfile", content: "FROM scratch\n", mode: 0o644},
		{name: "src/", mode: 0o755},
		{name: "src/train.py", content: "pass\n", mode: 0o755},
		{name: "train", link: "src/train.py", mode: 0o777},
	}
	for name, at := range map[string]string{"folder": root, "a link to it": linked} {
		got := entries(t, read(t, build(at).Tar))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestModeIn(t *testing.T) {
	for _, test := range []struct {
		goos              string
		mode              fs.FileMode
		permissions, want int64
	}{
		{"linux", 0, 0o644, 0o644}, {"darwin", 0, 0o755, 0o755}, {"darwin", fs.ModeSymlink, 0o755, 0o777},
		{"windows", 0, 0o666, 0o755}, {"windows", fs.ModeDir, 0o777, 0o755}, {"windows", fs.ModeSymlink, 0o666, 0o777},
	} {
		if got := modeIn(test.goos, test.mode, test.permissions); got != test.want {
			t.Errorf("%s with %o of %s has %o in an image, want %o", test.mode, test.permissions, test.goos, got,
				test.want)
		}
	}
}

func TestIgnored(t *testing.T) {
	files := map[string]string{
		"Dockerfile": "FROM scratch\n", "data/a.bin": "a", "data/keep.txt": "k", "src/b.pyc": "b", "src/c.py": "c",
	}
	for name, test := range map[string]struct {
		ignore string
		want   []string
	}{
		"a folder": {"data\n", []string{".dockerignore", "Dockerfile", "src/", "src/b.pyc", "src/c.py"}},
		"a pattern": {
			"**/*.pyc\n# *.py\n",
			[]string{".dockerignore", "Dockerfile", "data/", "data/a.bin", "data/keep.txt", "src/", "src/c.py"},
		},
		"a folder but for a file": {
			"data\n!data/keep.txt\n",
			[]string{".dockerignore", "Dockerfile", "data/keep.txt", "src/", "src/b.pyc", "src/c.py"},
		},
		"all but a folder": {"*\n!src\n", []string{".dockerignore", "Dockerfile", "src/", "src/b.pyc", "src/c.py"}},
		"nothing": {"\n", []string{
			".dockerignore", "Dockerfile", "data/", "data/a.bin", "data/keep.txt", "src/", "src/b.pyc", "src/c.py",
		}},
	} {
		root := folder(t, files)
		must(t, os.WriteFile(filepath.Join(root, ".dockerignore"), []byte(test.ignore), 0o600))
		wantNames(t, name, entries(t, read(t, build(root).Tar)), test.want...)
	}
}

func TestDigestOfBuild(t *testing.T) {
	files := map[string]string{
		"Dockerfile": "FROM scratch\n", "other.Dockerfile": "FROM scratch\n", ".dockerignore": "data\n",
		"data/a.bin": "a", "train.py": "pass\n",
	}
	root := folder(t, files)
	first, err := build(root).Digest()
	must(t, err)
	for name, test := range map[string]struct {
		change func(root string, b *Build) error
		same   bool
	}{
		"elsewhere": {func(string, *Build) error { return nil }, true},
		"a checkout's time": {func(root string, _ *Build) error {
			return os.Chtimes(filepath.Join(root, "train.py"), time.Time{}, time.Unix(1e9, 0))
		}, true},
		"what is ignored": {
			func(root string, _ *Build) error { return os.WriteFile(filepath.Join(root, "data/b.bin"), nil, 0o600) },
			true,
		},
		"a file's content": {func(root string, _ *Build) error {
			return os.WriteFile(filepath.Join(root, "train.py"), []byte("fail\n"), 0o600)
		}, false},
		"a file's mode": {
			func(root string, _ *Build) error { return os.Chmod(filepath.Join(root, "train.py"), 0o755) }, false,
		},
		"a file's name": {func(root string, _ *Build) error {
			return os.Rename(filepath.Join(root, "train.py"), filepath.Join(root, "test.py"))
		}, false},
		"a further file": {
			func(root string, _ *Build) error { return os.WriteFile(filepath.Join(root, "empty"), nil, 0o600) }, false,
		},
		"the Dockerfile": {func(_ string, b *Build) error { b.Dockerfile = "other.Dockerfile"; return nil }, false},
		"the stage":      {func(_ string, b *Build) error { b.Target = "test"; return nil }, false},
		"an argument": {
			func(_ string, b *Build) error { b.Args = map[string]string{"VERSION": "2"}; return nil }, false,
		},
	} {
		root := folder(t, files)
		b := build(root)
		must(t, test.change(root, &b))
		got, err := b.Digest()
		must(t, err)
		if (got == first) != test.same {
			t.Errorf("%s: the digest is the same: %t", name, got == first)
		}
	}
}

func TestBuildsThatCantBe(t *testing.T) {
	root := folder(t, map[string]string{"Dockerfile": "FROM scratch\n", "src/train.py": "pass\n"})
	bad := folder(t, map[string]string{"Dockerfile": "FROM scratch\n", ".dockerignore": "[a-\n"})
	for name, test := range map[string]struct {
		build Build
		says  string
	}{
		"no folder":              {build(filepath.Join(root, "nowhere")), "no such file"},
		"a file as folder":       {build(filepath.Join(root, "Dockerfile")), "is not a folder"},
		"no Dockerfile":          {build(filepath.Join(root, "src")), "no such file"},
		"a folder as Dockerfile": {Build{Context: root, Dockerfile: "src"}, "is not a regular file"},
		"a Dockerfile out of reach": {
			Build{Context: filepath.Join(root, "src"), Dockerfile: "../Dockerfile"}, "is outside the folder",
		},
		"a pattern that is none": {build(bad), ".dockerignore"},
	} {
		if _, err := test.build.Digest(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}
