package dockerapi

import (
	"errors"
	"fmt"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
)

// TestExplainLeaderless: if an Engine answers that its Swarm has no leader, or one that has just died, the others are
// asked, and then all of them again.
func TestExplainLeaderless(t *testing.T) {
	for text, want := range map[string]bool{
		"Error response from daemon: rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are online.": true,
		"Error response from daemon: rpc error: code = DeadlineExceeded desc = context deadline exceeded":                                                true,
		// From a manager that passed the request to the leader, and had no answer.
		"Error response from daemon: rpc error: code = Unknown desc = context deadline exceeded":                          true,
		"Error response from daemon: rpc error: code = InvalidArgument desc = name must be valid as a DNS name component": false,
	} {
		elsewhere, err := Explain("node2", fmt.Errorf("%w: %s", cerrdefs.ErrInternal, text))
		if elsewhere != want || errors.Is(err, errLeaderless) != want {
			t.Errorf("%s\nis asked elsewhere: %v, and means: %v", text, elsewhere, err)
		}
	}
}
