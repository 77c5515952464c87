package dockerapi

import (
	"slices"
	"strings"
)

// OutOfSequence reports whether a write was refused because it was based on an older version of its object. The Engine
// has no code for that: it answers with status 500 and this text.
func OutOfSequence(err error) bool {
	return err != nil && strings.Contains(err.Error(), "update out of sequence")
}

// leaderless reports whether an Engine answers that its Swarm has no leader, or that the leader did not answer in time,
// as one that has just died. There is no code for either: for the latter it depends on the manager that waited.
func leaderless(err error) bool {
	return err != nil && slices.ContainsFunc(
		[]string{"does not have a leader", "code = DeadlineExceeded", "desc = context deadline exceeded"},
		func(text string) bool { return strings.Contains(err.Error(), text) },
	)
}
