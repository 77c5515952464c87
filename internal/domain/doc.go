// Package domain holds the words of Trainyard as types: cluster, host, group, role, member, phase.
//
// It validates and names, and it decides what a set of observed members means for their group.
// It does no I/O and knows neither Terraform nor any engine.
package domain
