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

// Library is the name of the library's file, for which dynamic linkers look.
const Library = "libnvidia-ml.so.1"

// source includes nvml.h, so that the compiler compares each function with NVIDIA's declaration of it.
//
//go:embed library/nvml.c
var source []byte

// BuiltVariable is the environment variable by which a test hands the folder of a library that it built to a test
// process that it starts, and that has nothing to build one with.
const BuiltVariable = "FAKE_NVML_BUILT"

var (
	buildMutex sync.Mutex
	buildDir   string
	built      = map[string]string{} // folders, by what the library lacks
)

// Build returns the folder of a [Library] that lacks some functions, which go by the names of their symbols. It is
// built with gcc, once a test process; [Remove] deletes it.
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
		// Not the test's own folder: what is built serves all tests of the process.
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
		if err := os.Chmod(shared, 0o755); err != nil { //nolint:gosec // containers load the library as other users, too
			t.Fatal(err)
		}
	}
	if err := Compile(t.Context(), dir, without...); err != nil {
		t.Fatal(err)
	}
	built[key] = dir
	return dir
}

// Remove deletes what [Build] has built, at the end of a package's tests.
func Remove() error {
	buildMutex.Lock()
	defer buildMutex.Unlock()
	clear(built)
	return os.RemoveAll(buildDir)
}

// Compile builds a [Library] in a folder, as [Build] does.
func Compile(ctx context.Context, dir string, without ...string) error {
	header, err := run(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml")
	if err != nil {
		return err
	}
	args := []string{
		"-x", "c", "-", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-pthread",
		"-I", filepath.Join(strings.TrimSpace(header), "pkg", "nvml"), "-Wl,-soname," + Library, "-o", filepath.Join(dir, Library),
	}
	for _, function := range without {
		args = append(args, "-D"+function+"=without_"+function)
	}
	_, err = run(ctx, source, "gcc", args...)
	return err
}

// run returns what a program prints that reads an input.
func run(ctx context.Context, input []byte, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &out, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, &complaint)
	}
	return out.String(), nil
}
