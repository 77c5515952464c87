//go:build linux

package filestore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/filesource"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lab is a store, and a version to put into it.
type lab struct {
	*testing.T
	Store
	version filesource.Content
}

func newLab(t *testing.T) lab {
	t.Helper()
	l := lab{t, Store{filepath.Join(t.TempDir(), "content")}, versionOf(t, "one")}
	t.Cleanup(func() { must(t, l.Clear()) })
	return l
}

// versionOf returns a version of a small program.
func versionOf(t *testing.T, says string) filesource.Content {
	t.Helper()
	source := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(source, "lib", "deep"), 0o700))
	for name, content := range map[string]string{
		"train.py": says, "lib/data.py": "data", "lib/deep/run": "run", "empty": "",
	} {
		must(t, os.WriteFile(filepath.Join(source, name), []byte(content), 0o600))
	}
	must(t, os.Chmod(filepath.Join(source, "lib/deep/run"), 0o700))
	must(t, os.Symlink("../train.py", filepath.Join(source, "lib", "link")))
	content, err := filesource.Source{Path: source}.Read(t.Context())
	must(t, err)
	return content
}

func (l lab) digest() string { return l.version.Tree.Digest() }

// at returns the path of a file of the version.
func (l lab) at(name string) string { return filepath.Join(l.Path(l.digest()), name) }

func (l lab) provide() {
	l.Helper()
	must(l, l.Provide(l.Context(), l.version.Tree, l.version.Tar))
}

// expect fails the test unless exactly these files of the version are wrong, such as "train.py altered".
func (l lab) expect(when string, want ...string) {
	l.Helper()
	faults, err := l.Check(l.Context(), l.digest())
	must(l, err)
	var got []string
	for _, file := range faults {
		how := " altered"
		if file.Missing {
			how = " missing"
		}
		got = append(got, file.Path+how)
	}
	if !slices.Equal(got, want) {
		l.Errorf("%s: %q are damaged, want %q", when, got, want)
	}
}

// expectNothingElse fails the test unless the store contains this many versions, and nothing else.
func (l lab) expectNothingElse(when string, versions int) {
	l.Helper()
	entries, err := os.ReadDir(l.Dir)
	must(l, err)
	digests, err := l.Versions()
	must(l, err)
	if len(entries) != versions || len(digests) != versions {
		l.Errorf("%s: there are %v, want %d versions", when, entries, versions)
	}
}

// mode returns the mode of a file.
func (l lab) mode(name string) string {
	l.Helper()
	info, err := os.Lstat(l.at(name))
	must(l, err)
	return info.Mode().String()
}

func TestProvide(t *testing.T) {
	l := newLab(t)
	l.provide()
	l.expect("provided")
	l.expectNothingElse("provided", 1)
	for name, want := range map[string]string{
		".": "dr-xr-xr-x", "train.py": "-r--r--r--", "lib/deep": "dr-xr-xr-x", "lib/deep/run": "-r-xr-xr-x",
		"lib/link": "Lrwxrwxrwx",
	} {
		if got := l.mode(name); got != want {
			t.Errorf("%s has mode %s, want %s", name, got, want)
		}
	}
	content, err := os.ReadFile(l.at("lib/link"))
	if err != nil || string(content) != "one" {
		t.Errorf("through the link there is %q (%v)", content, err)
	}
	if strings.Contains(l.Path(l.digest()), ":") {
		t.Errorf("%s can't be in a list of paths", l.Path(l.digest()))
	}
	must(t, l.Provide(t.Context(), l.version.Tree,
		func() (io.ReadCloser, error) { return nil, errors.New("asked for what is there") }))
}

// TestMend: any damage to files is detected and repaired in place; the rest stays untouched.
func TestMend(t *testing.T) {
	write := func(name, content string) func(lab) error {
		return func(l lab) error {
			return errors.Join(os.Remove(l.at(name)), os.WriteFile(l.at(name), []byte(content), 0o400))
		}
	}
	for name, test := range map[string]struct {
		damage func(lab) error
		want   []string
	}{
		"nothing":         {func(lab) error { return nil }, nil},
		"another content": {write("train.py", "two"), []string{"train.py altered"}},
		"written in place": {
			func(l lab) error { return writeOver(l.at("train.py"), "two") }, []string{"train.py altered"},
		},
		"the same content": {write("train.py", "one"), nil},
		"cut off": {func(l lab) error {
			return errors.Join(os.Chmod(l.at("lib/data.py"), 0o600), os.Truncate(l.at("lib/data.py"), 0))
		}, []string{"lib/data.py altered"}},
		"not executable": {
			func(l lab) error { return os.Chmod(l.at("lib/deep/run"), 0o600) }, []string{"lib/deep/run altered"},
		},
		"other modes": {func(l lab) error { return os.Chmod(l.at("train.py"), 0o644) }, nil},
		"a file less": {func(l lab) error { return os.Remove(l.at("empty")) }, []string{"empty missing"}},
		"a folder less": {
			func(l lab) error { return os.RemoveAll(l.at("lib")) },
			[]string{"lib/data.py missing", "lib/deep/run missing", "lib/link missing"},
		},
		"all files": {func(l lab) error { return removeTree(l.at(".")) }, []string{
			"empty missing", "lib/data.py missing", "lib/deep/run missing", "lib/link missing", "train.py missing",
		}},
		"another link": {func(l lab) error {
			return errors.Join(os.Remove(l.at("lib/link")), os.Symlink("data.py", l.at("lib/link")))
		}, []string{"lib/link altered"}},
		"a link for a file": {func(l lab) error {
			return errors.Join(os.Remove(l.at("train.py")), os.Symlink("/etc/passwd", l.at("train.py")))
		}, []string{"train.py altered"}},
		"a folder for a file": {func(l lab) error {
			return errors.Join(os.Remove(l.at("train.py")), os.MkdirAll(l.at("train.py/a"), 0o700))
		}, []string{"train.py altered"}},
		"a file for a folder": {func(l lab) error {
			return errors.Join(os.RemoveAll(l.at("lib/deep")), os.WriteFile(l.at("lib/deep"), nil, 0o600))
		}, []string{"lib/deep/run missing"}},
		"a link for a folder": {func(l lab) error {
			return errors.Join(os.Rename(l.at("lib"), l.Dir+"-lib"), os.Symlink(l.Dir+"-lib", l.at("lib")))
		}, []string{"lib/data.py missing", "lib/deep/run missing", "lib/link missing"}},
		"a file more": {func(l lab) error { return os.WriteFile(l.at("lib/added.pyc"), nil, 0o600) }, nil},
		"the manifest": {func(l lab) error {
			return os.Remove(filepath.Join(l.Dir, filepath.Base(filepath.Dir(l.at("."))), manifestFile))
		}, []string{"manifest.json missing"}},
		"the manifest's files": {
			func(l lab) error { return forge(filepath.Join(filepath.Dir(l.at(".")), manifestFile)) },
			[]string{"manifest.json missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.provide()
			for _, folder := range []string{".", "lib", "lib/deep"} {
				must(t, os.Chmod(l.at(folder), 0o700)) // as root may
			}
			must(t, test.damage(l))
			l.expect("damaged", test.want...)
			l.expect("looked at again", test.want...)
			l.provide()
			l.expect("mended")
			l.expectNothingElse("mended", 1)
			if name == "a file more" {
				if _, err := os.Stat(l.at("lib/added.pyc")); err != nil {
					t.Error(err)
				}
			}
			content, err := os.ReadFile(l.at("lib/link"))
			if err != nil || string(content) != "one" {
				t.Errorf("train.py is %q (%v)", content, err)
			}
		})
	}
}

// TestMendInUse: while files are mended, and if that fails, members that run as other users reach all others.
func TestMendInUse(t *testing.T) {
	l := newLab(t)
	expect := func(when, want string) {
		t.Helper()
		for _, folder := range []string{".", "lib", "lib/deep"} {
			if got := l.mode(folder); got != want {
				t.Errorf("%s: %s has mode %s, want %s", when, folder, got, want)
			}
		}
	}
	l.provide()
	must(t, os.Chmod(l.at("."), 0o700))
	must(t, os.Remove(l.at("empty")))
	broken := errors.New("connection lost")
	if err := l.Provide(t.Context(), l.version.Tree, func() (io.ReadCloser, error) {
		expect("while content arrives", "drwxr-xr-x")
		return nil, broken
	}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	expect("without content", "dr-xr-xr-x")
	l.provide()
	must(t, os.Chmod(l.at("lib"), 0o700))
	l.provide()
	expect("with nothing to mend", "dr-xr-xr-x")
}

// writeOver writes to a file like a program that had it open, and restores its times.
func writeOver(path, content string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, info.Mode()),
		os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// forge changes a digest in a manifest.
func forge(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(content, []byte(`"sha256":"`), []byte(`"sha256":"0`), 1), 0o600)
}

// TestProvideFails: content other than announced leaves nothing behind.
func TestProvideFails(t *testing.T) {
	other := versionOf(t, "two")
	broken := errors.New("connection lost")
	for name, test := range map[string]struct {
		content func(l lab) func() (io.ReadCloser, error)
		says    string
	}{
		"no content": {
			func(lab) func() (io.ReadCloser, error) { return func() (io.ReadCloser, error) { return nil, broken } },
			"connection lost",
		},
		"cut off": {
			func(l lab) func() (io.ReadCloser, error) { return cutOff(l.version, 1000) }, "unexpected EOF",
		},
		"another content": {
			func(lab) func() (io.ReadCloser, error) { return other.Tar }, "files did not arrive as announced: train.py",
		},
		"nothing": {func(lab) func() (io.ReadCloser, error) {
			return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }
		}, "lib/data.py"},
	} {
		l := newLab(t)
		if err := l.Provide(t.Context(), l.version.Tree, test.content(l)); err == nil ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
		l.expectNothingElse(name, 0)
		l.provide()
		l.expect(name)
	}
	l := newLab(t)
	if err := l.Provide(t.Context(), domain.FileTree{{Path: "../a"}}, l.version.Tar); err == nil {
		t.Error("a tree that leads out of its folder was written")
	}
}

func cutOff(version filesource.Content, bytes int64) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		content, err := version.Tar()
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(content, bytes), content}, err
	}
}

// TestUnannounced: of several files of one name, the announced one is taken; unannounced files are not written.
func TestUnannounced(t *testing.T) {
	l := newLab(t)
	content := func() (io.ReadCloser, error) {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, file := range [][2]string{
			{"train.py", "two"}, {"../escape", "x"}, {"more", "x"}, {"train.py", "one"}, {"lib/data.py", "data"},
			{"lib/deep/run", "run"}, {"empty", ""},
		} {
			must(t,
				w.WriteHeader(&tar.Header{
					Typeflag: tar.TypeReg, Name: file[0], Mode: 0o777, Size: int64(len(file[1])),
				}))
			_, err := io.WriteString(w, file[1])
			must(t, err)
		}
		return io.NopCloser(&archive), w.Close()
	}
	must(t, l.Provide(t.Context(), l.version.Tree, content))
	l.expect("provided")
	entries, err := os.ReadDir(l.at("."))
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("there are %v", entries)
	}
}

func TestRemove(t *testing.T) {
	l := newLab(t)
	must(t, l.Remove(t.Context(), []string{l.digest()}))
	l.provide()
	other := versionOf(t, "two")
	must(t, l.Provide(t.Context(), other.Tree, other.Tar))
	must(t, os.MkdirAll(filepath.Join(l.Dir, temporaryStart+"died", "files"), 0o700))
	must(t, l.Remove(t.Context(), []string{other.Tree.Digest(), "sha256:" + strings.Repeat("0", 64)}))
	l.expectNothingElse("removed", 1)
	l.expect("the other one was removed")
	if err := l.Remove(t.Context(), []string{"../content"}); err == nil {
		t.Error("what is not a digest was removed")
	}
}

// TestAtOnce: concurrent writers, and readers meanwhile, find complete versions.
func TestAtOnce(t *testing.T) {
	l := newLab(t)
	versions := []filesource.Content{l.version, versionOf(t, "two"), versionOf(t, "three")}
	var writers sync.WaitGroup
	for i := range 9 {
		writers.Go(func() {
			version := versions[i%len(versions)]
			if err := l.Provide(t.Context(), version.Tree, version.Tar); err != nil {
				t.Error(err)
			}
			digests, err := l.Versions()
			if err != nil {
				t.Error(err)
			}
			for _, digest := range digests {
				if faults, err := l.Check(t.Context(), digest); err != nil || len(faults) > 0 {
					t.Errorf("%v are damaged (%v)", faults, err)
				}
			}
		})
	}
	writers.Wait()
	l.expectNothingElse("written", len(versions))
	unlock, err := l.lock(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Provide(ctx, l.version.Tree, l.version.Tar); !errors.Is(err, context.Canceled) {
		t.Errorf("while another writes: got %v", err)
	}
	must(t, unlock())
}

// TestStamps: only the contents of files that were touched are read.
func TestStamps(t *testing.T) {
	l := newLab(t)
	l.provide()
	version := filepath.Dir(l.at("."))
	known, err := readManifest(version, l.digest())
	must(t, err)
	before := slices.Clone(known.Stamps)
	must(t, os.Chmod(l.at("train.py"), 0o600))
	must(t, os.Chmod(l.at("train.py"), 0o400))
	l.expect("touched")
	known, err = readManifest(version, l.digest())
	must(t, err)
	if cmp.Equal(before, known.Stamps) {
		t.Error("it is not noted that a file was read again, and is right")
	}
	faults, err := check(t.Context(), version, known)
	if err != nil || !slices.Equal(faults, []engine.FileFault(nil)) {
		t.Errorf("%v are damaged (%v)", faults, err)
	}
}
