//go:build linux

package acceptance

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// systemsVariable asks for the tests that take the real software of others: gigabytes from PyPI.
const systemsVariable = "TRAINYARD_TEST_SYSTEMS"

// Python returns the folder with the programs of a Python environment that internal/tools has the file NAME.txt of, and
// installs it where nobody has before. The test is skipped where such environments were not asked for.
func Python(t testing.TB, name string) (programs string) {
	t.Helper()
	if os.Getenv(systemsVariable) == "" {
		t.Skipf("this installs %s from PyPI, once into the user's cache folder: run make test-systems", name)
	}
	command := exec.CommandContext(t.Context(), "../../tools/python.sh", name)
	var said strings.Builder
	command.Stderr = &said
	folder, err := command.Output()
	if said.Len() > 0 {
		t.Log(strings.TrimSpace(said.String()))
	}
	if err != nil {
		t.Fatalf("the environment %s can't be installed: %v", name, err)
	}
	return strings.TrimSpace(string(folder))
}
