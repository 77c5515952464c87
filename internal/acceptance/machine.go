//go:build linux

package acceptance

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// MachineMounts returns mounts, in the syntax of Terraform, by which a container on this machine runs a Python of this
// machine, whatever its image: libraries, Python's own folder, and the environment with these programs.
func MachineMounts(t testing.TB, programs string) string {
	t.Helper()
	python := filepath.Join(programs, "python3")
	const where = "import sys; print(sys.base_prefix, sys.prefix)"
	said, err := exec.CommandContext(t.Context(), python, "-c", where).Output()
	if err != nil {
		t.Fatalf("where Python is can't be read: %v", err)
	}
	folders := []string{"/usr", "/bin", "/lib", "/lib64"}
	for folder := range strings.FieldsSeq(string(said)) {
		if !strings.HasPrefix(folder, "/usr/") && folder != "/usr" {
			folders = append(folders, folder)
		}
	}
	var mounts []string
	for _, folder := range folders {
		mounts = append(mounts, fmt.Sprintf(`{ type = "bind", source = %[1]q, target = %[1]q, read_only = true, driver = null }`, folder))
	}
	return strings.Join(mounts, ",\n")
}
