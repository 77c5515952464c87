package domain

import "time"

// DocumentVersion is the version of the stored documents that this build reads and writes.
const DocumentVersion = 1

// Header is what all stored documents begin with.
type Header struct {
	Version int `json:"version"`
	// Revision counts the writes. A write on top of a revision that is not the stored one is a conflict. It is kept
	// beside the document.
	Revision int `json:"-"`
}

// Head returns the header itself.
func (h *Header) Head() *Header { return h }

// Document is what is stored with a cluster as JSON.
type Document[T any] interface {
	*T
	Head() *Header
	// Kind is the same for all documents of a type, also for the zero one.
	Kind() Kind
	// Key is the document's name within its kind.
	Key() string
}

// GroupDocument is what is stored with the cluster about a group: the specification as Terraform wrote it,
// and what was decided for it.
type GroupDocument struct {
	Header
	// Applying is true from the first write of an apply until its members ran: where it is true and nobody holds
	// the group's lock, an apply died or failed, and the next one takes over.
	Applying bool  `json:"applying,omitempty"`
	Spec     Group `json:"spec"`
	// Counts are the numbers of members by role; they are Spec's, but for roles whose count is unmanaged.
	Counts map[string]int `json:"counts"`
	// Absent are the indexes, in ascending order, that members of a role don't have, though higher ones do: a policy
	// has removed those.
	Absent map[string][]int `json:"absent,omitempty"`
	// Scaled are the last changes of counts by policies, by role. Scaling is true from the write of such a change until
	// its members were started or removed: where it is true and nobody holds the group's lock, the controller died.
	Scaled  map[string]Scaled `json:"scaled,omitempty"`
	Scaling bool              `json:"scaling,omitempty"`
	// Sizes are what members of roles request that are started, where a policy has moved that.
	Sizes map[string]Size `json:"sizes,omitempty"`
	// MinRun is the revision from which on members must have been started: it rises with a rerun (changed
	// triggers) and with a restart of the whole group.
	MinRun int `json:"min_run"`
	// GroupRestarts counts the restarts of the whole group since the last rerun (restart scope "group"), and
	// StartedAt is when it was first started, where it has been restarted: the deadline counts from there.
	GroupRestarts int        `json:"group_restarts,omitempty"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	// Assignments are the hosts and ports of the members by name.
	Assignments map[string]Assignment `json:"assignments"`
	// Before is the last document under which all members ran, while an apply is under way that may go back to it.
	Before *GroupDocument `json:"before,omitempty"`
}

// Kind returns [GroupKind].
func (*GroupDocument) Kind() Kind { return GroupKind }

// Key returns the group's name.
func (d *GroupDocument) Key() string { return d.Spec.Name }

// Rerun makes every member start again, as if for the first time, with the next write of the document.
func (d *GroupDocument) Rerun() {
	d.MinRun = d.Revision + 1
	d.GroupRestarts, d.StartedAt = 0, nil
}

// Restart makes every member start again with the next write, as another attempt of a run that started then.
func (d *GroupDocument) Restart(started time.Time) {
	d.Resume(started)
	d.GroupRestarts++
}

// Resume makes every member start again with the next write, in the present attempt of a run that started then.
func (d *GroupDocument) Resume(started time.Time) {
	d.MinRun = d.Revision + 1
	d.StartedAt = &started
}

// ClusterDocument is what is stored about a cluster.
type ClusterDocument struct {
	Header
	Spec Cluster `json:"spec"`
}

// Kind returns [ClusterKind].
func (*ClusterDocument) Kind() Kind { return ClusterKind }

// Key is empty: a store is of one cluster.
func (*ClusterDocument) Key() string { return "" }
