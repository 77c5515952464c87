//go:build unix

package meter

import (
	"os/exec"
	"syscall"
)

// killWhole makes a cancelled command be killed with its whole process group.
func killWhole(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
