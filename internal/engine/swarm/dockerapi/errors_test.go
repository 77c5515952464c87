package dockerapi

import (
	"errors"
	"fmt"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
)

// TestExplainLeaderless: what an Engine answers while its Swarm has no leader, or one that has just died, has the
// others asked, and then all of them again.
func TestExplainLeaderless(t *testing.T) {
	for text, want := range map[string]bool{
		"Error response from daemon: rpc error: code = Unknown desc = The swarm does not have a leader. It's possible that too few managers are online.": true,
		"Error response from daemon: rpc error: code = DeadlineExceeded desc = context deadline exceeded":                                                true,
		// A manager that asked the leader for us, and had no answer.
		"Error response from daemon: rpc error: code = Unknown desc = context deadline exceeded":                          true,
		"Error response from daemon: rpc error: code = InvalidArgument desc = name must be valid as a DNS name component": false,
	} {
		elsewhere, err := Explain("node2", fmt.Errorf("%w: %s", cerrdefs.ErrInternal, text))
		if elsewhere != want || errors.Is(err, errLeaderless) != want {
			t.Errorf("%s\nis asked elsewhere: %v, and means: %v", text, elsewhere, err)
		}
	}
}
