//go:build linux

// Package proctree finds, signals and watches the processes of instances.
//
// An instance is one run of a member: a shell that leads a session of its own, the command, and everything that the
// command starts. No record of it is kept: callers read the process table, so an instance is found again after the
// supervisor that started it has died. That includes processes that run as another user, and those that cleared their
// environment, as long as they share a parent or a session with the instance.
package proctree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// InstanceVariable is the environment variable that marks all processes of an instance; its value is the instance's ID.
const InstanceVariable = "TRAINYARD_INSTANCE"

// ErrGone means that a process has exited, even if another process has its ID now.
var ErrGone = errors.New("the process has exited")

// ClockTick is the unit of times in the process table, the same on all Linux platforms that Go supports.
const ClockTick = time.Second / 100

// Process is a live process.
type Process struct {
	// PID identifies the process together with StartTime, which is in clock ticks (1/100 s) since boot.
	PID       int
	StartTime uint64
	// Session is the ID of the session's leader, and Parent that of the parent process.
	Session int
	Parent  int
	// CPU is the CPU time of all its threads so far; WaitedCPU is that of children it has waited for, including their
	// own.
	CPU       time.Duration
	WaitedCPU time.Duration
	// ResidentBytes is its resident memory, including shared memory.
	ResidentBytes int64
	// Kernel is true for a kernel thread, which has no program. Loading is true in the middle of an exec: the new
	// program is in place, but has no environment yet.
	Kernel  bool
	Loading bool
}

// Scan reads the process table once and returns the live processes of each instance by its ID, oldest first.
//
// A process belongs to the instance named by its environment; failing that, to the one of its session, or of its
// parent. Zombies and processes that vanish during the scan are left out. Only root can read the environment of another
// user's process; for others it names no instance. Processes that the system hides from other users (hidepid) are left
// out.
func Scan() (map[string][]Process, error) {
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	return byInstance(table), nil
}

// ScanBy reads the process table below a directory, such as /proc, and returns the live processes grouped by owner.
// Processes for which owner returns an empty string are left out.
func ScanBy(folder string, owner func(p Process) string) (map[string][]Process, error) {
	fs, err := procfs.NewFS(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	procs, err := fs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	owned := map[string][]Process{}
	for _, proc := range procs {
		p, err := readStat(folder, proc.PID)
		if err != nil {
			continue // gone, or hidden from us
		}
		if id := owner(p); id != "" {
			owned[id] = append(owned[id], p)
		}
	}
	return owned, nil
}

// Again returns the current state of those processes that are still alive, from the process table below a directory.
func Again(folder string, instances map[string][]Process) map[string][]Process {
	again := make(map[string][]Process, len(instances))
	for id, processes := range instances {
		for _, p := range processes {
			if now, err := readStat(folder, p.PID); err == nil && now.StartTime == p.StartTime {
				again[id] = append(again[id], now)
			}
		}
	}
	return again
}

// Lookup returns a live process, or [ErrGone] if none has this ID.
func Lookup(pid int) (Process, error) {
	p, err := readStat(procfs.DefaultMountPoint, pid)
	if err == nil {
		return p, nil
	}
	if vanished(err) {
		return Process{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
}

// readTable returns the live processes by ID.
func readTable() (map[int]entry, error) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	table := make(map[int]entry, len(procs))
	for _, proc := range procs {
		e, err := readEntry(proc)
		if vanished(err) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading process %d: %w", proc.PID, err)
		}
		table[e.PID] = e
	}
	return table, nil
}

// readEntry returns a live process with the instance named by its environment. A process has no environment while it
// loads a program; as [os.StartProcess] returns before the end of that, its parent may be gone by then, and nothing
// else would identify its instance.
func readEntry(proc procfs.Proc) (entry, error) {
	environ, err := readEnviron(proc)
	if err != nil {
		return entry{}, err
	}
	p, err := loaded(proc.PID)
	if err == nil && len(environ) == 0 && !p.Kernel {
		environ, err = readEnviron(proc)
	}
	return entry{Process: p, named: instanceIn(environ)}, err
}

// Loading a program takes less than a millisecond, unless the CPU is busy with other processes.
const (
	loadingLooks = 1000
	loadingPause = time.Millisecond
)

// loaded returns a live process once it has loaded its program, or after about a second.
func loaded(pid int) (p Process, err error) {
	for range loadingLooks {
		if p, err = readStat(procfs.DefaultMountPoint, pid); err != nil || !p.Loading {
			break
		}
		time.Sleep(loadingPause) //nolint:forbidigo // nothing reports the end, which is near
	}
	return p, err
}

// readEnviron returns the environment of a process; empty for one that is gone or belongs to another user.
func readEnviron(proc procfs.Proc) ([]string, error) {
	environ, err := proc.Environ()
	if err != nil && !vanished(err) && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("its environment: %w", err)
	}
	return environ, nil
}

// vanished reports whether an error means that the process no longer exists.
func vanished(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// instanceIn returns the instance named by an environment, or an empty string.
func instanceIn(environ []string) string {
	for _, variable := range environ {
		if id, ok := strings.CutPrefix(variable, InstanceVariable+"="); ok {
			return id
		}
	}
	return ""
}

// OldestFirst orders processes by start time.
func OldestFirst(a, b Process) int {
	return cmp.Or(cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.PID, b.PID))
}

// byInstance groups the processes of a table by instance; processes without one are left out.
func byInstance(table map[int]entry) map[string][]Process {
	owners := newOwners(table)
	instances := map[string][]Process{}
	for pid, e := range table {
		if id := owners.of(pid); id != "" {
			instances[id] = append(instances[id], e.Process)
		}
	}
	for _, processes := range instances {
		slices.SortFunc(processes, OldestFirst)
	}
	return instances
}
