//go:build linux

package process_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// modules returns the folders of the modules, including submodules.
func modules(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, depth := range []string{"*", "*/*"} {
		found, err := fs.Glob(os.DirFS(acceptance.Modules), depth+"/outputs.tf")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			names = append(names, filepath.Dir(file))
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
			w.Write("main.tf", "") // nothing to destroy at the end
			folder := "-chdir=" + filepath.Join("modules", name)
			w.Must(folder, "get")
			t.Log(w.Must(append([]string{folder, "test"}, testFiles(t, name)...)...))
			// The destroy may end a broker before it has removed its data, which the engine keeps.
			if err := os.RemoveAll(filepath.Join(w.StateDir, "kafka-test", "work")); err != nil {
				t.Error(err)
			}
		})
	}
}

// testFiles returns the arguments that select the test files of a module: on OpenTofu, those for both.
func testFiles(t *testing.T, module string) (filters []string) {
	t.Helper()
	if !acceptance.OnOpenTofu(t) {
		return nil
	}
	folder := os.DirFS(filepath.Join(acceptance.Modules, module))
	files, err := fs.Glob(folder, "tests/*.tftest.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("module %s has no tests: %v", module, err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte("\n# Only for Terraform: ")) {
			filters = append(filters, "-filter="+file)
		}
	}
	return filters
}
