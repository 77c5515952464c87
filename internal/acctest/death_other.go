//go:build !linux

package acctest

import "os/exec"

// dieWithUs does nothing: only Linux can kill a command when its parent ends.
func dieWithUs(*exec.Cmd) {}
