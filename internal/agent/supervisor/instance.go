//go:build linux

package supervisor

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// commandFailed is the exit code that stands for a command that can't be started, as in a shell.
const commandFailed = 127

//go:embed shell.sh
var shell string

// instance is one run of a member's command, under the shell that waits for it.
type instance struct {
	process proctree.Process
	watcher *proctree.Watcher
	limits  limited
	restart domain.RestartRule
	grace   time.Duration
	// killAt is when the grace period ends; zero until the instance was asked to end.
	killAt time.Time
	// told is true once its processes were sent the stop signal.
	told   bool
	exited bool
}

func newInstanceID() string { return rand.Text() }

// commandError is an error about the command that a member should run, as opposed to one about the machine.
type commandError struct{ error }

// startInstance starts a member's command. An error about the command itself is a *commandError.
func startInstance(s *supervisor, spec domain.MemberSpec, id string) (*instance, error) {
	dir := spec.WorkingDir
	if dir == "" {
		dir = s.dir.WorkDir(spec.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &commandError{fmt.Errorf("its working directory %q is no folder", dir)}
	}
	command, err := Command(spec.Argv(), dir, spec.Env)
	if err != nil {
		return nil, &commandError{err}
	}
	if err := writeFiles(s.dir.FilesDir(spec.Name), spec.Files); err != nil {
		return nil, err
	}
	if spec.Kept != "" {
		if err := keepFiles(spec.Kept, spec.Files); err != nil {
			return nil, &commandError{fmt.Errorf("its folder %q can't be made: %w", spec.Kept, err)}
		}
	}
	log, err := s.dir.OpenLog(spec.Name)
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

	argv := []string{"sh", "-c", shell, "sh", s.dir.Exit(spec.Name, id), strings.Join(limits.joinFiles(), " ")}
	process, err := os.StartProcess("/bin/sh", append(argv, command...), &os.ProcAttr{
		Dir:   dir,
		Env:   append(environ(spec.Env), proctree.InstanceVariable+"="+id),
		Files: []*os.File{null, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		limits.delete(s)
		if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EACCES) {
			return nil, &commandError{err} // arguments and environment too long, or a closed working directory
		}
		return nil, err
	}
	pid := process.Pid
	_ = process.Release() // it is watched and reaped through its id alone, as an adopted one is

	i := newInstance(spec, limits)
	i.process.PID = pid
	child, err := proctree.Lookup(pid)
	if err == nil {
		err = i.watch(child.PID, child.StartTime)
	}
	switch {
	case errors.Is(err, proctree.ErrGone):
		i.exited = true
	case err != nil:
		// Nobody would see its end: it must not run.
		_ = unix.Kill(-pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		limits.delete(s)
		return nil, fmt.Errorf("process %d can't be watched: %w", pid, err)
	}
	return i, nil
}

func newInstance(spec domain.MemberSpec, limits limited) *instance {
	return &instance{limits: limits, restart: spec.Restart, grace: time.Duration(spec.GracePeriod)}
}

// watch makes the process with this id and start time the instance's shell.
func (i *instance) watch(pid int, startTime uint64) (err error) {
	i.process = proctree.Process{PID: pid, StartTime: startTime}
	i.watcher, err = proctree.Watch(pid, startTime)
	return err
}

// Command returns a command with its program as an absolute path: looked up in the PATH of env, and relative
// to the working directory where it holds a slash.
func Command(command []string, dir string, env map[string]string) ([]string, error) {
	if len(command) == 0 {
		return nil, errors.New("there is no command")
	}
	program := command[0]
	if program == Self {
		return append([]string{Executable()}, command[1:]...), nil
	}
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, folder := range filepath.SplitList(env["PATH"]) {
			candidates = append(candidates, filepath.Join(folder, program))
		}
	}
	for _, candidate := range candidates {
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		if _, err := exec.LookPath(candidate); err == nil {
			return append([]string{candidate}, command[1:]...), nil
		}
	}
	if strings.Contains(program, "/") {
		return nil, fmt.Errorf("%q is no executable file (working directory %q)", program, dir)
	}
	return nil, fmt.Errorf("%q is not found in the PATH %q", program, env["PATH"])
}

// Self as the program of a command stands for the program that the supervisor is.
const Self = "@self"

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env)+1)
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

func writeFiles(dir string, files []domain.File) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// keepFiles makes a folder that outlives its member, with what the member was given beside what it will leave there.
func keepFiles(dir string, files []domain.File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeFiles(dir, files)
}

// asked tells whether the instance was asked to end.
func (i *instance) asked() bool { return !i.killAt.IsZero() }

// terminate sends the stop signal to all processes of the instance at first, and kills them when the grace
// period is over. It returns when to come again.
func (i *instance) terminate(processes []proctree.Process, now time.Time) (next time.Time) {
	if !i.asked() {
		i.killAt = now.Add(i.grace)
	}
	if !i.told && !i.starting(processes) {
		i.told = i.signal(processes, unix.SIGTERM)
		i.signal(processes, unix.SIGCONT) // what is paused would never see the other one
	}
	switch {
	case i.killAt.After(now) && i.told:
		return i.killAt
	case i.killAt.After(now):
		return now.Add(sweep)
	case !i.kill(processes):
		_ = proctree.Signal(i.process, unix.SIGKILL)
	}
	return now.Add(sweep)
}

// starting tells whether the shell is about to start the command: whether it has not come to that yet, or is between fork
// and exec. A stop signal at that moment would be caught by the shell's own trap, and never reach the command.
func (i *instance) starting(processes []proctree.Process) bool {
	shell, err := os.ReadFile(commandLine(i.process))
	if err != nil {
		return false
	}
	command := false
	for _, p := range processes {
		if p.PID == i.process.PID {
			continue
		}
		command = true
		if line, err := os.ReadFile(commandLine(p)); p.Parent == i.process.PID && err == nil && bytes.Equal(line, shell) {
			return true
		}
	}
	return !command
}

func commandLine(p proctree.Process) string {
	return filepath.Join("/proc", strconv.Itoa(p.PID), "cmdline")
}

func (i *instance) kill(processes []proctree.Process) bool {
	return i.signal(processes, unix.SIGKILL)
}

// signal reaches all but the shell, which ends when its command has, and tells the exit code. It returns whether there was
// any.
func (i *instance) signal(processes []proctree.Process, signal unix.Signal) (reached bool) {
	for _, p := range processes {
		if p.PID != i.process.PID && proctree.Signal(p, signal) == nil {
			reached = true
		}
	}
	return reached
}

// exitCode returns the exit code of the command, as the shell told it: to its parent, if that is this process, and else
// in a file. It is not known where the shell itself was killed.
func (i *instance) exitCode(path string) (code int, known bool) {
	var status unix.WaitStatus
	pid, err := unix.Wait4(i.process.PID, &status, unix.WNOHANG, nil)
	if err == nil && pid == i.process.PID && status.Exited() {
		return status.ExitStatus(), true
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return lostExitCode, false
	}
	code, err = strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return lostExitCode, false
	}
	return code, true
}

// recall takes over what a predecessor knew of the member, and the instance that still runs. Where the state can't be
// read, the member is left alone until it can.
func (m *member) recall(s *supervisor) {
	state, err := statedir.Read[statedir.State](s.dir.Document(statedir.States, m.name))
	switch {
	case err == nil:
		m.lost, m.state = false, state
	case errors.Is(err, engine.ErrNotFound):
		// Someone may have moved a corrupt state away, over a member that runs.
		m.lost = !m.find(s)
	default:
		if !m.lost {
			s.log.Error("a member's state can't be read; the member is left alone", "member", m.name, "error", err)
		}
		m.lost = true
	}
	if !m.lost {
		m.adopt(s)
	}
}

// find makes up the state of a member that has none from the process table: its shell names it. What it runs under is not
// known, so it will be replaced. It returns false where the table can't be read.
func (m *member) find(s *supervisor) bool {
	if _, err := s.processes(""); err != nil {
		s.unseen(err, time.Now())
		return false
	}
	for id, processes := range s.table {
		line, err := os.ReadFile(commandLine(processes[0])) // the oldest is the shell
		if err == nil && bytes.Contains(line, []byte("\x00"+s.dir.Exit(m.name, id)+"\x00")) {
			m.state = statedir.State{
				Name: m.name, State: domain.StateRunning, Boot: s.boot,
				Instance: id, PID: processes[0].PID, StartTime: processes[0].StartTime,
			}
		}
	}
	return true
}

// adopt takes over the instance that a predecessor started, if it still runs; if it doesn't, its end is dealt with.
func (m *member) adopt(s *supervisor) {
	if m.state.State != domain.StateRunning && (m.state.State != domain.StatePending || m.state.Instance == "") {
		return
	}
	spec, err := statedir.Read[domain.MemberSpec](s.dir.Document(statedir.Specs, m.name))
	if err != nil {
		// It is to be forgotten, or can't be read: either way the default grace period is long enough to end it.
		spec = domain.MemberSpec{GracePeriod: domain.DefaultGracePeriod}
	}
	if m.state.Boot == s.boot && m.state.PID == 0 {
		// The predecessor died between starting the shell and noting its id.
		processes, err := s.processes(m.state.Instance)
		if err != nil {
			s.unseen(err, time.Now())
			m.lost = true
			return
		}
		for _, p := range processes {
			if p.PID == p.Session {
				m.state.PID, m.state.StartTime = p.PID, p.StartTime
				break // the oldest: the command may lead a session of its own
			}
		}
		if _, err := os.Stat(s.dir.Exit(m.name, m.state.Instance)); m.state.PID == 0 && err != nil {
			m.state.Instance = "" // it was never started
			return
		}
		m.state.State = domain.StateRunning
	}
	i := newInstance(spec, reopenLimits(spec, m.state.Instance))
	switch err := i.watch(m.state.PID, m.state.StartTime); {
	case m.state.Boot != s.boot || m.state.PID == 0 || errors.Is(err, proctree.ErrGone):
		i.exited = true
	case err != nil:
		s.log.Error("a running member can't be watched; it is left alone", "member", m.name, "error", err)
		m.unread = true
		return
	}
	m.run(s, i)
	m.unsaved = true
}
