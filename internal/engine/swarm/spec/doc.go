// Package spec renders specifications of members as services of a Docker Swarm, reads them back, and names and labels
// the objects that Trainyard creates there. It is pure: what the Swarm has is passed in as a [Target] or a [Lookup].
package spec
