package domain

import (
	"time"
)

// Update says how another specification comes to the members of a role that run.
type Update struct {
	// Parallelism is the number of members that are changed at a time; 0 changes all at once.
	Parallelism int `json:"parallelism,omitempty"`
	// Delay is the time between the start of some members and the change of the next.
	Delay *Duration `json:"delay,omitempty"`
	// OnFailure is UpdatePause where it is empty.
	OnFailure OnFailure `json:"on_failure,omitempty"`
}

// normal returns the update in the one form of all that mean the same: most members have none, so that defaults are
// left out.
func (u Update) normal() Update {
	if u.OnFailure == UpdatePause {
		u.OnFailure = ""
	}
	if u.Delay != nil && *u.Delay == 0 {
		u.Delay = nil
	}
	return u
}

// Equal reports whether two updates mean the same.
func (u Update) Equal(other Update) bool {
	a, b := u.normal(), other.normal()
	return a.Parallelism == b.Parallelism && a.OnFailure == b.OnFailure && a.Wait() == b.Wait()
}

// Wait returns the delay, 0 where there is none.
func (u Update) Wait() time.Duration {
	if u.Delay == nil {
		return 0
	}
	return time.Duration(*u.Delay)
}

// OnFailure says what becomes of a change when a member fails with it.
type OnFailure string

// What may become of a change.
const (
	// UpdatePause leaves the other members as they are.
	UpdatePause OnFailure = "pause"
	// UpdateContinue changes the other members all the same.
	UpdateContinue OnFailure = "continue"
	// UpdateRollback has the whole group be again what it was before.
	UpdateRollback OnFailure = "rollback"
)

// OnFailures lists what an update may name.
var OnFailures = []OnFailure{UpdatePause, UpdateContinue, UpdateRollback}
