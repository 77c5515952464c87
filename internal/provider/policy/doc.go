// Package policy is the resource trainyard_autoscaling_policy.
package policy
