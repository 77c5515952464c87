// Package policy implements the resource trainyard_autoscaling_policy.
package policy
