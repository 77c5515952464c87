// Package telemetry measures what a host has and what is used of it, by itself, by the instances on it, and of its
// GPUs.
//
// A resident ([Resident]) takes a sample every second and remembers some minutes of them. Whoever asks it gets a
// [Report] over a window of that time. Hosts run Linux, by whose means it measures; whoever asks may run elsewhere.
package telemetry
