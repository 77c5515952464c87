package swarm

import "strings"

// outOfSequence tells whether a write was refused because it was based on an older version of its object. The Engine has no code
// for that: it answers with a status of 500 and this text.
func outOfSequence(err error) bool {
	return err != nil && strings.Contains(err.Error(), "update out of sequence")
}

// leaderless tells whether an Engine answers that the managers of its Swarm have no leader. There is no code for that either.
func leaderless(err error) bool {
	return err != nil && strings.Contains(err.Error(), "does not have a leader")
}
