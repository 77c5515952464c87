//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// TestAccModules: each module passes its own tests, which need no engine.
func TestAccModules(t *testing.T) {
	acceptance.Test(t)
	entries, err := os.ReadDir(acceptance.Modules)
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no modules: %v", err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			acceptance.RequiresAsIn(t, filepath.Join(acceptance.Modules, entry.Name()))
			w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
			acceptance.WithModules(w)
			w.Write("main.tf", "") // there is nothing to destroy at the end
			folder := "-chdir=" + filepath.Join("modules", entry.Name())
			w.Must(folder, "get")
			t.Log(w.Must(folder, "test"))
		})
	}
}
