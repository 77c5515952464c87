// Package spec renders specifications of members to services of a Docker Swarm, reads them back, and names and labels
// what Trainyard makes there. It is pure: what the Swarm has is given as a [Target] or a [Lookup].
package spec
