package domain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Sweep is the specification of independent runs of one program that differ in their environment. It holds what the
// user wrote; accessors fill in the defaults.
type Sweep struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	// Template says what every run runs.
	Template
	// Runs are the environments of the runs by key, laid over the template's. They are stored separately, see
	// [SweepRuns].
	Runs map[string]map[string]string `json:"runs,omitempty"`
	// Config is the content of a file for each run that has one, by key. It is stored with the runs.
	Config map[string]string `json:"config,omitempty"`
	// MaxParallel limits how many runs are active at a time; nil leaves that to the available room and to Progress.
	MaxParallel *int `json:"max_parallel,omitempty"`
	// Priority decides between sweeps of a cluster: the one with the higher priority starts its runs first. Roles of
	// groups with a lower priority yield to it, as they do to groups.
	Priority  int                  `json:"priority,omitempty"`
	Resources ResourceRequirements `json:"resources,omitzero"`
	// GPUs are what one run asks of a GPU pool; nil means none.
	GPUs        *GPURequest     `json:"gpus,omitempty"`
	Placement   Placement       `json:"placement,omitzero"`
	GracePeriod *Duration       `json:"grace_period,omitempty"`
	ExitCodes   *ExitCodeRule   `json:"exit_codes,omitempty"`
	Admission   Admission       `json:"admission,omitzero"`
	Retry       Retry           `json:"retry,omitzero"`
	OnFailure   *SweepOnFailure `json:"on_failure,omitempty"`
	// OnFinish is called for each run that has ended and is not queued again; nil means no hook.
	OnFinish *ScalingHook `json:"on_finish,omitempty"`
	// Results is where runs leave files; nil if none are kept.
	Results *Results `json:"results,omitempty"`
	// Objective is how a run's result is read from its log; nil means not at all.
	Objective *Objective `json:"objective,omitempty"`
	// Progress runs as many side by side as gives the highest throughput; nil leaves that to the available room.
	Progress *SweepProgress    `json:"progress,omitempty"`
	WaitFor  SweepWaitFor      `json:"wait_for,omitempty"`
	Rerun    Rerun             `json:"rerun,omitempty"`
	Triggers map[string]string `json:"triggers,omitempty"`
}

// Admission is what is measured before a run is started.
type Admission struct {
	// FreeGPUMemory starts a run only if the driver reports its memory and the reserve as free on each of its devices.
	FreeGPUMemory bool `json:"free_gpu_memory,omitempty"`
	// FreeMemory starts a run only if its memory is free on the host.
	FreeMemory bool `json:"free_memory,omitempty"`
	// ReservePercent is the percentage of a device's memory that stays free in addition to the run's; nil means
	// [DefaultReservePercent].
	ReservePercent *float64 `json:"reserve_percent,omitempty"`
	// Settle is how long after a start a device takes no further run, and the run's host memory counts as not taken
	// yet, as programs allocate memory late. nil means [DefaultSettle].
	Settle *Duration `json:"settle,omitempty"`
}

// DefaultSettle is how long a device takes no further run after a start by default, if free memory is checked.
const DefaultSettle = Duration(20 * time.Second)

// Retry says how often a failed run is started again.
type Retry struct {
	// MaxAttempts limits the attempts of a failing run; nil means [DefaultSweepAttempts], 0 no limit.
	MaxAttempts *int `json:"max_attempts,omitempty"`
	// OutOfMemory limits the attempts that ran out of GPU memory, which are counted separately; nil means
	// [DefaultOutOfMemory].
	OutOfMemory *int `json:"out_of_memory,omitempty"`
	// Patterns are regular expressions for log lines that report exhausted GPU memory, in addition to the built-in
	// ones.
	Patterns []string `json:"out_of_memory_patterns,omitempty"`
	// Delay is the time before the second attempt, which doubles with each further one; nil means
	// [DefaultRestartDelay].
	Delay *Duration `json:"delay,omitempty"`
}

// Defaults of a retry.
const (
	// DefaultSweepAttempts is one: a trial that diverges diverges again.
	DefaultSweepAttempts = 1
	DefaultOutOfMemory   = 5
)

// SweepOnFailure says what happens to a sweep after some of its runs have failed.
type SweepOnFailure struct {
	// After is the number of failed runs.
	After int       `json:"after"`
	Then  SweepThen `json:"then,omitempty"`
}

// SweepThen is what happens to a sweep with too many failed runs.
type SweepThen string

// What can happen to the sweep.
const (
	// SweepStop cancels all runs that have not ended. It is the default.
	SweepStop SweepThen = "stop"
	// SweepDrain cancels waiting runs and lets running ones finish.
	SweepDrain SweepThen = "drain"
)

// SweepThens lists the valid values.
var SweepThens = []SweepThen{SweepStop, SweepDrain}

// Objective is a number that runs write to their logs, by which they are compared.
type Objective struct {
	// Pattern is a regular expression with one group, the number. The last matching line counts.
	Pattern string `json:"pattern"`
	// Goal defaults to [GoalMaximise].
	Goal Goal `json:"goal,omitempty"`
}

// Goal says which of two numbers is better.
type Goal string

// The goals.
const (
	GoalMaximise Goal = "maximise"
	GoalMinimise Goal = "minimise"
)

// Goals lists the valid values.
var Goals = []Goal{GoalMaximise, GoalMinimise}

// SweepWaitFor says what ends an apply of a sweep.
type SweepWaitFor string

// What an apply can wait for.
const (
	// WaitAccepted: the sweep is stored, and the controller starts its runs.
	WaitAccepted SweepWaitFor = "accepted"
	// WaitEnded: every run has ended, and succeeded.
	WaitEnded SweepWaitFor = "completed"
)

// SweepWaitFors lists the valid values.
var SweepWaitFors = []SweepWaitFor{WaitAccepted, WaitEnded}

// Rerun says which ended runs start over when the sweep changes. A run whose own environment changed always does.
type Rerun string

// The rerun rules.
const (
	// RerunChanged: all, if what they run has changed, such as the image. It is the default.
	RerunChanged Rerun = "changed"
	// RerunFailed: those that did not succeed, if what they run or need, or a trigger, has changed.
	RerunFailed Rerun = "failed"
	// RerunAll: all, if what they run, or a trigger, has changed.
	RerunAll Rerun = "all"
)

// Reruns lists the valid values.
var Reruns = []Rerun{RerunChanged, RerunFailed, RerunAll}

// RunSpec is what belongs to one run alone. Everything else is its sweep's.
type RunSpec struct {
	Key string
	Env map[string]string
	// Config is the content of its file; empty means none.
	Config string
}

// Run returns what belongs to the run with this key alone.
func (s Sweep) Run(key string) RunSpec { return RunSpec{key, s.Runs[key], s.Config[key]} }

// Keys returns the keys of the runs, sorted.
func (s Sweep) Keys() []string { return slices.Sorted(maps.Keys(s.Runs)) }

// Equal reports whether two specifications are stored as the same document.
func (s Sweep) Equal(other Sweep) bool {
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Attempts returns how often a run may fail before it has failed for good; 0 means no limit.
func (s Sweep) Attempts() int {
	if s.Retry.MaxAttempts != nil {
		return *s.Retry.MaxAttempts
	}
	return DefaultSweepAttempts
}

// OutOfMemoryAttempts returns how often a run may run out of GPU memory before it has failed for good.
func (s Sweep) OutOfMemoryAttempts() int {
	if s.Retry.OutOfMemory != nil {
		return *s.Retry.OutOfMemory
	}
	return DefaultOutOfMemory
}

// FinalExitCodes returns the exit codes after which a run is not started again.
func (s Sweep) FinalExitCodes() ExitCodes {
	if s.ExitCodes != nil {
		return s.ExitCodes.Final
	}
	return DefaultFinalExitCodes
}

// Reserve returns the fraction of a device's memory that has to stay free in addition to a run's memory, from 0 to
// below 1.
func (a Admission) Reserve() float64 {
	if a.ReservePercent != nil {
		return *a.ReservePercent / 100
	}
	return DefaultReservePercent / 100
}

// Better reports whether a is better than b for the objective's goal.
func (o Objective) Better(a, b float64) bool {
	if cmp.Or(o.Goal, GoalMaximise) == GoalMinimise {
		return a < b
	}
	return a > b
}
