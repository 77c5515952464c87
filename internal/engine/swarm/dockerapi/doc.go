// Package dockerapi asks the Docker Engines of a cluster: the managers of its Swarm, and the hosts that have addresses.
//
// A [Connection] finds a manager that answers, and says what an answer means. [Reads] are the lists of what the Swarm
// has.
package dockerapi
