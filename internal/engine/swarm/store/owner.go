package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// Owner identifies a process, on whatever machine it is.
type Owner struct {
	// Machine is the boot and the PID namespace in which Process is its id and StartTime, in clock ticks since the boot, its
	// start. It is empty where they are not known.
	Machine   string `json:"machine,omitempty"`
	Process   int    `json:"process"`
	StartTime uint64 `json:"start_time,omitempty"`
	// Task is the ID of the Swarm's task that the process is; empty for one that the Swarm does not run.
	Task string `json:"task,omitempty"`
}

// TaskVariable tells a process which task of the Swarm it is.
const TaskVariable = "TRAINYARD_TASK"

// ThisProcess returns the present process.
var ThisProcess = sync.OnceValue(func() Owner {
	self := Owner{Process: os.Getpid(), Task: os.Getenv(TaskVariable)}
	// In a /proc of another PID namespace our id is somebody else's.
	if id, err := os.Readlink("/proc/self"); err != nil || id != strconv.Itoa(self.Process) {
		return self
	}
	boot, bootErr := proctree.BootID("/proc")
	namespace, namespaceErr := os.Readlink("/proc/self/ns/pid")
	process, processErr := proctree.Lookup(self.Process)
	if errors.Join(bootErr, namespaceErr, processErr) != nil {
		return self
	}
	self.Machine, self.StartTime = boot+" "+namespace, process.StartTime
	return self
})

// endedFor tells whether a process is known to have ended, as far as another one can tell: one on the same machine.
func (o Owner) endedFor(other Owner) bool {
	if o.Machine == "" || o.Machine != other.Machine {
		return false
	}
	process, err := proctree.Lookup(o.Process)
	if err == nil {
		return process.StartTime != o.StartTime
	}
	// Where the system hides the processes of other users (hidepid), one that can't be found may be there.
	return errors.Is(err, proctree.ErrGone) && (visible(o.Process) || errors.Is(unix.Kill(o.Process, 0), unix.ESRCH))
}

func visible(process int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", process))
	return err == nil
}
