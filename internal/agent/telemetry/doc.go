// Package telemetry measures a host: its capacity, and the usage of the host itself, of the instances on it, and of its
// GPUs.
//
// A resident ([Resident]) takes a sample every second and remembers several minutes of them. It answers a request with
// a [Report] over a window of that time. Measuring works only on Linux; requests can come from other systems.
package telemetry
