package store

import (
	"os"
	"sync"
)

// Owner identifies a process, on whatever machine it is.
type Owner struct {
	// Machine is the boot and the PID namespace in which Process is its id and StartTime, in clock ticks since the
	// boot, its start. It is empty where they are not known.
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
	self.identify()
	return self
})

// endedFor reports whether a process is known to have ended, as far as another one can tell: one on the same machine.
func (o Owner) endedFor(other Owner) bool {
	return o.Machine != "" && o.Machine == other.Machine && o.ended()
}
