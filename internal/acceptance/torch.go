//go:build linux

package acceptance

import (
	"os"
	"os/exec"
	"testing"
)

// Torch returns a Python with PyTorch and scikit-learn, as Debian has them: PyPI's PyTorch is several gigabytes, for
// GPUs. They are installed where they are missing. The test is skipped where such software was not asked for.
func Torch(t testing.TB) (python string) {
	t.Helper()
	if os.Getenv(systemsVariable) == "" {
		t.Skip("this installs PyTorch from the packages of the system: run make test-systems")
	}
	command := exec.CommandContext(t.Context(), "../../tools/packages.sh", "python3-torch", "python3-sklearn")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("PyTorch can't be installed: %v\n%s", err, output)
	}
	return "/usr/bin/python3"
}
