//go:build linux

package process_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// TestAccEmptyCommand: an empty first argument, as of an unset variable, is an unknown command.
func TestAccEmptyCommand(t *testing.T) {
	acceptance.Test(t)
	output, err := exec.CommandContext(acctest.Bounded(t), acctest.Build(t, acctest.Provider), "").CombinedOutput()
	if err == nil || !strings.Contains(string(output), `unknown command ""`) {
		t.Errorf("it ends with %v and says %q", err, output)
	}
}
