//go:build linux

package acceptance

import (
	"os"
	"path/filepath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The folders of this repository, as seen from a package of tests.
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
