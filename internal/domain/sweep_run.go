package domain

import "time"

// RunState is where a run of a sweep is in its life.
type RunState string

// The states of a run.
const (
	// RunQueued waits for room, or for its next attempt.
	RunQueued  RunState = "queued"
	RunRunning RunState = "running"
	// RunPaused was halted on request: while it ran, it keeps what it has, and while it waited, it does not start.
	RunPaused    RunState = "paused"
	RunSucceeded RunState = "succeeded"
	RunFailed    RunState = "failed"
	// RunOutOfMemory has run out of GPU memory so often that it is not tried again.
	RunOutOfMemory RunState = "out_of_memory"
	// RunCancelled was ended, or never started, on request or because too many others failed.
	RunCancelled RunState = "cancelled"
)

// RunStates lists the states in the order of a run's life.
var RunStates = []RunState{RunQueued, RunRunning, RunPaused, RunSucceeded, RunFailed, RunOutOfMemory, RunCancelled}

// Ended reports whether a run in this state is not started again by itself.
func (s RunState) Ended() bool {
	return s == RunSucceeded || s == RunFailed || s == RunOutOfMemory || s == RunCancelled
}

// Run is what is remembered of a run of a sweep. One of which nothing is remembered is queued.
type Run struct {
	State RunState `json:"state"`
	// Revision is that of the sweep's document under which the run was queued last, and Seal identifies its own part of
	// what it runs.
	Revision int    `json:"revision"`
	Seal     string `json:"seal"`
	// Attempts counts the starts since then, Failures those that failed, and OutOfMemory those that ran out of GPU
	// memory.
	Attempts    int `json:"attempts,omitempty"`
	Failures    int `json:"failures,omitempty"`
	OutOfMemory int `json:"out_of_memory,omitempty"`
	// Batch is the run, in the sense of [MemberSpec], in which the member of the last attempt was started.
	Batch int `json:"batch,omitempty"`
	// Assignment is where the last attempt runs, or ran.
	Assignment *Assignment `json:"assignment,omitempty"`
	// StartedAt, FinishedAt and ExitCode are those of the last attempt; nil where there are none.
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	ExitCode   *int       `json:"exit_code,omitempty"`
	// NotBefore is the earliest time of the next attempt; nil for none.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Needs is what the attempt that is on was started with: it takes up that, whatever the sweep asks for by now. Nil
	// is what the sweep asks for.
	Needs *RunNeeds `json:"needs,omitempty"`
	// Results is where the last attempt leaves files, or left them; nil where none are kept.
	Results *RunResults `json:"results,omitempty"`
	// RanOut is where an attempt ran out of GPU memory last; nil where none did.
	RanOut *RanOut `json:"ran_out,omitempty"`
	// PeakMemoryMiB and PeakGPUMemoryMiB are the most that was measured of the last attempt; nil where nothing was.
	PeakMemoryMiB    *int64 `json:"peak_memory_mib,omitempty"`
	PeakGPUMemoryMiB *int64 `json:"peak_gpu_memory_mib,omitempty"`
	// Value is what the sweep's objective found in the log of the last attempt; nil for nothing.
	Value *float64 `json:"value,omitempty"`
	// Reports are the ends of attempts that the sweep's hook has yet to be told of.
	Reports []RunReport `json:"reports,omitempty"`
	// Reason says in words why the run is in its state; empty where there is nothing to say.
	Reason string `json:"reason,omitempty"`
}

// RunNeeds is what a run asks of a host and of a GPU pool.
type RunNeeds struct {
	Resources ResourceRequirements `json:"resources,omitzero"`
	GPUs      *GPURequest          `json:"gpus,omitempty"`
}

// RanOut is an attempt that ran out of GPU memory.
type RanOut struct {
	At   time.Time `json:"at"`
	GPUs DeviceSet `json:"gpus"`
	// Beside is how many other runs were on these devices.
	Beside int `json:"beside"`
}

// Active reports whether the run takes up what was assigned to it.
func (r Run) Active() bool {
	return r.Assignment != nil && (r.State == RunRunning || r.State == RunPaused && r.FinishedAt == nil)
}

// RunReport is what a sweep's hook is told of an attempt that has ended. With the sweep, the run and its start it is
// told from all others.
type RunReport struct {
	Attempt    int        `json:"attempt"`
	State      RunState   `json:"state"`
	Host       string     `json:"host"`
	GPUs       DeviceSet  `json:"gpus,omitempty"`
	ExitCode   *int       `json:"exit_code"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Value      *float64   `json:"value,omitempty"`
	// Results says where the files are that the attempt left; empty where none are kept.
	Results string `json:"results,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// RunName returns the name of the member that a run of a sweep is: a run is the only member of the role of its key.
func RunName(sweep, key string) string { return MemberName(sweep, key, 0) }
