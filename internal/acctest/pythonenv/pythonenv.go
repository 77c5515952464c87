//go:build linux

// Package pythonenv makes a Python environment of this machine available to hosts and containers of test beds.
package pythonenv

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Environment is a Python environment.
type Environment struct {
	// Python is the path of its interpreter.
	Python string
	// Folders are the folders that contain it, except the system's.
	Folders []string
}

// Of returns the environment with this folder of programs, as printed by internal/tools/python.sh.
func Of(ctx context.Context, programs string) (Environment, error) {
	e := Environment{Python: filepath.Join(programs, "python3")}
	const program = "import sys; print(sys.prefix); print(sys.base_prefix)"
	folders, err := exec.CommandContext(ctx, e.Python, "-c", program).Output() //nolint:gosec // it is our own
	if err != nil {
		return e, fmt.Errorf("%s does not run: %w", e.Python, err)
	}
	for folder := range strings.Lines(string(folders)) {
		if folder = strings.TrimSpace(folder); folder != "/usr" {
			e.Folders = append(e.Folders, folder)
		}
	}
	return e, nil
}

// Mounts returns the mounts of a container with an empty image, as a list in a configuration: the environment and this
// machine's system, read-only, and a /tmp.
func (e Environment) Mounts() string {
	lines := []string{`    { type = "tmpfs", target = "/tmp" }`}
	for _, folder := range append([]string{"/usr", "/bin", "/lib", "/lib64"}, e.Folders...) {
		source, err := filepath.EvalSymlinks(folder) // Debian's /lib is in /usr
		if err == nil {
			lines = append(lines, fmt.Sprintf("    { source = %q, target = %q, read_only = true }", source, folder))
		}
	}
	return strings.Join(lines, ",\n")
}
