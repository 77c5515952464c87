//go:build linux

package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// searchPath is where commands are looked up: root's PATH, which not every user with root's rights has.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// needed is a command that a bed needs, and its package in Debian and Ubuntu.
type needed struct{ command, name string }

var (
	// enginePackages are what nodes need.
	enginePackages = []needed{
		{"dockerd", "docker.io"},
		{"containerd", "containerd"},
		{"runc", "runc"},
		{"iptables", "iptables"},
	}
	// hostPackages are what bare hosts need.
	hostPackages = []needed{
		{"debootstrap", "debootstrap"},
	}
)

// preflight returns an error that says what this machine lacks for a bed.
func preflight(uid int, packages []needed, look func(command string) (string, error)) error {
	if uid != 0 {
		return fmt.Errorf("the test bed runs machines in namespaces, which only root may make; this is user %d. "+
			"Run it by make, which takes sudo, or as root", uid)
	}
	var missing, install []string
	for _, p := range packages {
		if _, err := look(p.command); err != nil {
			missing, install = append(missing, p.command), append(install, p.name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("the test bed needs %s. Run: apt-get install %s",
		strings.Join(missing, ", "), strings.Join(install, " "))
}

// lookPath finds a command in searchPath.
func lookPath(command string) (string, error) {
	for folder := range strings.SplitSeq(searchPath, ":") {
		path, err := exec.LookPath(folder + "/" + command)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %w", command, os.ErrNotExist)
}
