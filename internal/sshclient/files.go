package sshclient

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// expand replaces a leading ~/ in a path by the home directory.
func expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("can't expand %q: unknown home directory: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

// ReadFile returns the content of a file whose path may begin with ~/.
func ReadFile(path string) ([]byte, error) {
	path, err := expand(path)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
