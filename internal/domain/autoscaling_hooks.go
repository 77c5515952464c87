package domain

import (
	"fmt"
	"slices"
	"time"
)

// ScalingHooks are of the user's, and are told of members that a policy is about to remove, or has added.
type ScalingHooks struct {
	// BeforeRemoval is told of members before they go. They stay unless it succeeds.
	BeforeRemoval *ScalingHook `json:"before_removal,omitempty"`
	// AfterAddition is told of members once they run. They stay whatever comes of it.
	AfterAddition *ScalingHook `json:"after_addition,omitempty"`
}

// MaxScalingHookTimeout bounds hooks that may be at work in the background, such as one that moves data from the
// members that go.
const MaxScalingHookTimeout = 7 * 24 * time.Hour

func (h ScalingHooks) validate(ps *Problems, at Path) {
	for _, moment := range HookMoments {
		if hook := h.At(moment); hook != nil {
			hook.validate(ps, at.At(string(moment)), MaxScalingHookTimeout)
		}
	}
}

// At is the hook of a moment; nil where there is none.
func (h ScalingHooks) At(moment HookMoment) *ScalingHook {
	if moment == BeforeRemoval {
		return h.BeforeRemoval
	}
	return h.AfterAddition
}

// HookMoment is when a hook of a policy is told, by the name of its attribute.
type HookMoment string

// The moments of hooks.
const (
	BeforeRemoval HookMoment = "before_removal"
	AfterAddition HookMoment = "after_addition"
)

// HookMoments lists the moments.
var HookMoments = []HookMoment{BeforeRemoval, AfterAddition}

// HookCall is a change of a count of which a hook is told, until that has come to its end.
type HookCall struct {
	// ID identifies the change: it stays the same however often the hook is told, and whoever does.
	ID     string     `json:"id"`
	Moment HookMoment `json:"moment"`
	// At is when the change was decided, and Why says in words why.
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Why  string    `json:"why,omitempty"`
	// Members are those that the hook is told of; none where the engine chooses them. Remove are those that go, in
	// their order, which are more where some are not there.
	Members []string `json:"members,omitempty"`
	Remove  []string `json:"remove,omitempty"`
	// Carried tells that the change was carried out.
	Carried bool `json:"carried,omitempty"`
	// Told is when the hook was told first, and the zero time where it has yet to be. Its limit counts from there.
	Told time.Time `json:"told,omitzero"`
	// Location is the address that tells how it gets on, where the hook has named one, and Progress what it says of
	// that.
	Location string `json:"location,omitempty"`
	Progress string `json:"progress,omitempty"`
}

// AtWork reports whether the hook was told, and has not come to its end.
func (c HookCall) AtWork() bool { return !c.Told.IsZero() }

// String says how the hook gets on.
func (c HookCall) String() string {
	said := fmt.Sprintf("hook %s is %s change %s, %d → %d", c.Moment, map[bool]string{true: "at work on", false: "to be told of"}[c.AtWork()], c.ID, c.From, c.To)
	if c.Progress != "" {
		said += ": " + c.Progress
	}
	return said
}

// Same reports whether two calls are about the same change, whenever that was decided.
func (c HookCall) Same(other HookCall) bool {
	return c.Moment == other.Moment && c.From == other.From && c.To == other.To && slices.Equal(c.Members, other.Members) && slices.Equal(c.Remove, other.Remove)
}

// HookCallsDocument is what is stored with the cluster of the hooks of a policy that are at work. Its controller writes
// it.
type HookCallsDocument struct {
	Header
	// Policy is the policy's key.
	Policy string `json:"policy"`
	// Calls are those that have not come to their end, the oldest first.
	Calls []HookCall `json:"calls,omitempty"`
}

// hookCallsKind is read by those who look at a policy, and wakes nobody: the controller itself writes it.
var hookCallsKind = Kind{Name: "hook-calls", Noun: "hooks at work of autoscaling policy"}

// Kind is the same for all of them.
func (*HookCallsDocument) Kind() Kind { return hookCallsKind }

// Key returns the policy's key.
func (d *HookCallsDocument) Key() string { return d.Policy }
