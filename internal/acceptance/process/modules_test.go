//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// modules returns the names of the modules.
func modules(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(acceptance.Modules)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no modules")
	}
	return names
}

// TestAccModules: each module passes its own tests, which need no engine.
func TestAccModules(t *testing.T) {
	acceptance.Test(t)
	for _, name := range modules(t) {
		t.Run(name, func(t *testing.T) {
			acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, name))
			w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
			acceptance.WithModules(w)
			w.Write("main.tf", "") // there is nothing to destroy at the end
			folder := "-chdir=" + filepath.Join("modules", name)
			w.Must(folder, "get")
			t.Log(w.Must(folder, "test"))
		})
	}
}
