//go:build linux

package acceptance

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The folders of this repository, relative to a package of tests.
const (
	Examples = "../../../examples"
	Modules  = "../../../modules"
)

// WithModules copies the modules into a workspace.
func WithModules(w *acctest.Workspace) {
	w.Helper()
	if err := os.CopyFS(filepath.Join(w.Dir, "modules"), os.DirFS(Modules)); err != nil {
		w.Fatal(err)
	}
}

var onBareHosts = regexp.MustCompile(`(?m)^\s*engine\s*=\s*"systemd"`)

// OnBareHosts reports whether a configuration has a cluster on bare hosts.
func OnBareHosts(configuration []byte) bool { return onBareHosts.Match(configuration) }
