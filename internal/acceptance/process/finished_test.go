//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// TestAccFinishedNeedsNothing completes a job and deletes its program: the plan is empty and without warnings, since
// nothing is to be started.
func TestAccFinishedNeedsNothing(t *testing.T) {
	k := newKilled(t)
	program, err := os.ReadFile(k.member)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(path, program, 0o700); err != nil { //nolint:gosec // to be run
		t.Fatal(err)
	}
	k.Write("main.tf", fmt.Sprintf(`
terraform {
  required_providers {
    trainyard = { source = "trainyard/trainyard" }
  }
}
resource "trainyard_cluster" "lab" {
  name = "lab"
}
resource "trainyard_group" "job" {
  cluster  = trainyard_cluster.lab
  name     = "job"
  command  = [%q, "exit:0"]
  roles    = { worker = { replicas = 1 } }
  wait_for = "completed"
}
`, path))
	k.Must("apply", "-auto-approve")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	k.ExpectNoChange("after the program was deleted")
	if output, err := k.Run("apply", "-auto-approve", "-replace=trainyard_group.job"); err == nil {
		t.Errorf("a job without its program was planned again:\n%s", output)
	}
	acctest.Eventually(t, "the job to be left as it was",
		func() bool { return acctest.Alive(t, k.StateDir, path) == 0 })
}
