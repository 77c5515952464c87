// Package acctest holds what tests against the real thing need: built programs, engines on state directories of their
// own, and fault injection.
package acctest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module is the path of this module.
const module = "github.com/trainyard/terraform-provider-trainyard"

// The programs that tests build.
const (
	// Provider is the provider itself, which is also the supervisor and the controller.
	Provider = module
	// Member is the program that members run in tests of engines.
	Member = module + "/internal/engine/enginetest/member"
	// Trainer is the quickstart's training program.
	Trainer = module + "/examples/quickstart/trainer"
	// Rebalancer is the program of module kafka that moves partitions.
	Rebalancer = module + "/modules/kafka/rebalancer"
	// Load is the program of module kafka that produces and consumes records.
	Load = module + "/modules/kafka/load"
	// agent is the part of the provider that runs on hosts.
	agent = module + "/internal/program/trainyard-agent"
)

// BuiltVariable is the environment variable in which a test passes the folder of what it built to a test process that
// it starts.
const BuiltVariable = "TRAINYARD_TEST_BUILT"

// ProgramsVariable is the environment variable with a folder in which the test processes of a run share what they
// build: linking a program takes seconds, and a dozen packages need the provider.
const ProgramsVariable = "TRAINYARD_TEST_PROGRAMS"

var (
	buildMutex sync.Mutex
	buildDir   string
	built      = map[string]string{}
)

// Build builds a program of this module, once per test process or run, and returns the path of this process's file.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	return build(t, pkg, pkg, static, "-ldflags", stripped)
}

// BuildVersion builds the provider as the release of this version.
func BuildVersion(t testing.TB, version string) string {
	t.Helper()
	return build(t, Provider+"-"+version, Provider, static, "-ldflags", stripped+" -X main.version="+version)
}

// BuildAgent builds the agent as it is released beside the provider: able to load NVIDIA's library.
func BuildAgent(t testing.TB) string {
	t.Helper()
	// not the name by which the provider would find it
	return build(t, "agent", agent, "CGO_ENABLED=1", "-ldflags", stripped)
}

const (
	// static makes programs run in images without a C library.
	static = "CGO_ENABLED=0"
	// stripped are a release's linker flags. Smaller files link faster, and install faster on hosts.
	stripped = "-s -w"
)

// build builds a program under a name, with an environment variable and flags for go build.
func build(t testing.TB, name, pkg, env string, flags ...string) string {
	t.Helper()
	buildMutex.Lock()
	defer buildMutex.Unlock()
	if path, done := built[name]; done {
		return path
	}
	if dir := os.Getenv(BuiltVariable); dir != "" {
		return filepath.Join(dir, filepath.Base(name))
	}
	if buildDir == "" {
		// Not the test's own folder: all tests of the process use what is built.
		dir, err := os.MkdirTemp("", "trainyard-build-") //nolint:usetesting // see above
		if err != nil {
			t.Fatal(err)
		}
		buildDir = dir
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // tests also run the programs as other users
			t.Fatal(err)
		}
	}
	path := filepath.Join(buildDir, filepath.Base(name))
	if err := buildAt(path, pkg, env, flags...); err != nil {
		t.Fatal(err)
	}
	built[name] = path
	return path
}

// buildAt builds a program, or copies it from the folder of ProgramsVariable, where it is added if it is missing.
func buildAt(path, pkg, env string, flags ...string) error {
	programs := os.Getenv(ProgramsVariable)
	key := sha256.Sum256([]byte(strings.Join(append([]string{pkg, env}, flags...), "\n")))
	shared := filepath.Join(programs, hex.EncodeToString(key[:]))
	if programs != "" {
		if _, err := os.Stat(shared); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, CopyProgram(shared, path))
		}
	}
	args := append(append([]string{"build", "-o", path}, flags...), pkg)
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), env)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, output)
	}
	if programs == "" {
		return nil
	}
	unfinished := fmt.Sprint(shared, ".", os.Getpid())
	if err := CopyProgram(path, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, shared)
}

// CopyProgram copies a program by a process of its own: a program can't be started while another process has it open
// for writing, and what this process has open, any process that it starts meanwhile has for a moment, too.
func CopyProgram(from, to string) error {
	output, err := exec.Command("cp", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, output)
	}
	return nil
}

// Main is for TestMain: it runs a package's tests, calls ends to stop what the tests share, and deletes what was built.
func Main(m *testing.M, ends ...func() error) {
	code := m.Run()
	for _, end := range ends {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	buildMutex.Lock()
	defer buildMutex.Unlock()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}
