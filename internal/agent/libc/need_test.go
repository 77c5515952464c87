//go:build linux

package libc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc/libctest"
)

func TestOf(t *testing.T) {
	const glibc, musl = "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"
	for name, test := range map[string]struct {
		loader   string
		versions []string
		want     Need
		err      string
	}{
		"one version":        {glibc, []string{"GLIBC_2.31"}, Need{glibc, "2.31"}, ""},
		"the newest of some": {glibc, []string{"GLIBC_2.2.5", "GLIBC_2.31", "GLIBC_2.9"}, Need{glibc, "2.31"}, ""},
		"of other libraries": {glibc, []string{"GLIBC_2.17", "GCC_3.0", "OTHER"}, Need{glibc, "2.17"}, ""},
		"packed relocations": {glibc, []string{"GLIBC_2.17", "GLIBC_ABI_DT_RELR"}, Need{glibc, "2.36"}, ""},
		"no versions":        {musl, nil, Need{Loader: musl}, ""},
		"what is glibc's own": {
			glibc, []string{"GLIBC_PRIVATE"}, Need{}, "it requires GLIBC_PRIVATE, which is not a known version",
		},
		"what nobody knows of": {
			glibc, []string{"GLIBC_ABI_NEW"}, Need{}, "it requires GLIBC_ABI_NEW, which is not a known version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(libctest.Program(t, filepath.Join(t.TempDir(), "program"), test.loader, test.versions...))
			if test.err == "" && (err != nil || got != test.want) ||
				test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("got %+v, %v, want %+v, %q", got, err, test.want, test.err)
			}
		})
	}
}

// TestOfStatic: a statically linked program requires nothing, and a text file is no program.
func TestOfStatic(t *testing.T) {
	source, program := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", program, source) //nolint:gosec // a test's own
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if got, err := Of(program); err != nil || got != (Need{}) {
		t.Errorf("a static program needs %+v, %v", got, err)
	}
	if _, err := Of(source); err == nil || !strings.Contains(err.Error(), source+" is not a Linux program") {
		t.Errorf("a text is a program: %v", err)
	}
}

func TestOlder(t *testing.T) {
	versions := []string{"", "2.2.5", "2.3", "2.3.2", "2.9", "2.31", "2.34", "3.0"}
	for i, a := range versions {
		for j, b := range versions {
			if got := Older(a, b); got != (i < j) {
				t.Errorf("%q is older than %q: %t", a, b, got)
			}
		}
	}
}
