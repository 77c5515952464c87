//go:build linux

package image

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// compiled returns the file of a C program, linked with these flags.
func compiled(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "program.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(
		"#include <math.h>\n#include <stdio.h>\nint main(int n, char **args) { printf(\"%.0f\\n\", pow(2, n + 4)); }\n",
	), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("gcc", append([]string{"-o", program, source}, flags...)...) //nolint:gosec // a test's own
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, output)
	}
	return program
}

// TestLibraries: a program runs with only its libraries.
func TestLibraries(t *testing.T) {
	program := compiled(t, "-fno-builtin", "-lm")
	files, err := Libraries(program)
	if err != nil {
		t.Fatal(err)
	}
	own, err := FromDisk("/program", program)
	if err != nil {
		t.Fatal(err)
	}
	own.Mode = 0o755
	root := t.TempDir()
	var paths []string
	for _, file := range append(files, own) {
		paths = append(paths, file.Path)
		extract(t, root, file)
	}
	if !strings.Contains(strings.Join(paths, " "), "libm.so") {
		t.Errorf("the library of mathematics is not among %q", paths)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may run a program in a folder as its root")
	}
	command := exec.Command("/program")
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if output, err := command.CombinedOutput(); err != nil || string(output) != "32\n" {
		t.Errorf("the program ended with %v and wrote %q", err, output)
	}
}

func TestLibrariesOfStaticProgram(t *testing.T) {
	if files, err := Libraries(compiled(t, "-static", "-lm")); err != nil || len(files) > 0 {
		t.Errorf("a static program needs %v: %v", files, err)
	}
}

func TestLibrariesOfNoProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Libraries(script); err == nil || !strings.Contains(err.Error(), "not a Linux executable") {
		t.Errorf("the libraries of a script: %v", err)
	}
	missing := compiled(t, "-Wl,--dynamic-linker=/lib/no-such-loader.so", "-lm")
	if _, err := Libraries(missing); err == nil || !strings.Contains(err.Error(), "finding the libraries of program") {
		t.Errorf("the libraries of a program without a loader: %v", err)
	}
}

// extract writes a file of an image below a folder.
func extract(t *testing.T, root string, file File) {
	t.Helper()
	path := filepath.Join(root, file.Path)
	content, err := file.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, file.Mode); err != nil { //nolint:gosec // a test's own
		t.Fatal(err)
	}
}
