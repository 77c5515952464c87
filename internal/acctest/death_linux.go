package acctest

import (
	"os/exec"
	"syscall"
)

// dieWithUs has a command be killed when the thread ends that starts it.
func dieWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
