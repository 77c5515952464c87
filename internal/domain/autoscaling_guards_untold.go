package domain

import (
	"fmt"
	"strings"
	"time"
)

// UntoldGuard is a guard that has never had a value since it is asked.
type UntoldGuard struct {
	// Name is as in [GuardQuestion], and What what it asks, in words.
	Name string `json:"name"`
	What string `json:"what"`
	// Since is when it was asked first, and Why says why there was no value by the time that this was stored.
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// String says so, and what to do.
func (g UntoldGuard) String() string {
	check, known := map[string]string{GuardBusyPrometheus: "its query", GuardBusyHTTP: "its address and path"}[g.Name]
	if !known {
		check = "its query, or its address and path"
	}
	return fmt.Sprintf("asked since %s, it has never had a value, and no member is removed meanwhile: %s. Check %s", g.Since.Format(time.RFC3339), g.Why, check)
}

// UntoldGuardsDocument is what is stored with the cluster of the guards of a policy that have never had a value. Its
// controller writes it once they have been asked for a while, so that nobody is warned of what is about to start.
type UntoldGuardsDocument struct {
	Header
	// Policy is the policy's key.
	Policy string        `json:"policy"`
	Guards []UntoldGuard `json:"guards,omitempty"`
}

// UntoldGuardsKind is that of [UntoldGuardsDocument]. Plans warn of them.
var UntoldGuardsKind = Kind{Name: "untold-guards", Noun: "guards without a value of autoscaling policy", Planned: true}

// Kind returns [UntoldGuardsKind].
func (*UntoldGuardsDocument) Kind() Kind { return UntoldGuardsKind }

// Key returns the policy's key.
func (d *UntoldGuardsDocument) Key() string { return d.Policy }

// Warnings are those of the guards that the policy has by now: one that asks something else is another one.
func (d *UntoldGuardsDocument) Warnings(policy AutoscalingPolicy) (warnings Problems) {
	for _, asked := range policy.Guards.Questions() {
		for _, g := range d.Guards {
			if g.Name != asked.Name || g.What != asked.What {
				continue
			}
			at := Path{"guards"}
			for name := range strings.SplitSeq(g.Name, ".") {
				at = at.At(name)
			}
			warnings = append(warnings, Problem{
				Path: at, Warning: true, Summary: fmt.Sprintf("Guard of autoscaling policy %q has never had a value", policy.Key()), Detail: g.String(),
			})
		}
	}
	return warnings
}
