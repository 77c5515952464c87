package domain

import (
	"fmt"
	"strings"
	"time"
)

// SilentGuard is a guard whose source has never returned a value.
type SilentGuard struct {
	// Name is as in [GuardQuestion]. What describes in words what it asks.
	Name string `json:"name"`
	What string `json:"what"`
	// Since is when it was first asked. Why is the reason why there was still no value when this was stored.
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// String describes the guard and what to do about it.
func (g SilentGuard) String() string {
	check, known := map[string]string{GuardBusyPrometheus: "its query", GuardBusyHTTP: "its URL and path"}[g.Name]
	if !known {
		check = "its query, or its URL and path"
	}
	return fmt.Sprintf("queried since %s, it has never had a value, so no members are removed: %s. Check %s",
		g.Since.Format(time.RFC3339), g.Why, check)
}

// SilentGuardsDocument is what is stored with the cluster about guards of a policy that have never had a value. The
// controller writes it only after asking for a while, so that a source that is still starting causes no warning.
type SilentGuardsDocument struct {
	Header
	// Policy is the policy's key.
	Policy string        `json:"policy"`
	Guards []SilentGuard `json:"guards,omitempty"`
}

// SilentGuardsKind is the kind of [SilentGuardsDocument]. Plans warn about these guards.
var SilentGuardsKind = Kind{Name: "untold-guards", Noun: "silent guards of autoscaling policy", Planned: true}

// Kind returns [SilentGuardsKind].
func (*SilentGuardsDocument) Kind() Kind { return SilentGuardsKind }

// Key returns the policy's key.
func (d *SilentGuardsDocument) Key() string { return d.Policy }

// Warnings returns warnings for the guards that the policy still has. A guard that now asks something else is a
// different guard.
func (d *SilentGuardsDocument) Warnings(policy AutoscalingPolicy) (warnings Problems) {
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
				Path: at, Warning: true,
				Summary: fmt.Sprintf("Guard of autoscaling policy %q has never had a value", policy.Key()),
				Detail:  g.String(),
			})
		}
	}
	return warnings
}
