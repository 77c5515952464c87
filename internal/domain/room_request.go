package domain

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// RoomRequest is stored while the apply of a group waits for room that roles of lower priority can give.
type RoomRequest struct {
	Header
	// Spec is the group as it is to be.
	Spec Group `json:"spec"`
	// Since is when it began to wait: of two of one priority, the older one comes first.
	Since time.Time `json:"since"`
	// Answer is what the controller says about it, in words.
	Answer string `json:"answer,omitempty"`
}

// RoomRequestKind is that of [RoomRequest].
var RoomRequestKind = Kind{Name: "room-request", Noun: "request for room", Planned: true, Watched: true}

// Kind returns [RoomRequestKind].
func (*RoomRequest) Kind() Kind { return RoomRequestKind }

// Key returns the name of the group.
func (r *RoomRequest) Key() string { return r.Spec.Name }

// What names what waits, such as group "mnist".
func (r RoomRequest) What() string {
	return fmt.Sprintf("group %q", r.Spec.Name)
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

// Turn is below 0 where a request is served before another one.
func (r RoomRequest) Turn(other RoomRequest) int {
	return cmp.Or(cmp.Compare(other.Spec.Priority, r.Spec.Priority), r.Since.Compare(other.Since), cmp.Compare(r.Spec.Name, other.Spec.Name))
}
