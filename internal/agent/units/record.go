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

// recordSize is how long a record can get; see [Prepare].
const recordSize = 2048

// Record is what a unit recorded of its end, before it vanished.
type Record struct {
	// Asked is true where the unit was told to end, by whomever, before its command ended.
	Asked bool
	// Result, Code and Status are as systemd has them: "exit-code", "exited", "3"; or "signal", "killed", "TERM".
	Result, Code, Status string
	// OOMKills is how many processes the kernel killed for lack of memory.
	OOMKills int
	// Group is the unit's control group.
	Group string
}

// Prepare makes the file of a record, with the room that the record will need.
func Prepare(path string) error {
	return os.WriteFile(path, bytes.Repeat([]byte("\n"), recordSize), 0o600)
}

// ReadRecord returns the record in a file, and false where it is not complete.
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
			r.OOMKills, _ = strconv.Atoi(value) // none, where it can't be read
		case "group":
			r.Group = value
		case "complete":
			return r, true
		}
	}
	return Record{}, false
}

// signalled is what is added to the number of a signal to get an exit code.
const signalled = 128

// ExitCode returns the exit code of the command, or 128 + the number of a signal that killed it; false where there is
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

// signalNumber returns the number of a signal, 0 where there is none of this name.
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

// Left returns the processes that are left in the unit's control group, and in those below it.
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
