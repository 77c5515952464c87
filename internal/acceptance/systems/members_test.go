//go:build linux

package systems_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// ownAddress is where a program listens once it has started, which takes seconds: below the ports that other programs
// get from the system.
const ownAddress = "127.0.0.1:5651"

// Nobody trains alone: neither without a cluster, nor if a member of it is missing.
func TestSystemMultiworkerMissing(t *testing.T) {
	const absent = "127.0.0.1:1" // nobody listens there

	for name, test := range map[string]struct {
		config string
		says   string
		ended  func(error) bool
	}{
		"no cluster": {"", "nobody trains alone unasked", exitedWith(2)},
		"not a worker": {
			`{"cluster":{"worker":["` + ownAddress + `"],"ps":["` + absent + `"]},"task":{"type":"ps","index":0}}`,
			"this program is for workers alone", exitedWith(2),
		},
		"a missing member": {
			`{"cluster":{"worker":["` + ownAddress + `","` + absent + `"]},"task":{"type":"worker","index":0}}`,
			"not all joined within 5s. These do not answer: " + absent,
			func(err error) bool { return acctest.Interrupted(err, syscall.SIGKILL) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := trainer(t, test.config, "JOIN_TIMEOUT=5s", "STEPS_PER_EPOCH=1").CombinedOutput()
			if !test.ended(err) || !strings.Contains(string(output), test.says) ||
				strings.Contains(string(output), "trained") {
				t.Errorf("it ends with %v, and says\n%s\nwant %q", err, output, test.says)
			}
		})
	}
}

// A training that resumes with other steps per epoch reports the mean loss of the steps that are left, and one that
// resumes with another learning rate uses it. It takes no TensorBoard to write checkpoints and summaries.
func TestSystemMultiworkerResumed(t *testing.T) {
	logs, hidden := t.TempDir(), withoutTensorBoard(t)
	train := func(settings ...string) (joined, epoch rankLine) {
		config := fmt.Sprintf(`{"cluster":{"worker":[%q]},"task":{"type":"worker","index":0}}`, ownAddress)
		command := trainer(t, config, append(settings, "LOG_DIR="+logs, "PYTHONPATH="+hidden)...)
		var failed bytes.Buffer
		command.Stderr = &failed
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", settings, err, output, &failed)
		}
		for text := range strings.Lines(string(output)) {
			var line rankLine
			if json.Unmarshal([]byte(text), &line) != nil {
				continue // from TensorFlow itself
			}
			switch line.Event {
			case "joined":
				joined = line
			case "epoch":
				epoch = line
			}
		}
		return joined, epoch
	}
	_, whole := train("STEPS_PER_EPOCH=6")
	joined, partial := train("STEPS_PER_EPOCH=8")
	// The learning rate is so low that steps differ only by their examples.
	if joined.Step != 6 || whole.Loss == 0 || partial.Loss < whole.Loss/2 || partial.Loss > 2*whole.Loss {
		t.Errorf("after %+v, training resumes with %+v, and says %+v: want step 6, and about the same loss",
			whole, joined, partial)
	}
	joined, faster := train("STEPS_PER_EPOCH=8", "EPOCHS=4", "LEARNING_RATE=0.02")
	if joined.Step != 8 || faster.Epoch != 4 || faster.Loss > whole.Loss*3/4 {
		t.Errorf("after %+v, training resumes with %+v, and says %+v: want step 8, and the loss to fall with the "+
			"higher learning rate", partial, joined, faster)
	}
}

// trainer returns the module's own program as a command, with the addresses of all workers and more settings.
func trainer(t *testing.T, config string, settings ...string) *exec.Cmd {
	t.Helper()
	python := filepath.Join(acceptance.Python(t, "tensorflow"), "python3")
	program := filepath.Join(acceptance.Modules, "multiworker", "train", "train.py")
	command := exec.CommandContext(t.Context(), python, program) //nolint:gosec // our own
	command.Env = slices.Concat(os.Environ(), []string{
		"CUDA_VISIBLE_DEVICES=-1", "PYTHONDONTWRITEBYTECODE=1", "JOIN_TIMEOUT=5m", "BATCH_SIZE=64", "EPOCHS=1",
		"LEARNING_RATE=0.00001", "SEED=1", "TF_CONFIG=" + config,
	}, settings)
	return command
}

// withoutTensorBoard returns a folder that hides TensorBoard as PYTHONPATH: TensorFlow is installed without it.
func withoutTensorBoard(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	missing := filepath.Join(folder, "tensorboard.py")
	if err := os.WriteFile(missing, []byte("raise ModuleNotFoundError(__name__)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// exitedWith returns a predicate for errors of programs that ended with an exit code.
func exitedWith(code int) func(error) bool {
	return func(err error) bool {
		exit, ok := err.(*exec.ExitError) //nolint:errorlint // CombinedOutput returns exactly this type
		return ok && exit.ExitCode() == code
	}
}
