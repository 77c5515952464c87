package domain

// SweepLog is the end of what the last attempt of a run wrote, kept when its member is removed.
type SweepLog struct {
	Header
	Sweep string `json:"sweep"`
	Run   string `json:"run"`
	// ID is the sweep's.
	ID    string   `json:"id"`
	Lines []string `json:"lines"`
}

// SweepLogKind is the kind of [SweepLog].
var SweepLogKind = Kind{Name: "sweep-log", Noun: "log of run"}

// Kind returns [SweepLogKind].
func (*SweepLog) Kind() Kind { return SweepLogKind }

// Key returns the names of the sweep and of the run.
func (l *SweepLog) Key() string { return l.Sweep + "/" + l.Run }
