package domain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// RoomRequest is stored while the apply of a group, or a sweep with runs, waits for room that roles of lower priority
// can yield.
type RoomRequest struct {
	Header
	// Spec is the group to place. For a sweep, it is a group of the same name whose only role, [WaitingRuns], has one
	// replica for each waiting run.
	Spec Group `json:"spec"`
	// Sweep is true for a sweep. A sweep gets room for as many of its runs as possible, a group for all of its members
	// or none.
	Sweep bool `json:"sweep,omitempty"`
	// Most limits how many of the runs a host or device takes, by name or UUID. Those not listed take as many as fit.
	Most map[string]int `json:"most,omitempty"`
	// Since is when it began to wait, or when the sweep was created. Among requests of equal priority, the oldest comes
	// first.
	Since time.Time `json:"since"`
	// Answer is the controller's answer, in words.
	Answer string `json:"answer,omitempty"`
}

// RoomRequestKind is the kind of [RoomRequest].
var RoomRequestKind = Kind{Name: "room-request", Noun: "request for room", Planned: true, Watched: true}

// Kind returns [RoomRequestKind].
func (*RoomRequest) Kind() Kind { return RoomRequestKind }

// Key returns the name of the group.
func (r *RoomRequest) Key() string { return r.Spec.Name }

// What names what is waiting, such as group "mnist".
func (r RoomRequest) What() string {
	if r.Sweep {
		return fmt.Sprintf("sweep %q", r.Spec.Name)
	}
	return fmt.Sprintf("group %q", r.Spec.Name)
}

// WaitingRuns is the role of a sweep's waiting runs. No run can have it as its key.
const WaitingRuns = "waiting runs"

// Runs returns how many runs of a sweep wait.
func (r RoomRequest) Runs() int { return *r.Spec.Roles[WaitingRuns].Replicas }

// WithRuns returns the request of a sweep with this number of runs.
func (r RoomRequest) WithRuns(n int) RoomRequest {
	role := r.Spec.Roles[WaitingRuns]
	role.Replicas = &n
	r.Spec.Roles = map[string]Role{WaitingRuns: role}
	return r
}

// Asks reports whether another request asks for the same.
func (r RoomRequest) Asks(other RoomRequest) bool {
	return r.Sweep == other.Sweep && r.Since.Equal(other.Since) && r.Spec.Equal(other.Spec) &&
		maps.Equal(r.Most, other.Most)
}

// InTurn returns requests in the order in which they are served: by priority, then by age.
func InTurn(requests map[string]RoomRequest) []RoomRequest {
	turn := make([]RoomRequest, 0, len(requests))
	for _, r := range requests {
		turn = append(turn, r)
	}
	slices.SortFunc(turn, RoomRequest.Turn)
	return turn
}

// Turn compares two requests by their order of service; it is negative if r is served first.
func (r RoomRequest) Turn(other RoomRequest) int {
	return cmp.Or(cmp.Compare(other.Spec.Priority, r.Spec.Priority), r.Since.Compare(other.Since),
		cmp.Compare(r.Spec.Name, other.Spec.Name))
}
