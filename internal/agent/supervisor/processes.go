//go:build linux

package supervisor

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// commandFailed is the exit code of a command that can't be started, as in a shell.
const commandFailed = 127

//go:embed shell.sh
var shell string

// processes is the launcher whose instances are processes of this supervisor, or of its predecessors.
type processes struct {
	dir  statedir.Dir
	log  *slog.Logger
	boot string
	// table is the process table in this turn of the loop; nil until it is needed.
	table map[string][]proctree.Process
}

// processInstance is one run of a member's command, under the shell that waits for it.
type processInstance struct {
	atOnce

	launcher *processes
	id       string
	// exitFile is where the shell stores the exit code.
	exitFile string
	shell    proctree.Process
	done     <-chan struct{}
	limits   limited
	// signalled is set once its processes were sent the stop signal.
	signalled bool
}

func (l *processes) turn() { l.table = nil }

func (l *processes) contained(domain.MemberSpec) bool { return false }
func (l *processes) gone(string) bool                 { return true }

// of returns the live processes of an instance.
func (l *processes) of(instance string) ([]proctree.Process, error) {
	if l.table == nil {
		table, err := proctree.Scan()
		if err != nil {
			return nil, fmt.Errorf("reading the process table: %w", err)
		}
		l.table = table
	}
	return l.table[instance], nil
}

func (l *processes) start(spec domain.MemberSpec, id string) (instance, error) {
	dir := spec.WorkingDir
	if dir == "" {
		dir = l.dir.WorkDir(spec.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &commandError{fmt.Errorf("its working directory %q is not a folder", dir)}
	}
	command, err := Command(spec.Argv(), dir, spec.Env)
	if err != nil {
		return nil, &commandError{err}
	}
	if err := writeFiles(l.dir.FilesDir(spec.Name), spec.Files); err != nil {
		return nil, err
	}
	if spec.Kept != "" {
		if err := keepFiles(spec.Kept, spec.Files, nil); err != nil {
			return nil, &commandError{fmt.Errorf("its folder %q can't be created: %w", spec.Kept, err)}
		}
	}
	log, err := l.dir.OpenLog(spec.Name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	limits, err := limit(spec, id)
	if err != nil {
		return nil, err
	}

	argv := []string{"sh", "-c", shell, "sh", l.dir.Exit(spec.Name, id), strings.Join(limits.joinFiles(), " ")}
	process, err := os.StartProcess("/bin/sh", append(argv, command...), &os.ProcAttr{
		Dir:   dir,
		Env:   append(environ(spec.Env), proctree.InstanceVariable+"="+id),
		Files: []*os.File{null, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		limits.delete(l.log)
		if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EACCES) {
			return nil, &commandError{err} // arguments and environment too long, or an inaccessible working directory
		}
		return nil, err
	}
	pid := process.Pid
	_ = process.Release() // it is watched and reaped by its ID alone, like an adopted one

	i := l.instance(spec.Name, id, limits)
	i.shell.PID = pid
	child, err := proctree.Lookup(pid)
	if err == nil {
		err = i.watch(child.PID, child.StartTime)
	}
	switch {
	case errors.Is(err, proctree.ErrGone):
		i.done = closed
	case err != nil:
		// Nobody would notice its end, so it must not run.
		_ = unix.Kill(-pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		limits.delete(l.log)
		return nil, fmt.Errorf("watching process %d: %w", pid, err)
	}
	return i, nil
}

func (l *processes) instance(member, id string, limits limited) *processInstance {
	return &processInstance{launcher: l, id: id, exitFile: l.dir.Exit(member, id), limits: limits}
}

// watch makes the process with this ID and start time the instance's shell.
func (i *processInstance) watch(pid int, startTime uint64) error {
	i.shell = proctree.Process{PID: pid, StartTime: startTime}
	watcher, err := proctree.Watch(pid, startTime)
	if err != nil {
		return err
	}
	i.done = watcher.Done()
	return nil
}

func (i *processInstance) process() proctree.Process { return i.shell }

func (i *processInstance) ended() <-chan struct{} { return i.done }

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env)+1)
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// terminate first sends the stop signal to all processes of the instance, and kills them after the grace period.
func (i *processInstance) terminate(now, killAt time.Time) (next time.Time, err error) {
	processes, err := i.launcher.of(i.id)
	if err != nil {
		return time.Time{}, err
	}
	if !i.signalled {
		if !i.starting(processes) {
			i.signalled = i.signal(processes, unix.SIGTERM)
		}
		resume(processes)
	}
	switch {
	case killAt.After(now) && i.signalled:
		return killAt, nil
	case killAt.After(now):
		return now.Add(sweep), nil
	case !i.signal(processes, unix.SIGKILL):
		_ = proctree.Signal(i.shell, unix.SIGKILL)
	}
	return now.Add(sweep), nil
}

func (i *processInstance) clear() (bool, error) {
	left, err := i.launcher.of(i.id)
	if err != nil {
		return false, err
	}
	i.signal(left, unix.SIGKILL)
	return len(left) == 0, nil
}

// starting reports whether the shell is about to start the command: it has not got to that yet, or is between fork and
// exec. The shell's own trap would catch a stop signal then, and the command never get it.
func (i *processInstance) starting(processes []proctree.Process) bool {
	shell, err := os.ReadFile(commandLine(i.shell))
	if err != nil {
		return false
	}
	command := false
	for _, p := range processes {
		if p.PID == i.shell.PID {
			continue
		}
		command = true
		if line, err := os.ReadFile(commandLine(p)); p.Parent == i.shell.PID && err == nil && bytes.Equal(line, shell) {
			return true
		}
	}
	return !command
}

func commandLine(p proctree.Process) string {
	return filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline")
}

// signal sends a signal to all processes but the shell, which ends after its command, and stores the exit code. It
// reports whether there were any.
func (i *processInstance) signal(processes []proctree.Process, signal unix.Signal) (reached bool) {
	for _, p := range processes {
		if p.PID != i.shell.PID && proctree.Signal(p, signal) == nil {
			reached = true
		}
	}
	return reached
}

// resume continues a paused instance: its processes would never see the stop signal, nor its shell the command's end.
func resume(processes []proctree.Process) {
	for _, p := range processes {
		_ = proctree.Signal(p, unix.SIGCONT) // it may be gone
	}
}

// result returns the exit code of the command, as the shell reports it: to its parent, if that is this process, and
// otherwise in a file. The code is unknown if the shell itself was killed.
func (i *processInstance) result() result {
	code, known := i.exitCode()
	r := result{code: code}
	if killed, full := i.limits.starved(); killed {
		r.outOfMemory(i.limits.memory, full)
	}
	if !known {
		r.lost = "its shell was killed"
	}
	return r
}

func (i *processInstance) resize(to domain.Resources) error { return i.limits.raise(to) }

func (i *processInstance) exitCode() (code int, known bool) {
	var status unix.WaitStatus
	pid, err := unix.Wait4(i.shell.PID, &status, unix.WNOHANG, nil)
	if err == nil && pid == i.shell.PID && status.Exited() {
		return status.ExitStatus(), true
	}
	data, err := os.ReadFile(i.exitFile)
	if err != nil {
		return lostExitCode, false
	}
	code, err = strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return lostExitCode, false
	}
	return code, true
}

func (i *processInstance) delete() {
	i.limits.delete(i.launcher.log)
	_ = statedir.Delete(i.exitFile)
}

// find finds the member's shell in the process table, by the file in its command line. Its specification is unknown, so
// it will be replaced.
func (l *processes) find(member string) (state statedir.State, err error) {
	if _, err := l.of(""); err != nil {
		return state, err
	}
	for id, processes := range l.table {
		line, err := os.ReadFile(commandLine(processes[0])) // the oldest is the shell
		if err == nil && bytes.Contains(line, []byte("\x00"+l.dir.Exit(member, id)+"\x00")) {
			state = statedir.State{
				Name: member, State: domain.StateRunning, Boot: l.boot,
				Instance: id, PID: processes[0].PID, StartTime: processes[0].StartTime,
			}
		}
	}
	return state, nil
}

func (l *processes) adopt(state *statedir.State, spec domain.MemberSpec) (instance, error) {
	if state.Boot == l.boot && state.PID == 0 {
		// The predecessor died between starting the shell and recording its ID.
		processes, err := l.of(state.Instance)
		if err != nil {
			return nil, err
		}
		for _, p := range processes {
			if p.PID == p.Session {
				state.PID, state.StartTime = p.PID, p.StartTime
				break // the oldest: the command may lead a session of its own
			}
		}
		if _, err := os.Stat(l.dir.Exit(state.Name, state.Instance)); state.PID == 0 && err != nil {
			return nil, errNeverStarted
		}
	}
	i := l.instance(state.Name, state.Instance, reopenLimits(spec, state.Instance))
	switch err := i.watch(state.PID, state.StartTime); {
	case state.Boot != l.boot || state.PID == 0 || errors.Is(err, proctree.ErrGone):
		i.done = closed
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnwatched, err)
	}
	return i, nil
}
