package domain

import "time"

// RunState is where a run of a sweep is in its life.
type RunState string

// The states of a run.
const (
	// RunQueued: waits for room, or for its next attempt.
	RunQueued  RunState = "queued"
	RunRunning RunState = "running"
	// RunPaused: halted on request. If it was running, it keeps its resources; if it was waiting, it does not start.
	RunPaused    RunState = "paused"
	RunSucceeded RunState = "succeeded"
	RunFailed    RunState = "failed"
	// RunOutOfMemory: ran out of GPU memory too often to be tried again.
	RunOutOfMemory RunState = "out_of_memory"
	// RunCancelled: ended or never started, on request or because too many others failed.
	RunCancelled RunState = "cancelled"
)

// RunStates lists the states in the order of a run's life.
var RunStates = []RunState{RunQueued, RunRunning, RunPaused, RunSucceeded, RunFailed, RunOutOfMemory, RunCancelled}

// Ended reports whether a run in this state is not started again by itself.
func (s RunState) Ended() bool {
	return s == RunSucceeded || s == RunFailed || s == RunOutOfMemory || s == RunCancelled
}

// Run is the stored state of a run of a sweep. A run without one is queued.
type Run struct {
	State RunState `json:"state"`
	// Revision is that of the sweep's document under which the run was last queued. Seal identifies the run's own part
	// of what it runs.
	Revision int    `json:"revision"`
	Seal     string `json:"seal"`
	// Attempts counts the starts since then, Failures those that failed, and OutOfMemory those that ran out of GPU
	// memory.
	Attempts    int `json:"attempts,omitempty"`
	Failures    int `json:"failures,omitempty"`
	OutOfMemory int `json:"out_of_memory,omitempty"`
	// Batch is the [MemberSpec.Run] with which the member of the last attempt was started.
	Batch int `json:"batch,omitempty"`
	// Assignment is where the last attempt runs, or ran.
	Assignment *Assignment `json:"assignment,omitempty"`
	// StartedAt, FinishedAt and ExitCode are those of the last attempt; nil if there are none.
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	ExitCode   *int       `json:"exit_code,omitempty"`
	// NotBefore is the earliest time of the next attempt; nil means any.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Needs is what the current attempt was started with and so occupies, whatever the sweep asks for by now. nil means
	// what the sweep asks for.
	Needs *RunNeeds `json:"needs,omitempty"`
	// Results is where the last attempt leaves or left files; nil if none are kept.
	Results *RunResults `json:"results,omitempty"`
	// RanOut is the last attempt that ran out of GPU memory; nil if none did.
	RanOut *RanOut `json:"ran_out,omitempty"`
	// PeakMemoryMiB and PeakGPUMemoryMiB are the highest values measured for the last attempt; nil if nothing was
	// measured.
	PeakMemoryMiB    *int64 `json:"peak_memory_mib,omitempty"`
	PeakGPUMemoryMiB *int64 `json:"peak_gpu_memory_mib,omitempty"`
	// Value is what the sweep's objective found in the log of the last attempt; nil if nothing.
	Value *float64 `json:"value,omitempty"`
	// Reports are ends of the run that the sweep's hook has not been called for yet.
	Reports []RunReport `json:"reports,omitempty"`
	// Reason says why the run is in its state; empty if there is nothing to add.
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

// Active reports whether the run occupies what was assigned to it.
func (r Run) Active() bool {
	return r.Assignment != nil && (r.State == RunRunning || r.State == RunPaused && r.FinishedAt == nil)
}

// RunReport is what a sweep's hook receives about a run that has ended. Attempt is 0 if it has not started since it was
// last queued anew. State, EndedAt and Reason are the run's; everything else is from its last attempt.
type RunReport struct {
	Attempt int      `json:"attempt"`
	State   RunState `json:"state"`
	// EndedAt is when the run ended, which identifies this end of it.
	EndedAt    time.Time  `json:"ended_at"`
	Host       string     `json:"host,omitempty"`
	GPUs       DeviceSet  `json:"gpus,omitempty"`
	ExitCode   *int       `json:"exit_code"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Value      *float64   `json:"value,omitempty"`
	// Results says where its files are; empty if none are kept.
	Results string `json:"results,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// RunName returns the name of the member of a run: the only member of the role named by the run's key.
func RunName(sweep, key string) string { return MemberName(sweep, key, 0) }
