//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// The example plans with its model, and refuses one that costs more than the target.
func TestAccLearnedExample(t *testing.T) {
	acceptance.Test(t)
	example := filepath.Join(acceptance.Examples, "learned")
	acceptance.RequiresAsIn(t, example)
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	if err := acceptance.Copy(w.Dir, example); err != nil {
		t.Fatal(err)
	}
	w.Must("plan")
	worse, err := os.ReadFile(acceptance.BandModel(t, 0.2, 0.4)) // has twice as many members as needed
	if err != nil {
		t.Fatal(err)
	}
	w.Write("worse.json", string(worse))
	output, err := w.Command(t.Context(), nil, "plan", "-no-color", "-var", "model=worse.json").CombinedOutput()
	if text := strings.Join(strings.Fields(string(output)), " "); err == nil ||
		!strings.Contains(text, "On its own trace the model costs") {
		t.Errorf("a model that costs more than the target is planned with: %v\n%s", err, output)
	}
}
