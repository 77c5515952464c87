//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// A folder created by another user is not used: neither by a plan, nor by the apply of an older plan, nor in an
// existing cluster.
func TestAccUntrustedStateDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of other users")
	}
	const mallory = 65534
	w, l := newWorkspace(t)
	l.configure(w, theCluster)
	l.must(os.Chmod(w.StateDir, 0o777|os.ModeSticky))
	w.Must("plan", "-out=planned")
	cluster, specs := l.files.Path(), l.files.Path(statedir.Specs)
	refused := func(folder string, args ...string) {
		t.Helper()
		acceptance.Refuses(w, acceptance.Says(folder+" belongs to user nobody (65534)", "Choose another state_dir"),
			args...)
	}
	for name, made := range map[string]struct {
		folder string
		make   func() error
		during []string
	}{
		"the cluster's folder": {
			cluster, func() error { return os.Mkdir(cluster, 0o700) }, []string{"apply", "planned"},
		},
		"a folder in it": {specs, func() error { return os.MkdirAll(specs, 0o700) }, []string{"plan"}},
		"a link":         {cluster, func() error { return os.Symlink(t.TempDir(), cluster) }, []string{"plan"}},
	} {
		l.must(made.make())
		l.must(os.Lchown(made.folder, mallory, mallory))
		before := below(l, w.StateDir)
		refused(made.folder, made.during...)
		if after := below(l, w.StateDir); !slices.Equal(before, after) {
			t.Errorf("%s: %v became %v", name, before, after)
		}
		acctest.Eventually(t, "nobody to run", func() bool { return len(acctest.Processes(t, w.StateDir)) == 0 })
		l.must(os.RemoveAll(cluster))
	}

	w.Must("apply", "-auto-approve")
	l.must(os.Chown(specs, mallory, -1))
	refused(specs, "plan")
	l.must(os.Chown(specs, 0, -1))
	w.ExpectNoChange("with the folder given back")
}

// below returns the paths of a folder and everything in it.
func below(l *lab, folder string) (paths []string) {
	l.Helper()
	l.must(filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}
