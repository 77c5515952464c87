// Package domain holds the domain types of Trainyard: cluster, host, group, role, member, phase.
//
// It validates and names them, and decides what a set of observed members means for their group. It does no I/O and
// knows neither Terraform nor any engine.
package domain
