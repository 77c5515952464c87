//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Command returns a command with its program as an absolute path: looked up in the PATH of env or, if it contains a
// slash, relative to the working directory.
func Command(command []string, dir string, env map[string]string) ([]string, error) {
	if len(command) == 0 {
		return nil, errors.New("no command")
	}
	program := command[0]
	if program == Self {
		return append([]string{Executable()}, command[1:]...), nil
	}
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, folder := range filepath.SplitList(env["PATH"]) {
			candidates = append(candidates, filepath.Join(folder, program))
		}
	}
	for _, candidate := range candidates {
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		if _, err := exec.LookPath(candidate); err == nil {
			return append([]string{candidate}, command[1:]...), nil
		}
	}
	if strings.Contains(program, "/") {
		return nil, fmt.Errorf("%q is not an executable file (working directory %q)", program, dir)
	}
	return nil, fmt.Errorf("%q not found in PATH %q", program, env["PATH"])
}

// Self as the program of a command stands for the supervisor's own program.
const Self = "@self"

func writeFiles(dir string, files []domain.File) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// keepFiles creates the folder that outlives its member, and writes the member's files into it.
func keepFiles(dir string, files []domain.File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeFiles(dir, files)
}
