package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Sweep is the specification of independent runs of one program, which differ in their environment. It holds what the
// user wrote; what was left out is filled in by the accessors.
type Sweep struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Template says what every run runs.
	Template
	// Runs are the environments of the runs by their keys, over that of the template. They are stored apart, see
	// [SweepRuns].
	Runs map[string]map[string]string `json:"runs,omitempty"`
	// Config is the content of a file for each run that has one, by their keys. It is stored with the runs.
	Config map[string]string `json:"config,omitempty"`
	// MaxParallel bounds how many run at a time; nil leaves that to what there is room for, and to Progress.
	MaxParallel *int `json:"max_parallel,omitempty"`
	// Priority decides between sweeps of a cluster: the higher one starts its runs first. Roles of groups with a lower
	// one give way, as to groups.
	Priority  int                  `json:"priority,omitempty"`
	Resources ResourceRequirements `json:"resources,omitzero"`
	// GPUs are what one run asks of a GPU pool; nil asks for none.
	GPUs        *GPURequest     `json:"gpus,omitempty"`
	Placement   Placement       `json:"placement,omitzero"`
	GracePeriod *Duration       `json:"grace_period,omitempty"`
	ExitCodes   *ExitCodeRule   `json:"exit_codes,omitempty"`
	Admission   Admission       `json:"admission,omitzero"`
	Retry       Retry           `json:"retry,omitzero"`
	OnFailure   *SweepOnFailure `json:"on_failure,omitempty"`
	// OnFinish is told of each attempt that has ended, at least once; nil for nobody.
	OnFinish *ScalingHook `json:"on_finish,omitempty"`
	// Results is where runs leave files; nil where none are kept.
	Results *Results `json:"results,omitempty"`
	// Objective is what the log of a run tells of its result; nil for nothing.
	Objective *Objective `json:"objective,omitempty"`
	// Progress has as many run side by side as finish most; nil leaves that to what there is room for.
	Progress *SweepProgress    `json:"progress,omitempty"`
	WaitFor  SweepWaitFor      `json:"wait_for,omitempty"`
	Rerun    Rerun             `json:"rerun,omitempty"`
	Triggers map[string]string `json:"triggers,omitempty"`
}

// Admission is what is measured before a run is started.
type Admission struct {
	// FreeGPUMemory has a run start only where the driver tells that its memory, and the reserve, is free on each of
	// its devices.
	FreeGPUMemory bool `json:"free_gpu_memory,omitempty"`
	// FreeMemory has a run start only where its memory is free on the host.
	FreeMemory bool `json:"free_memory,omitempty"`
	// ReservePercent is what is left free of a device's memory beside the run's; [DefaultReservePercent] where it is
	// nil.
	ReservePercent *float64 `json:"reserve_percent,omitempty"`
	// Settle is how long after a start a device takes no further run, and the run counts as one that has yet to take
	// its memory of the host: a program takes it late. It is [DefaultSettle] where it is nil.
	Settle *Duration `json:"settle,omitempty"`
}

// DefaultSettle is how long a device takes no further run after one was started, where free memory counts.
const DefaultSettle = Duration(20 * time.Second)

// Retry says how often a run that failed is started again.
type Retry struct {
	// MaxAttempts bounds the attempts of a run that fails; [DefaultSweepAttempts] where it is nil, and 0 sets no bound.
	MaxAttempts *int `json:"max_attempts,omitempty"`
	// OutOfMemory bounds the attempts that ran out of GPU memory, which use up none of the others; [DefaultOutOfMemory]
	// where it is nil.
	OutOfMemory *int `json:"out_of_memory,omitempty"`
	// Patterns are regular expressions of log lines that tell that GPU memory ran out, beside those that are known.
	Patterns []string `json:"out_of_memory_patterns,omitempty"`
	// Delay is the time before the second attempt, [DefaultRestartDelay] where it is nil; it doubles with each further
	// one.
	Delay *Duration `json:"delay,omitempty"`
}

// Defaults of a retry.
const (
	// DefaultSweepAttempts is one: a trial that diverges diverges again.
	DefaultSweepAttempts = 1
	DefaultOutOfMemory   = 5
)

// SweepOnFailure says what becomes of a sweep after some of its runs have failed.
type SweepOnFailure struct {
	// After is the number of failed runs.
	After int       `json:"after"`
	Then  SweepThen `json:"then,omitempty"`
}

// SweepThen is what becomes of a sweep that has too many failed runs.
type SweepThen string

// What becomes of it.
const (
	// SweepStop cancels all runs that have not ended; it is the default.
	SweepStop SweepThen = "stop"
	// SweepDrain cancels those that wait, and lets those end that run.
	SweepDrain SweepThen = "drain"
)

// SweepThens lists what a sweep may name.
var SweepThens = []SweepThen{SweepStop, SweepDrain}

// Objective is a number that runs write into their logs, by which they are compared.
type Objective struct {
	// Pattern is a regular expression with one group, the number. The last line that matches counts.
	Pattern string `json:"pattern"`
	// Goal is [GoalMaximise] where it is empty.
	Goal Goal `json:"goal,omitempty"`
}

// Goal says which of two numbers is the better one.
type Goal string

// The goals.
const (
	GoalMaximise Goal = "maximise"
	GoalMinimise Goal = "minimise"
)

// Goals lists what an objective may name.
var Goals = []Goal{GoalMaximise, GoalMinimise}

// SweepWaitFor says what ends an apply of a sweep.
type SweepWaitFor string

// What an apply may wait for.
const (
	// WaitAccepted: the sweep is stored, and the controller starts its runs.
	WaitAccepted SweepWaitFor = "accepted"
	// WaitEnded: every run has ended, and succeeded.
	WaitEnded SweepWaitFor = "completed"
)

// SweepWaitFors lists what an apply may wait for.
var SweepWaitFors = []SweepWaitFor{WaitAccepted, WaitEnded}

// Rerun says which runs that have ended start anew when the sweep is changed. One whose own environment changed always
// does.
type Rerun string

// The rules.
const (
	// RerunChanged: all, where what they run was changed, such as the image. It is the default.
	RerunChanged Rerun = "changed"
	// RerunFailed: those that did not succeed, where what they run or need, or a trigger, was changed.
	RerunFailed Rerun = "failed"
	// RerunAll: all, where what they run, or a trigger, was changed.
	RerunAll Rerun = "all"
)

// Reruns lists the rules that a sweep may name.
var Reruns = []Rerun{RerunChanged, RerunFailed, RerunAll}

// RunSpec is what a run has of its own: all else is its sweep's.
type RunSpec struct {
	Key string
	Env map[string]string
	// Config is the content of its file; empty for none.
	Config string
}

// Run returns what the run of a key has of its own.
func (s Sweep) Run(key string) RunSpec { return RunSpec{key, s.Runs[key], s.Config[key]} }

// Keys returns the keys of the runs in their order.
func (s Sweep) Keys() []string { return slices.Sorted(maps.Keys(s.Runs)) }

// Equal reports whether two specifications are stored as the same document.
func (s Sweep) Equal(other Sweep) bool {
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Attempts is how often a run may fail before it has failed for good; 0 sets no bound.
func (s Sweep) Attempts() int {
	if s.Retry.MaxAttempts != nil {
		return *s.Retry.MaxAttempts
	}
	return DefaultSweepAttempts
}

// OutOfMemoryAttempts is how often a run may run out of GPU memory before it has failed for good.
func (s Sweep) OutOfMemoryAttempts() int {
	if s.Retry.OutOfMemory != nil {
		return *s.Retry.OutOfMemory
	}
	return DefaultOutOfMemory
}

// FinalExitCodes are those after which a run is not started again.
func (s Sweep) FinalExitCodes() ExitCodes {
	if s.ExitCodes != nil {
		return s.ExitCodes.Final
	}
	return DefaultFinalExitCodes
}

// Reserve is the share of a device's memory that has to stay free beside a run, from 0 to below 1.
func (a Admission) Reserve() float64 {
	if a.ReservePercent != nil {
		return *a.ReservePercent / 100
	}
	return DefaultReservePercent / 100
}

// Better reports whether a number is better than another by the objective's goal.
func (o Objective) Better(a, b float64) bool {
	if cmp.Or(o.Goal, GoalMaximise) == GoalMinimise {
		return a < b
	}
	return a > b
}
