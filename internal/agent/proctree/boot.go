//go:build linux

package proctree

import (
	"os"
	"path/filepath"
	"strings"
)

// BootID returns the ID of this machine's start, another one after each, as its process table at a folder such as /proc
// has it.
func BootID(proc string) (string, error) {
	id, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id")) //nolint:gosec // of the process table
	return strings.TrimSpace(string(id)), err
}
