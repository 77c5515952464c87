//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/terminal"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestPictures takes a picture of a plan that shows drift, drift.svg, if a folder for it is given: somebody has changed
// a variable with another configuration, and removed a worker.
func TestPictures(t *testing.T) {
	folder := os.Getenv(terminal.Pictures)
	if folder == "" {
		t.Skipf("%s names no folder for the picture", terminal.Pictures)
	}
	w, l := newWorkspace(t)
	l.configure(w, theCluster, group("mnist", `
  framework = "tensorflow"
  command   = [local.member, "wait"]
  env       = { LEARNING_RATE = "0.01" }
  roles = {
    ps     = { replicas = 2 }
    worker = { replicas = 4 }
  }`))
	w.Must("apply", "-auto-approve")
	e := l.engine()
	r := reconcile.Reconciler{Engine: e}
	found, err := r.Read(t.Context(), "mnist")
	l.must(err)
	found.Document.Spec.Env["LEARNING_RATE"] = "0.1"
	l.must(r.Update(t.Context(), found.Document.Spec))
	l.must(e.Remove(t.Context(), []string{"mnist-worker-3"}))

	plan := w.Command(t.Context(), nil, "plan")
	plan.Args = plan.Args[:len(plan.Args)-1] // -no-color
	const end = "Plan: 0 to add, 1 to change, 0 to destroy."
	term := terminal.Start(t, 100, 100, plan)
	term.Sees(end)
	recording := term.Record()
	recording.Watch(end)
	recording.Crop("Terraform used the selected providers")
	l.must(os.WriteFile(filepath.Join(folder, "drift.svg"), []byte(recording.SVG("A plan that shows drift")), 0o600))
}
