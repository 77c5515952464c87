//go:build linux

package proctree

import (
	"os"
	"path/filepath"
	"strings"
)

// BootID returns the boot ID of this machine, which differs for each boot, from the process table at a directory such
// as /proc.
func BootID(proc string) (string, error) {
	id, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id")) //nolint:gosec // of the process table
	return strings.TrimSpace(string(id)), err
}
