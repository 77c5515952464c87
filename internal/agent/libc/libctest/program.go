// Package libctest builds programs with given requirements on the C library, for tests.
package libctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program writes a program for this machine's architecture to a file, which needs a loader and these versions of the C
// library, such as GLIBC_2.31. It is built with gcc, and can't be run.
func Program(t testing.TB, file, loader string, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	var functions, symbols, program strings.Builder
	for i, version := range versions {
		fmt.Fprintf(&functions, "void call%d(void) {}\n", i)
		fmt.Fprintf(&symbols, "%s { global: call%d; };\n", version, i)
		fmt.Fprintf(&program, "void call%d(void);\n", i)
	}
	program.WriteString("void _start(void) {\n")
	for i := range versions {
		fmt.Fprintf(&program, "\tcall%d();\n", i)
	}
	program.WriteString("}\n")
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"library.c": functions.String(), "symbols": symbols.String(), "program.c": program.String(),
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gcc := func(arguments ...string) {
		if output, err := exec.Command("gcc", append([]string{"-nostdlib", "-o"}, arguments...)...).CombinedOutput(); err != nil { //nolint:gosec // a test's own
			t.Fatalf("gcc: %v\n%s", err, output)
		}
	}
	library := []string{in("libc.so"), "-shared", "-fPIC", "-Wl,-soname,libc.so.6", in("library.c")}
	if len(versions) > 0 {
		library = append(library, "-Wl,--version-script,"+in("symbols"))
	}
	gcc(library...)
	gcc(file, "-Wl,--dynamic-linker="+loader, in("program.c"), in("libc.so"))
	return file
}
