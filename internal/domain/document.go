package domain

import "time"

// DocumentVersion is the version of the stored documents that this build reads and writes.
const DocumentVersion = 1

// Header is what all stored documents begin with.
type Header struct {
	Version int `json:"version"`
	// Revision counts the writes. A write based on a revision other than the stored one is a conflict. It is stored
	// alongside the document.
	Revision int `json:"-"`
}

// Head returns the header itself.
func (h *Header) Head() *Header { return h }

// Document is what is stored with a cluster as JSON.
type Document[T any] interface {
	*T
	Head() *Header
	// Kind is the same for all documents of a type, even the zero value.
	Kind() Kind
	// Key is the document's name within its kind.
	Key() string
}

// GroupDocument is what is stored with the cluster about a group: the specification as Terraform wrote it, and what was
// decided for it.
type GroupDocument struct {
	Header
	// Applying is true from the first write of an apply until its members have run. If it is true and nobody holds the
	// group's lock, an apply died or failed, and the next one takes over.
	Applying bool  `json:"applying,omitempty"`
	Spec     Group `json:"spec"`
	// Counts are the numbers of members by role, as in Spec except for roles whose count is unmanaged.
	Counts map[string]int `json:"counts"`
	// Absent lists, by role and in ascending order, the indexes that a policy removed although higher ones still exist.
	Absent map[string][]int `json:"absent,omitempty"`
	// Scaled is the last change of each role's count by a policy. Scaling is true from the write of such a change until
	// its members were started or removed; if it is true and nobody holds the group's lock, the controller died.
	Scaled  map[string]Scaled `json:"scaled,omitempty"`
	Scaling bool              `json:"scaling,omitempty"`
	// Sizes are what newly started members request, by role, where a policy has changed that.
	Sizes map[string]Size `json:"sizes,omitempty"`
	// MinRun is the run from which on members must have been started. A rerun (changed triggers) and a restart of the
	// whole group raise it.
	MinRun int `json:"min_run"`
	// EarlierRuns is the highest run of the members that were there before the document, as after an earlier document
	// was lost. Runs count on from there.
	EarlierRuns int `json:"earlier_runs,omitempty"`
	// GroupRestarts counts the restarts of the whole group since the last rerun (restart scope "group"). StartedAt is
	// the first start of a group that has been restarted; the deadline counts from there.
	GroupRestarts int        `json:"group_restarts,omitempty"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	// Assignments are the hosts and ports of the members by name.
	Assignments map[string]Assignment `json:"assignments"`
	// Before is the last document under which all members ran, kept during an apply that may roll back to it.
	Before *GroupDocument `json:"before,omitempty"`
}

// Kind returns [GroupKind].
func (*GroupDocument) Kind() Kind { return GroupKind }

// Key returns the group's name.
func (d *GroupDocument) Key() string { return d.Spec.Name }

// Run returns the run of members that start under this revision of the document.
func (d *GroupDocument) Run() int { return d.EarlierRuns + d.Revision }

// Rerun makes every member start again with the next write of the document, as if for the first time.
func (d *GroupDocument) Rerun() {
	d.MinRun = d.Run() + 1
	d.GroupRestarts, d.StartedAt = 0, nil
}

// Restart makes every member start again with the next write, as a new attempt of the run that began at started.
func (d *GroupDocument) Restart(started time.Time) {
	d.Resume(started)
	d.GroupRestarts++
}

// Resume makes every member start again with the next write, within the present attempt of the run that began at
// started.
func (d *GroupDocument) Resume(started time.Time) {
	d.MinRun = d.Run() + 1
	d.StartedAt = &started
}

// ClusterDocument is what is stored about a cluster.
type ClusterDocument struct {
	Header
	Spec Cluster `json:"spec"`
}

// Kind returns [ClusterKind].
func (*ClusterDocument) Kind() Kind { return ClusterKind }

// Key is empty, as a store belongs to one cluster.
func (*ClusterDocument) Key() string { return "" }
