package store

import (
	"os"
	"sync"
)

// Owner identifies a process on any machine.
type Owner struct {
	// Machine is the boot and the PID namespace in which Process is its ID, and StartTime its start in clock ticks
	// since the boot. It is empty if they are unknown.
	Machine   string `json:"machine,omitempty"`
	Process   int    `json:"process"`
	StartTime uint64 `json:"start_time,omitempty"`
	// Task is the ID of the process's task in the Swarm; empty if the Swarm does not run it.
	Task string `json:"task,omitempty"`
}

// TaskVariable is the environment variable with the ID of a process's task in the Swarm.
const TaskVariable = "TRAINYARD_TASK"

// ThisProcess returns this process.
var ThisProcess = sync.OnceValue(func() Owner {
	self := Owner{Process: os.Getpid(), Task: os.Getenv(TaskVariable)}
	self.identify()
	return self
})

// endedFor reports whether the process is known to have ended from another one's point of view: one on the same
// machine.
func (o Owner) endedFor(other Owner) bool {
	return o.Machine != "" && o.Machine == other.Machine && o.ended()
}
