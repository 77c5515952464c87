package domain

import (
	"cmp"
	"encoding/json"
	"time"
)

// AutoscalingPolicyDocument is what is stored with the cluster about an autoscaling policy, as Terraform wrote it. The
// controller keeps the policy's own state elsewhere.
type AutoscalingPolicyDocument struct {
	Header
	Spec AutoscalingPolicy `json:"spec"`
	// ID differs from that of an earlier policy of the role, which was destroyed; empty in documents of earlier builds.
	ID string `json:"id,omitempty"`
	// Before is the count that the role had before the policy.
	Before int `json:"before"`
	// Ending is true while the policy is being destroyed. It makes no more decisions.
	Ending bool `json:"ending,omitempty"`
}

// UnmarshalJSON also reads documents of earlier builds, in which the hook before a removal was a guard.
func (p *AutoscalingPolicy) UnmarshalJSON(data []byte) error {
	type plain AutoscalingPolicy
	var former struct {
		Guards struct {
			Drain *ScalingHook `json:"drain"`
		} `json:"guards"`
	}
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &former); err != nil {
		return err
	}
	p.Hooks.BeforeRemoval = cmp.Or(p.Hooks.BeforeRemoval, former.Guards.Drain)
	return nil
}

// Kind returns [PolicyKind].
func (*AutoscalingPolicyDocument) Kind() Kind { return PolicyKind }

// Key returns the policy's group and role, see [AutoscalingPolicy.Key].
func (d *AutoscalingPolicyDocument) Key() string { return d.Spec.Key() }

// Scaled is a change of a role's count by a policy.
type Scaled struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	// Why is the reason, in words.
	Why string `json:"why"`
}
