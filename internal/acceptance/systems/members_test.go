//go:build linux

package systems_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// Nobody trains alone: neither without a cluster, nor if a member of it is missing.
func TestSystemMultiworkerMissing(t *testing.T) {
	python := filepath.Join(acceptance.Python(t, "tensorflow"), "python3")
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // on this machine
	if err != nil {
		t.Fatal(err)
	}
	own := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	const absent = "127.0.0.1:1" // nobody listens there

	for name, test := range map[string]struct {
		config string
		says   string
		ended  func(error) bool
	}{
		"no cluster": {"", "nobody trains alone unasked", exitedWith(2)},
		"not a worker": {
			`{"cluster":{"worker":["` + own + `"],"ps":["` + absent + `"]},"task":{"type":"ps","index":0}}`,
			"this program is for workers alone", exitedWith(2),
		},
		"a missing member": {
			`{"cluster":{"worker":["` + own + `","` + absent + `"]},"task":{"type":"worker","index":0}}`,
			"not all joined within 5s. These do not answer: " + absent,
			func(err error) bool { return acctest.Interrupted(err, syscall.SIGKILL) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(acceptance.Modules, "multiworker", "train", "train.py")
			command := exec.CommandContext(t.Context(), python, program) //nolint:gosec // our own
			command.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES=-1", "PYTHONDONTWRITEBYTECODE=1",
				"JOIN_TIMEOUT=5s",
				"BATCH_SIZE=64", "EPOCHS=1", "STEPS_PER_EPOCH=1", "LEARNING_RATE=0.001", "SEED=1",
				"TF_CONFIG="+test.config)
			output, err := command.CombinedOutput()
			if !test.ended(err) || !strings.Contains(string(output), test.says) ||
				strings.Contains(string(output), "trained") {
				t.Errorf("it ends with %v, and says\n%s\nwant %q", err, output, test.says)
			}
		})
	}
}

// exitedWith returns a predicate for errors of programs that ended with an exit code.
func exitedWith(code int) func(error) bool {
	return func(err error) bool {
		exit, ok := err.(*exec.ExitError) //nolint:errorlint // CombinedOutput returns exactly this type
		return ok && exit.ExitCode() == code
	}
}
