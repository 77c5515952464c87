// Package policytest provides autoscaling policies for tests.
package policytest
