//go:build linux

// Package systems_test runs the modules of published systems with the real software that they deploy, as make
// test-matrix does.
package systems_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared, fakenvml.Remove) }

// newTensorFlow returns a workspace with the modules, in which python3 has TensorFlow.
func newTensorFlow(t *testing.T) *acctest.Workspace {
	t.Helper()
	folder := acceptance.Python(t, "tensorflow")
	// Unlike with acceptance.Test, each test decides whether it runs in parallel: only those of make test-systems do.
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-matrix")
	}
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	acceptance.WithModules(w)
	w.Env("PATH", folder+":"+os.Getenv("PATH"))
	return w
}

// readmeOf returns the example at the start of a module's README, with the module's path in a workspace.
func readmeOf(t *testing.T, module string) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(acceptance.Modules, module, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```terraform\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no configuration")
	}
	published := `"github.com/trainyard/terraform-provider-trainyard//modules/` + module + `"`
	if !strings.Contains(string(block[1]), published) {
		t.Fatalf("the configuration of the README has no source %s", published)
	}
	return strings.Replace(string(block[1]), published, `"./modules/`+module+`"`, 1)
}
