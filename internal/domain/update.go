package domain

import (
	"time"
)

// Update says how a changed specification is rolled out to the running members of a role.
type Update struct {
	// Parallelism is the number of members that are changed at a time; 0 changes all at once.
	Parallelism int `json:"parallelism,omitempty"`
	// Delay is the time between the start of some members and the change of the next.
	Delay *Duration `json:"delay,omitempty"`
	// OnFailure defaults to UpdatePause.
	OnFailure OnFailure `json:"on_failure,omitempty"`
}

// normal returns the canonical form of the update. It omits defaults, as most members have none.
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

// Wait returns the delay; 0 if there is none.
func (u Update) Wait() time.Duration {
	if u.Delay == nil {
		return 0
	}
	return time.Duration(*u.Delay)
}

// OnFailure says what happens to a rollout when a member fails during it.
type OnFailure string

// What can happen to a rollout.
const (
	// UpdatePause leaves the other members as they are.
	UpdatePause OnFailure = "pause"
	// UpdateContinue changes the other members anyway.
	UpdateContinue OnFailure = "continue"
	// UpdateRollback restores the whole group to its previous specification.
	UpdateRollback OnFailure = "rollback"
)

// OnFailures lists the valid values.
var OnFailures = []OnFailure{UpdatePause, UpdateContinue, UpdateRollback}
