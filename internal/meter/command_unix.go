//go:build unix

package meter

import (
	"os/exec"
	"syscall"
)

// killWhole has a command that is given up be killed with all that it has started.
func killWhole(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
