// Package policytest has autoscaling policies for tests.
package policytest
