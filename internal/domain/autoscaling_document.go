package domain

import "time"

// AutoscalingPolicyDocument is what is stored with the cluster about an autoscaling policy, as Terraform wrote it. What the policy remembers is
// kept by the controller, elsewhere.
type AutoscalingPolicyDocument struct {
	Version int `json:"version"`
	// Revision counts the writes. A write on top of a revision that is not the stored one is a conflict.
	Revision int               `json:"revision"`
	Spec     AutoscalingPolicy `json:"spec"`
	// Before is the count that the role had before the policy.
	Before int `json:"before"`
	// Ending is true while the policy is destroyed: it decides no more.
	Ending bool `json:"ending,omitempty"`
}

// Header returns the document's version and revision.
func (d *AutoscalingPolicyDocument) Header() (version, revision *int) { return &d.Version, &d.Revision }

// Scaled is a change of a role's count by a policy.
type Scaled struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	// Why says in words why.
	Why string `json:"why"`
}
