// Package dockerapi calls the Docker Engines of a cluster: the managers of its Swarm, and the hosts that have
// addresses.
//
// A [Connection] finds a manager that answers, and interprets its answers. [Reads] are the lists of what the Swarm has.
package dockerapi
