//go:build linux

package acceptance

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// systemsVariable enables the tests with other projects' real software, which is gigabytes from PyPI.
const systemsVariable = "TRAINYARD_TEST_SYSTEMS"

// Python returns the folder of programs of the Python environment described by NAME.txt in internal/tools, and installs
// it if necessary. The test is skipped unless such tests are enabled.
func Python(t testing.TB, name string) (programs string) {
	t.Helper()
	return installed(t, name+" from PyPI", "../../tools/python.sh", name)
}

// Kafka returns the folder with Kafka's jars, and installs them if necessary. The test is skipped as by [Python].
func Kafka(t testing.TB) (libs string) {
	t.Helper()
	return installed(t, "Kafka from Maven Central", "../../tools/kafka.sh")
}

// installed returns the folder that a script of internal/tools prints.
func installed(t testing.TB, what, script string, args ...string) (folder string) {
	t.Helper()
	if os.Getenv(systemsVariable) == "" {
		t.Skipf("this installs %s, once into the user's cache folder: run make test-matrix", what)
	}
	command := exec.CommandContext(t.Context(), script, args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	printed, err := command.Output()
	if stderr.Len() > 0 {
		t.Log(strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		t.Fatalf("%s can't be installed: %v", what, err)
	}
	return strings.TrimSpace(string(printed))
}
