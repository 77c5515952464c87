package acctest

import (
	"os/exec"
	"syscall"
)

// dieWithUs has a command killed when the thread that starts it ends.
func dieWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
