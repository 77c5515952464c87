//go:build linux

package acceptance

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// Fetched returns the files that the program downloads from a sweep or a run.
func Fetched(t testing.TB, target string, where ...string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.tar")
	args := append([]string{"sweep", "results", target, "--output", file}, where...)
	program := acctest.Build(t, acctest.Provider)
	output, err := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
	return Archived(t, file)
}

// Archived returns the files in a tar archive.
func Archived(t testing.TB, file string) map[string]string {
	t.Helper()
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, errRead := io.ReadAll(reader)
		if err := errors.Join(err, errRead); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = string(content)
		}
	}
}
