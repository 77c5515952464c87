package domain

import (
	"fmt"
	"slices"
	"time"
)

// ScalingHooks are the user's hooks, called for members that a policy is about to remove or has added.
type ScalingHooks struct {
	// BeforeRemoval is called before members are removed. They stay unless it succeeds.
	BeforeRemoval *ScalingHook `json:"before_removal,omitempty"`
	// AfterAddition is called once added members run. They stay whatever its result.
	AfterAddition *ScalingHook `json:"after_addition,omitempty"`
}

// MaxScalingHookTimeout bounds hooks that may work in the background, such as one that moves data off leaving members.
const MaxScalingHookTimeout = 7 * 24 * time.Hour

func (h ScalingHooks) validate(ps *Problems, at Path) {
	for _, moment := range HookMoments {
		if hook := h.At(moment); hook != nil {
			hook.validate(ps, at.At(string(moment)), MaxScalingHookTimeout, shown)
		}
	}
}

// At returns the hook for a moment; nil if there is none.
func (h ScalingHooks) At(moment HookMoment) *ScalingHook {
	if moment == BeforeRemoval {
		return h.BeforeRemoval
	}
	return h.AfterAddition
}

// HookMoment is when a hook of a policy is called, named after its attribute.
type HookMoment string

// The moments of hooks.
const (
	BeforeRemoval HookMoment = "before_removal"
	AfterAddition HookMoment = "after_addition"
)

// HookMoments lists the moments.
var HookMoments = []HookMoment{BeforeRemoval, AfterAddition}

// HookCall is a change of a count for which a hook is called, kept until the hook is done.
type HookCall struct {
	// ID identifies the change. It stays the same however often the hook is called, and whoever calls it.
	ID     string     `json:"id"`
	Moment HookMoment `json:"moment"`
	// At is when the change was decided, and Why the reason, in words.
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Why  string    `json:"why,omitempty"`
	// Members are the members that the hook is called for; empty if the engine chooses them. Remove lists the members
	// to remove, in order, including any that do not exist at the moment.
	Members []string `json:"members,omitempty"`
	Remove  []string `json:"remove,omitempty"`
	// Carried reports whether the change was carried out.
	Carried bool `json:"carried,omitempty"`
	// Called is when the hook was first called; zero if it has not been called yet. Its timeout counts from then.
	Called time.Time `json:"told,omitzero"`
	// Location is the status URL that the hook returned, if any, and Progress what was read there.
	Location string `json:"location,omitempty"`
	Progress string `json:"progress,omitempty"`
}

// AtWork reports whether the hook was called and is not done yet.
func (c HookCall) AtWork() bool { return !c.Called.IsZero() }

// String describes the state of the hook.
func (c HookCall) String() string {
	text := fmt.Sprintf("hook %s is %s change %s, %d → %d", c.Moment,
		map[bool]string{true: "running for", false: "yet to be called for"}[c.AtWork()], c.ID, c.From, c.To)
	if c.Progress != "" {
		text += ": " + c.Progress
	}
	return text
}

// Same reports whether two calls are for the same change, whenever it was decided.
func (c HookCall) Same(other HookCall) bool {
	return c.Moment == other.Moment && c.From == other.From && c.To == other.To &&
		slices.Equal(c.Members, other.Members) && slices.Equal(c.Remove, other.Remove)
}

// HookCallsDocument is what is stored with the cluster about the hooks of a policy that are at work. The controller
// writes it.
type HookCallsDocument struct {
	Header
	// Policy is the policy's key.
	Policy string `json:"policy"`
	// Calls are the calls that are not done yet, oldest first.
	Calls []HookCall `json:"calls,omitempty"`
}

// hookCallsKind is read when a policy is inspected, and not watched: the controller itself writes it.
var hookCallsKind = Kind{Name: "hook-calls", Noun: "running hooks of autoscaling policy"}

// Kind returns hookCallsKind.
func (*HookCallsDocument) Kind() Kind { return hookCallsKind }

// Key returns the policy's key.
func (d *HookCallsDocument) Key() string { return d.Policy }
