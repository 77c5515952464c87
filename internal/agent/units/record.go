//go:build linux

package units

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// recordSize is the maximum size of a record; see [Prepare].
const recordSize = 2048

// Record is what a unit recorded about its end before it vanished.
type Record struct {
	// Asked is true if the unit was asked to stop, by anybody, before its command ended.
	Asked bool
	// Result, Code and Status are systemd's: "exit-code", "exited", "3"; or "signal", "killed", "TERM".
	Result, Code, Status string
	// OOMKills is how many processes the kernel killed for lack of memory.
	OOMKills int
	// NeverFull is true if the unit's own limit can't have been the cause of that.
	NeverFull bool
	// Group is the unit's cgroup.
	Group string
}

// Prepare creates the file of a record at its full size, so that recording works on a full disk.
func Prepare(path string) error {
	return os.WriteFile(path, bytes.Repeat([]byte("\n"), recordSize), 0o600)
}

// ReadRecord returns the record in a file, and false if it is incomplete.
func ReadRecord(path string) (Record, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Record{}, false
	}
	return parseRecord(string(content))
}

func parseRecord(content string) (r Record, complete bool) {
	for line := range strings.Lines(content) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "asked":
			r.Asked = true
		case "result":
			r.Result = value
		case "code":
			r.Code = value
		case "status":
			r.Status = value
		case "oom_kills":
			r.OOMKills, _ = strconv.Atoi(value) // 0 if unreadable
		case "ooms":
			r.NeverFull = value == "0" // it is not known for control groups v1
		case "group":
			r.Group = value
		case "complete":
			return r, true
		}
	}
	return Record{}, false
}

// signalled plus the number of a signal is the exit code of a process that it killed.
const signalled = 128

// ExitCode returns the exit code of the command, or 128 + the number of the signal that killed it; false if there is
// none.
func (r Record) ExitCode() (int, bool) {
	switch r.Code {
	case "exited":
		code, err := strconv.Atoi(r.Status)
		return code, err == nil
	case "killed", "dumped":
		number := signalNumber("SIG" + r.Status)
		return signalled + number, number != 0
	}
	return 0, false
}

// signalNumber returns the number of a signal, or 0 if the name is unknown.
func signalNumber(name string) int {
	if offset, isRealtime := strings.CutPrefix(name, "SIGRTMIN+"); isRealtime {
		if n, err := strconv.Atoi(offset); err == nil {
			return realtimeMin + n
		}
		return 0
	}
	if name == "SIGRTMIN" {
		return realtimeMin
	}
	return int(unix.SignalNum(name))
}

// realtimeMin is the first real-time signal that the C library leaves to programs.
const realtimeMin = 34

// Left returns the remaining processes in the unit's cgroup and below.
func (r Record) Left() (pids []int) {
	if r.Group == "" {
		return nil
	}
	for _, mount := range []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup"} {
		folder := filepath.Join(mount, r.Group)
		_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Name() == "cgroup.procs" {
				content, _ := os.ReadFile(path)
				for pid := range strings.FieldsSeq(string(content)) {
					if id, err := strconv.Atoi(pid); err == nil {
						pids = append(pids, id)
					}
				}
			}
			return nil
		})
	}
	return pids
}
