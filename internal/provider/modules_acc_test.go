package provider_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

const modules = "../../modules"

// withModules copies the modules into a workspace.
func withModules(w *acctest.Workspace) {
	w.Helper()
	if err := os.CopyFS(filepath.Join(w.Dir, "modules"), os.DirFS(modules)); err != nil {
		w.Fatal(err)
	}
}

// TestAccModules: each module passes its own tests, which need no engine.
func TestAccModules(t *testing.T) {
	acceptance(t)
	entries, err := os.ReadDir(modules)
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no modules: %v", err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
			withModules(w)
			w.Write("main.tf", "") // there is nothing to destroy at the end
			folder := "-chdir=" + filepath.Join("modules", entry.Name())
			w.Must(folder, "get")
			t.Log(w.Must(folder, "test"))
		})
	}
}
