//go:build linux

package acceptance

import (
	"os"
	"os/exec"
	"testing"
)

// Torch returns Debian's Python with PyTorch and scikit-learn, and installs them if necessary: PyPI's PyTorch is
// several gigabytes, for GPUs. The test is skipped unless such tests are enabled.
func Torch(t testing.TB) (python string) {
	t.Helper()
	if os.Getenv(systemsVariable) == "" {
		t.Skip("this installs PyTorch from the packages of the system: run make test-matrix")
	}
	command := exec.CommandContext(t.Context(), "../../tools/packages.sh", "python3-torch", "python3-sklearn")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("PyTorch can't be installed: %v\n%s", err, output)
	}
	return "/usr/bin/python3"
}
