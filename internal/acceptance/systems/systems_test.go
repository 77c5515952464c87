//go:build linux

// Package systems_test runs the modules of published systems with the software that they are for, as make test-systems does.
package systems_test

import (
	"os"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

// newTensorFlow returns a workspace with the modules, in which python3 has TensorFlow.
func newTensorFlow(t *testing.T) *acctest.Workspace {
	t.Helper()
	folder := acceptance.Python(t, "tensorflow")
	// Not in parallel with others: two cores hide what one training does to another.
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-systems")
	}
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	acceptance.WithModules(w)
	w.Env("PATH", folder+":"+os.Getenv("PATH"))
	return w
}
