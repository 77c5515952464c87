//go:build linux

package acctest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Environment variables by which tests control the program "mortal".
const (
	// ProgramVariable is the path of the provider to run as supervisor.
	ProgramVariable = "TRAINYARD_TEST_PROGRAM"
	// CallsVariable is the path of the file to which the names of engine calls are appended.
	CallsVariable = "TRAINYARD_TEST_CALLS"
	// LastCallVariable is the number of the call after which the provider dies.
	LastCallVariable = "TRAINYARD_TEST_LAST_CALL"
)

// Mortal is the provider that can be made to die after an engine call.
const Mortal = module + "/internal/acctest/mortal"

// Terraform returns the path of the terraform or tofu to test with: TF_ACC_TERRAFORM_PATH, or the one on the PATH.
func Terraform(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is neither terraform nor tofu on the PATH; make testacc builds OpenTofu where that is so")
	return ""
}

// Workspace is a folder with a configuration and its state, and a state directory for the engine process.
type Workspace struct {
	testing.TB
	// Dir holds the configuration and Terraform's state.
	Dir string
	// StateDir is the state directory of the engine process.
	StateDir  string
	terraform string
	program   string
	env       []string
}

// NewWorkspace returns an empty workspace in which Terraform runs this provider. At the end of the test everything it
// manages is destroyed, and nothing may be left.
func NewWorkspace(t testing.TB, program string) *Workspace {
	t.Helper()
	stateDir := t.TempDir()
	t.Cleanup(func() { ExpectNobody(t, stateDir, "after the last destroy") })
	return newWorkspace(t, program, stateDir)
}

// Another returns another workspace with the same state directory. What it manages is destroyed before what the first
// one manages.
func (w *Workspace) Another() *Workspace {
	w.Helper()
	return newWorkspace(w.TB, w.program, w.StateDir)
}

func newWorkspace(t testing.TB, program, stateDir string) *Workspace {
	t.Helper()
	w := &Workspace{TB: t, Dir: t.TempDir(), StateDir: stateDir, terraform: Terraform(t), program: program}
	cli := filepath.Join(w.Dir, "cli.tfrc")
	w.Write("cli.tfrc", fmt.Sprintf(`
provider_installation {
  dev_overrides {
    "trainyard/trainyard" = %[1]q
  }
  direct {}
}
`, providerDir(t, program)))
	w.env = append(os.Environ(),
		"TF_CLI_CONFIG_FILE="+cli, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1",
		"TRAINYARD_STATE_DIR="+w.StateDir, ProgramVariable+"="+Build(t, Provider), CallsVariable+"="+w.callsFile())
	t.Cleanup(func() {
		if !w.manages() {
			return
		}
		if output, err := w.Run("destroy", "-auto-approve"); err != nil {
			t.Errorf("destroy at the end: %v\n%s", err, output)
		}
	})
	return w
}

// manages reports whether Terraform's state has any resource.
func (w *Workspace) manages() bool {
	var state struct {
		Resources []json.RawMessage `json:"resources"`
	}
	content, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	// Terraform itself reports an unreadable state.
	return len(state.Resources) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

// providerDir returns a folder in which the program has the name that Terraform expects.
func providerDir(t testing.TB, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "terraform-provider-trainyard")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Write writes a file in the workspace.
func (w *Workspace) Write(name, content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

// Env sets an environment variable for all further runs of Terraform.
func (w *Workspace) Env(name, value string) {
	w.env = append(w.env, name+"="+value)
}

// Command returns a command that runs Terraform in the workspace, with additional environment variables.
func (w *Workspace) Command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, w.terraform, append(args, "-no-color")...)
	command.Dir = w.Dir
	command.Env = slices.Concat(w.env, env)
	return command
}

// Run runs Terraform and returns its output.
func (w *Workspace) Run(args ...string) (string, error) {
	output, err := w.Command(context.Background(), nil, args...).CombinedOutput()
	return string(output), err
}

// Must runs Terraform and fails the test if that fails.
func (w *Workspace) Must(args ...string) string {
	w.Helper()
	output, err := w.Run(args...)
	if err != nil {
		w.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// Start runs Terraform in the background. wait waits for it to end, and fails the test unless it succeeded.
func (w *Workspace) Start(args ...string) (wait func()) {
	w.Helper()
	var output bytes.Buffer
	command := w.Command(context.Background(), nil, args...)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		w.Fatal(err)
	}
	return func() {
		w.Helper()
		if err := command.Wait(); err != nil {
			w.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, output.String())
		}
	}
}

// ExpectNoChange fails the test unless a plan is empty.
func (w *Workspace) ExpectNoChange(when string) {
	w.Helper()
	if output, err := w.Run("plan", "-detailed-exitcode"); err != nil {
		w.Fatalf("%s, a plan finds something to do: %v\n%s", when, err, output)
	}
}

// DieAfter runs Terraform with a provider that dies after this many engine calls. It returns true if the provider
// survived because it made fewer.
func (w *Workspace) DieAfter(calls int, args ...string) (survived bool) {
	w.Helper()
	if err := os.Remove(w.callsFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	output, err := w.Command(context.Background(), []string{LastCallVariable + "=" + strconv.Itoa(calls)},
		args...).CombinedOutput()
	if len(w.Calls()) < calls {
		if err != nil {
			w.Fatalf("terraform %s, with no death: %v\n%s", strings.Join(args, " "), err, output)
		}
		return true
	}
	if err == nil {
		w.Fatalf("terraform %s succeeded without its provider\n%s", strings.Join(args, " "), output)
	}
	return false
}

// Calls returns the engine calls made in the last DieAfter.
func (w *Workspace) Calls() []string {
	data, err := os.ReadFile(w.callsFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

func (w *Workspace) callsFile() string { return filepath.Join(w.Dir, "calls") }

// ExpectNobody fails unless all processes of the workspace have ended, and nothing is left in its state directory.
func (w *Workspace) ExpectNobody(when string) {
	w.Helper()
	ExpectNobody(w, w.StateDir, when)
}

// Interrupted reports whether an error says that this signal ended a process.
func Interrupted(err error, signal syscall.Signal) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}
