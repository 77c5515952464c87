//go:build linux

package process_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// TestCheckpointSave: two processes that save at once don't corrupt the checkpoint of an example, and one that fails
// leaves nothing behind.
func TestCheckpointSave(t *testing.T) {
	for _, example := range []string{"checkpoint", "pytorch-elastic"} {
		t.Run(example, func(t *testing.T) {
			program := filepath.Join(acceptance.Examples, example, "train.py")
			script := filepath.Join("testdata", "TestCheckpointSave", "save.py")
			command := exec.CommandContext(t.Context(), "python3", script, program, t.TempDir())
			if said, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
