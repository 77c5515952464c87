//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached runs a command as a child of the host's first process, the parent of all orphans on a host: with another
// parent, the last steps of a reboot would wait in vain. Its exit status goes to file descriptor 3.
const detached = `{ (eval "$1") 3>&-; echo $? >&3; } &`

// Run runs a shell command on the host as root, without SSH, so it works even if the host is cut off. It returns the
// output without the last newline. Background processes keep running.
func (h *Host) Run(ctx context.Context, command string) (string, error) {
	running, err := h.running()
	if err != nil {
		return "", err
	}
	output, stderr, status, err := running.run(ctx, command)
	output = strings.TrimSuffix(output, "\n")
	if err == nil && status != "0" {
		err = fmt.Errorf("exit status %s", status)
	}
	if err != nil {
		return output, fmt.Errorf("%s: %s: %w: %s", h.Name, command, err, strings.TrimSpace(stderr))
	}
	return output, nil
}

// run runs a shell command and returns its standard output and error, and its exit status.
func (b *boot) run(ctx context.Context, command string) (output, stderr, status string, err error) {
	shell := exec.Command("/bin/sh", "-c", detached, "sh", command)
	shell.Dir = "/"
	shell.Env = []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8"}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Files rather than pipes, because background processes of the command may hold them open.
	var files [2]*os.File
	for i := range files {
		if files[i], err = unnamedFile(); err != nil {
			return "", "", "", err
		}
		defer files[i].Close()
	}
	shell.Stdout, shell.Stderr = files[0], files[1]
	ours, theirs, err := os.Pipe()
	if err != nil {
		return "", "", "", err
	}
	defer ours.Close()
	shell.ExtraFiles = []*os.File{theirs}
	err = b.within(shell.Start)
	if err == nil {
		_ = shell.Wait() // if the host ends first, there is no status
	}
	_ = theirs.Close() // never written to
	if err != nil {
		return "", "", "", err
	}
	// The command's processes form a group, led by the shell.
	stop := context.AfterFunc(ctx, func() { _ = unix.Kill(-shell.Process.Pid, unix.SIGKILL) })
	line, err := io.ReadAll(ours)
	if !stop() {
		err = ctx.Err()
	} else if err == nil && len(line) == 0 {
		err = errors.New("it was killed")
	}
	var texts [2]string
	for i, file := range files {
		text, readErr := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
		texts[i], err = string(text), errors.Join(err, readErr)
	}
	return texts[0], texts[1], strings.TrimSpace(string(line)), err
}

// unnamedFile returns a file that is deleted when closed.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// hostNamespaces are the namespaces that a host has of its own.
const hostNamespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// within calls do on a thread that has entered all namespaces of the host, and that ends afterwards. It never uses a
// thread that has started processes, see hasChildren.
func (b *boot) within(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if hasChildren(unix.Gettid()) {
			err := b.within(do) // on another thread, since this one is locked meanwhile
			runtime.UnlockOSThread()
			done <- err
			return
		}
		// The thread stays locked, so it ends with its goroutine.
		done <- func() error {
			// Threads that share a root and working directory can't enter another mount namespace.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			var entered error
			err := b.init.Process.WithHandle(func(process uintptr) {
				entered = unix.Setns(int(process), hostNamespaces)
			})
			if err := errors.Join(err, entered); err != nil {
				return fmt.Errorf("entering its namespaces: %w", err)
			}
			if err := forbid(); err != nil {
				return err
			}
			return do()
		}()
	}()
	return <-done
}

// hasChildren reports whether a thread has started processes that still run. Such a thread must not end, since the
// kernel may kill them then, as it does with a test's Terraform.
func hasChildren(thread int) bool {
	children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", thread))
	return err != nil || len(children) > 0
}

// starter starts processes that the kernel kills when the thread that started them ends. It does so on a thread that is
// certain to last as long as this process.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// startLasting starts a command on that thread.
func startLasting(command *exec.Cmd) error {
	done := make(chan error)
	starter() <- func() { done <- command.Start() }
	return <-done
}

// FoldersOf is a shell command that prints the working directory of each process that runs a program. It takes few
// processes itself: tests repeat it until they see what they wait for.
func FoldersOf(program string) string {
	return fmt.Sprintf(
		`find /proc/[0-9]* -maxdepth 1 -name exe -lname '%s' -printf '%%h/cwd\n' 2>/dev/null | xargs -r readlink`,
		program,
	)
}
