package domain

import "time"

// SweepDocument is what is stored with the cluster about a sweep, as Terraform wrote it. What has become of its runs is
// kept by the controller, elsewhere.
type SweepDocument struct {
	Header
	// Spec has no runs of its own: they are in the chunks.
	Spec Sweep `json:"spec"`
	// Chunks are the names of the documents that hold the runs, within the sweep, in the order of the keys.
	Chunks []string `json:"chunks"`
	// Count is the number of runs.
	Count int `json:"count"`
	// ID tells the sweep from others that had its name.
	ID string `json:"id"`
	// By names who created it.
	By string `json:"by,omitempty"`
	// Since is when the sweep was created: of two of one priority, the older one starts its runs first.
	Since time.Time `json:"since"`
	// MinRun is the revision from which on runs must have been queued: the others start anew. MinFailed is that for
	// those that did not succeed.
	MinRun    int `json:"min_run"`
	MinFailed int `json:"min_failed,omitempty"`
	// Anew is that for single runs, by their keys: those whose results were lost.
	Anew map[string]int `json:"anew,omitempty"`
	// Ending is true while the sweep is destroyed: none of its runs is started.
	Ending bool `json:"ending,omitempty"`
}

// SweepKind is that of sweeps. It is watched: who changes a sweep wants to see what comes of it.
var SweepKind = Kind{Name: "sweep", Noun: "sweep", Planned: true, Watched: true}

// Kind returns [SweepKind].
func (*SweepDocument) Kind() Kind { return SweepKind }

// Key returns the sweep's name.
func (d *SweepDocument) Key() string { return d.Spec.Name }

// SweepRuns are some of a sweep's runs. Their document is named by what it holds, and never changed.
type SweepRuns struct {
	Header
	Sweep string                       `json:"sweep"`
	Name  string                       `json:"name"`
	Runs  map[string]map[string]string `json:"runs"`
	// Config is that of these runs.
	Config map[string]string `json:"config,omitempty"`
}

// SweepRunsKind is that of the runs of sweeps. They are read by those who are about their sweep.
var SweepRunsKind = Kind{Name: "sweep-runs", Noun: "runs of sweep"}

// Kind returns [SweepRunsKind].
func (*SweepRuns) Kind() Kind { return SweepRunsKind }

// Key returns the names of the sweep and of the chunk.
func (r *SweepRuns) Key() string { return r.Sweep + "/" + r.Name }

// SweepRequest is what somebody wants of a run, until the controller has seen to it.
type SweepRequest struct {
	Header
	Sweep string `json:"sweep"`
	Run   string `json:"run"`
	// ID is the sweep's.
	ID   string  `json:"id"`
	Want RunWish `json:"want"`
	// By names who asked.
	By string `json:"by"`
}

// RunWish is what can be asked for a run.
type RunWish string

// The wishes.
const (
	// WishPause halts a run, or keeps one that waits from starting, and WishResume takes that back, or a cancellation.
	WishPause  RunWish = "pause"
	WishResume RunWish = "resume"
	// WishCancel ends a run.
	WishCancel RunWish = "cancel"
)

// SweepRequestKind is that of requests. It is watched: who asks waits. They are few, and read with what plans read.
var SweepRequestKind = Kind{Name: "sweep-request", Noun: "request about run", Planned: true, Watched: true}

// Kind returns [SweepRequestKind].
func (*SweepRequest) Kind() Kind { return SweepRequestKind }

// Key returns the names of the sweep and of the run.
func (r *SweepRequest) Key() string { return r.Sweep + "/" + r.Run }

// SweepRecord is what is remembered of some of a sweep's runs, by their keys. Only the controller writes it.
type SweepRecord struct {
	Header
	Sweep string `json:"sweep"`
	Part  string `json:"part"`
	// ID is the sweep's: what is remembered of one that had its name counts for nothing.
	ID   string         `json:"id"`
	Runs map[string]Run `json:"runs"`
}

// SweepRecordKind is that of what is remembered of runs.
var SweepRecordKind = Kind{Name: "sweep-record", Noun: "record of sweep"}

// Kind returns [SweepRecordKind].
func (*SweepRecord) Kind() Kind { return SweepRecordKind }

// Key returns the name of the sweep and the part's.
func (r *SweepRecord) Key() string { return r.Sweep + "/" + r.Part }
