package domain

import "time"

// SweepDocument is what is stored with the cluster about a sweep, as Terraform wrote it. The controller keeps the state
// of its runs elsewhere.
type SweepDocument struct {
	Header
	// Spec has no runs: they are in the chunks.
	Spec Sweep `json:"spec"`
	// Chunks are the names of the documents that hold the runs, within the sweep, ordered by key.
	Chunks []string `json:"chunks"`
	// Count is the number of runs.
	Count int `json:"count"`
	// ID distinguishes the sweep from earlier ones with the same name.
	ID string `json:"id"`
	// By names who created it.
	By string `json:"by,omitempty"`
	// Since is when the sweep was created. Among sweeps of equal priority, the oldest starts its runs first.
	Since time.Time `json:"since"`
	// MinRun is the revision from which on runs must have been queued; older ones start over. MinFailed is the same for
	// runs that did not succeed.
	MinRun    int `json:"min_run"`
	MinFailed int `json:"min_failed,omitempty"`
	// Anew is the same for single runs, by key: those whose results were lost.
	Anew map[string]int `json:"anew,omitempty"`
	// Ending is true while the sweep is being destroyed. None of its runs is started.
	Ending bool `json:"ending,omitempty"`
}

// SweepKind is the kind of sweeps. It is watched, as whoever changes a sweep waits to see the effect.
var SweepKind = Kind{Name: "sweep", Noun: "sweep", Planned: true, Watched: true}

// Kind returns [SweepKind].
func (*SweepDocument) Kind() Kind { return SweepKind }

// Key returns the sweep's name.
func (d *SweepDocument) Key() string { return d.Spec.Name }

// SweepRuns are some of a sweep's runs. The document is named by its content, and never changes.
type SweepRuns struct {
	Header
	Sweep string                       `json:"sweep"`
	Name  string                       `json:"name"`
	Runs  map[string]map[string]string `json:"runs"`
	// Config is that of these runs.
	Config map[string]string `json:"config,omitempty"`
}

// SweepRunsKind is the kind of [SweepRuns]. They are read only where their sweep is needed.
var SweepRunsKind = Kind{Name: "sweep-runs", Noun: "runs of sweep"}

// Kind returns [SweepRunsKind].
func (*SweepRuns) Kind() Kind { return SweepRunsKind }

// Key returns the names of the sweep and of the chunk.
func (r *SweepRuns) Key() string { return r.Sweep + "/" + r.Name }

// SweepRequest asks for a change of one run. It is stored until the controller has handled it.
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
	// WishPause halts a run, or keeps a waiting one from starting. WishResume undoes that, or a cancellation.
	WishPause  RunWish = "pause"
	WishResume RunWish = "resume"
	// WishCancel ends a run.
	WishCancel RunWish = "cancel"
)

// SweepRequestKind is the kind of requests. It is watched, as the requester waits; requests are few, so plans read them
// with everything else.
var SweepRequestKind = Kind{Name: "sweep-request", Noun: "request about run", Planned: true, Watched: true}

// Kind returns [SweepRequestKind].
func (*SweepRequest) Kind() Kind { return SweepRequestKind }

// Key returns the names of the sweep and of the run.
func (r *SweepRequest) Key() string { return r.Sweep + "/" + r.Run }

// SweepRecord is the state of some of a sweep's runs, by key. Only the controller writes it.
type SweepRecord struct {
	Header
	Sweep string `json:"sweep"`
	Part  string `json:"part"`
	// ID is the sweep's. A record of an earlier sweep with the same name is ignored.
	ID   string         `json:"id"`
	Runs map[string]Run `json:"runs"`
}

// SweepRecordKind is the kind of [SweepRecord].
var SweepRecordKind = Kind{Name: "sweep-record", Noun: "record of sweep"}

// Kind returns [SweepRecordKind].
func (*SweepRecord) Kind() Kind { return SweepRecordKind }

// Key returns the names of the sweep and of the part.
func (r *SweepRecord) Key() string { return r.Sweep + "/" + r.Part }
