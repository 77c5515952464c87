//go:build linux

package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// statRoom is more than a process's stat ever takes: about fifty numbers, and a name of up to 64 bytes.
const statRoom = 2048

// The fields of a process's stat after its name that matter, see proc_pid_stat(5); the first is the state.
const (
	fieldState = iota
	fieldParent
	_
	fieldSession
	fieldFlags          = 6
	fieldUserTime       = 11
	fieldSystemTime     = 12
	fieldUserTimeWaited = 13
	fieldSysTimeWaited  = 14
	fieldThreads        = 17
	fieldStartTime      = 19
	fieldResident       = 21
	fieldStartCode      = 23
	fields              = 24
)

// The process flags that matter, see include/linux/sched.h in the kernel.
const (
	flagExiting = 0x00000004
	flagKernel  = 0x00200000
)

// errStat is returned for a stat that is not in the kernel's format.
var errStat = errors.New("malformed stat of a process")

// readStat returns a live process of a process table, or [ErrGone]. An agent does this every second for each process of
// its members; procfs parses all fields with fmt, which takes more than twice as long.
func readStat(folder string, pid int) (Process, error) {
	name := filepath.Join(folder, strconv.Itoa(pid), "stat")
	file, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(file)
	var room [statRoom]byte
	n, err := unix.Read(file, room[:])
	if err != nil {
		return Process{}, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return parseStat(pid, room[:n])
}

// parseStat parses the stat of a process, or returns [ErrGone] for one that has ended.
func parseStat(pid int, stat []byte) (Process, error) {
	behind := bytes.LastIndex(stat, []byte(") ")) // the name may contain anything
	if behind < 0 {
		return Process{}, fmt.Errorf("%w: %q", errStat, stat)
	}
	found := bytes.Fields(stat[behind+2:])
	if len(found) < fields {
		return Process{}, fmt.Errorf("%w: %q", errStat, stat)
	}
	var wrong error
	number := func(field int) int64 {
		value, err := strconv.ParseInt(string(found[field]), 10, 64)
		wrong = errors.Join(wrong, err)
		return value
	}
	ticks := func(a, b int) time.Duration { return time.Duration(number(a)+number(b)) * ClockTick }
	p := Process{
		PID: pid, StartTime: uint64(number(fieldStartTime)), Session: int(number(fieldSession)), Parent: int(number(fieldParent)), //nolint:gosec // it is positive
		CPU: ticks(fieldUserTime, fieldSystemTime), WaitedCPU: ticks(fieldUserTimeWaited, fieldSysTimeWaited),
		ResidentBytes: number(fieldResident) * int64(os.Getpagesize()),
	}
	flags := number(fieldFlags)
	p.Kernel = flags&flagKernel != 0
	// The start of a program's code is set last when it is loaded, and cleared when the process exits.
	p.Loading = number(fieldStartCode) == 0 && flags&(flagKernel|flagExiting) == 0
	threads := number(fieldThreads)
	if wrong != nil {
		return Process{}, fmt.Errorf("%w: %w", errStat, wrong)
	}
	// If only the first of several threads has exited, the process shows as a zombie but lives on.
	if bytes.ContainsAny(found[fieldState], "ZXx") && threads <= 1 {
		return Process{}, ErrGone
	}
	return p, nil
}
