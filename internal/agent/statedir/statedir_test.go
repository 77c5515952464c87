//go:build linux

package statedir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultRoot(t *testing.T) {
	for name, c := range map[string]struct{ own, xdg, home, want string }{
		"its own variable":            {"/srv/state", "/xdg", "/home/ada", "/srv/state"},
		"the user's state folder":     {"", "/xdg", "/home/ada", "/xdg/trainyard"},
		"the default state folder":    {"", "", "/home/ada", "/home/ada/.local/state/trainyard"},
		"a relative one is not valid": {"", "xdg", "/home/ada", "/home/ada/.local/state/trainyard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TRAINYARD_STATE_DIR", c.own)
			t.Setenv("XDG_STATE_HOME", c.xdg)
			t.Setenv("HOME", c.home)
			if got, err := DefaultRoot(); err != nil || got != c.want {
				t.Errorf("the root is %q (%v), not %q", got, err, c.want)
			}
		})
	}
	t.Setenv("TRAINYARD_STATE_DIR", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := DefaultRoot(); err == nil {
		t.Errorf("without a home the root is %q", got)
	}
}

func TestCreateIsForItsOwnerAlone(t *testing.T) {
	d := create(t)
	must(t, d.Create())
	must(t, filepath.WalkDir(d.Path(), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	}))
}

func TestExists(t *testing.T) {
	d := create(t)
	if exists, err := d.Exists(); exists || err != nil {
		t.Errorf("a cluster without a document exists: %v (%v)", exists, err)
	}
	must(t, d.WriteItem(clusterItem))
	if exists, err := d.Exists(); !exists || err != nil {
		t.Errorf("a cluster with a document exists: %v (%v)", exists, err)
	}
	// What can't be determined is an error, never "gone".
	blocked := Dir{Root: d.Item(clusterItem.Key), Cluster: "lab"}
	if exists, err := blocked.Exists(); exists || err == nil {
		t.Errorf("a cluster in the place of a file exists: %v (%v)", exists, err)
	}
}

func TestList(t *testing.T) {
	for folder, suffix := range map[string]string{Specs: ".json", Documents: ".item", Records: ".item"} {
		d := create(t)
		if names, err := d.List("no-such-folder"); len(names) > 0 || err != nil {
			t.Errorf("a folder that is not there has %v (%v)", names, err)
		}
		must(t, Write(d.Document(folder, "mnist"), map[string]int{"run": 1}, Volatile))
		must(t, Write(d.Document(folder, "a.b"), map[string]int{"run": 22}, Volatile))
		write(t, d.Path(folder, ".new-123"), "a write that died")
		modified := time.Unix(1_700_000_000, 5).UTC()
		must(t, os.Chtimes(d.Document(folder, "mnist"), modified, modified))
		must(t, os.Chtimes(d.Document(folder, "a.b"), modified, modified.Add(time.Second)))
		got, err := d.List(folder)
		must(t, err)
		want := map[string]Stamp{
			"mnist": {modified, int64(len(`{"run":1}`)), got["mnist"].Inode},
			"a.b":   {modified.Add(time.Second), int64(len(`{"run":22}`)), got["a.b"].Inode},
		}
		if got["mnist"].Inode == got["a.b"].Inode {
			t.Errorf("two files have the same inode: %+v", got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", folder, diff)
		}
		if names, err := d.List(filepath.Join(folder, "mnist"+suffix)); err == nil {
			t.Errorf("a file in the place of a folder has %v", names)
		}
	}
}

// tree returns the paths of the files and empty folders below a folder.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !entry.IsDir() || len(filesIn(t, path)) == 0 {
			found = append(found, name)
		}
		return nil
	}))
	return found
}

func TestRemove(t *testing.T) {
	d := create(t)
	beside := Dir{Root: d.Root, Cluster: "other"}
	must(t, beside.Create())
	must(t, d.WriteItem(clusterItem))
	must(t, Write(d.Document(States, member), State{}, Volatile))
	write(t, filepath.Join(d.FilesDir(member), "hostfile"), "a\n")
	must(t, os.MkdirAll(d.WorkDir("mnist-worker-1"), 0o700))
	write(t, filepath.Join(d.WorkDir(member), "runs", "model.bin"), "weights")
	write(t, d.Path(work, "notes.txt"), "what members share")
	must(t, d.Remove())
	want := []string{"work/mnist-worker-0/runs/model.bin", "work/notes.txt"}
	if diff := cmp.Diff(want, tree(t, d.Path())); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	must(t, os.RemoveAll(d.WorkDir(member)))
	must(t, os.Remove(d.Path(work, "notes.txt")))
	must(t, d.Remove())
	must(t, d.Remove())
	if names := filesIn(t, d.Root); !slices.Equal(names, []string{"other"}) {
		t.Errorf("beside the other cluster there are %v", names)
	}
}

func TestForget(t *testing.T) {
	d := create(t)
	for _, name := range []string{member, "mnist-worker-1"} {
		for _, folder := range []string{Staged, Specs, Stops, States} {
			must(t, Write(d.Document(folder, name), struct{}{}, Volatile))
		}
		write(t, filepath.Join(d.FilesDir(name), "hostfile"), "a\n")
		must(t, os.MkdirAll(d.WorkDir(name), 0o700))
		write(t, d.Log(name), "one\n")
	}
	write(t, filepath.Join(d.WorkDir(member), "model.bin"), "weights")
	about := func(name string) []string {
		return slices.DeleteFunc(tree(t, d.Path()), func(path string) bool { return !strings.Contains(path, name) })
	}
	other := about("mnist-worker-1")
	if len(other) != 7 {
		t.Fatalf("about a member there are %v", other)
	}

	must(t, d.Forget(member))
	if diff := cmp.Diff([]string{"work/mnist-worker-0/model.bin"}, about(member)); diff != "" {
		t.Errorf("what is left of the member (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other, about("mnist-worker-1")); diff != "" {
		t.Errorf("what is left of another (-want +got):\n%s", diff)
	}
	must(t, d.Forget("mnist-worker-1"))
	must(t, d.Forget("mnist-worker-1"))
	if left := about("mnist-worker-1"); len(left) > 0 {
		t.Errorf("of a member that left nothing in its working directory there are %v", left)
	}
}
