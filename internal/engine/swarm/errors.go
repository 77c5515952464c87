package swarm

import "strings"

// outOfSequence tells whether a write was refused because it was based on an older version of its object. The Engine has no code
// for that: it answers with a status of 500 and this text.
func outOfSequence(err error) bool {
	return err != nil && strings.Contains(err.Error(), "update out of sequence")
}
