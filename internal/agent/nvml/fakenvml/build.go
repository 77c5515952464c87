// Package fakenvml is a libnvidia-ml.so.1 without GPUs, for tests: a real library with NVIDIA's interface that returns
// what a test sets, and can be changed at any time.
package fakenvml

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Library is the file name that dynamic linkers look for.
const Library = "libnvidia-ml.so.1"

// source includes nvml.h, so the compiler checks each function against NVIDIA's declaration.
//
//go:embed library/nvml.c
var source []byte

// BuiltVariable is the environment variable through which a test passes the directory of a built library to a test
// process that can't build one itself.
const BuiltVariable = "FAKE_NVML_BUILT"

var (
	buildMutex sync.Mutex
	buildDir   string
	built      = map[string]string{} // directories, keyed by the functions left out
)

// Build returns the directory of a [Library] without the given functions, named by symbol. It is built with gcc, once
// per test process; [Remove] deletes it.
func Build(t testing.TB, without ...string) string {
	t.Helper()
	buildMutex.Lock()
	defer buildMutex.Unlock()
	if dir := os.Getenv(BuiltVariable); dir != "" {
		return dir
	}
	key := strings.Join(without, ",")
	if dir, done := built[key]; done {
		return dir
	}
	if buildDir == "" {
		// Not the test's own directory: all tests of the process share the build.
		dir, err := os.MkdirTemp("", "trainyard-fakenvml-") //nolint:usetesting // see above
		if err != nil {
			t.Fatal(err)
		}
		buildDir = dir
	}
	dir, err := os.MkdirTemp(buildDir, "") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	for _, shared := range []string{buildDir, dir} {
		if err := os.Chmod(shared, 0o755); err != nil { //nolint:gosec // containers also load the library as other users
			t.Fatal(err)
		}
	}
	if err := Compile(t.Context(), dir, without...); err != nil {
		t.Fatal(err)
	}
	built[key] = dir
	return dir
}

// Remove deletes everything [Build] has built, at the end of a package's tests.
func Remove() error {
	buildMutex.Lock()
	defer buildMutex.Unlock()
	clear(built)
	return os.RemoveAll(buildDir)
}

// Compile builds a [Library] in a directory, as [Build] does.
func Compile(ctx context.Context, dir string, without ...string) error {
	header, err := run(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	if err != nil {
		return err
	}
	args := []string{
		"-x", "c", "-", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-pthread",
		"-I", filepath.Join(strings.TrimSpace(header), "pkg", "nvml"), "-Wl,-soname," + Library, "-o",
		filepath.Join(dir, Library),
	}
	for _, function := range without {
		args = append(args, "-D"+function+"=without_"+function)
	}
	_, err = run(ctx, source, "gcc", args...)
	return err
}

// run feeds input to a program and returns its output.
func run(ctx context.Context, input []byte, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &out, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, &complaint)
	}
	return out.String(), nil
}
