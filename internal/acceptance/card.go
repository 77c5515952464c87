//go:build linux

package acceptance

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// DriveCard makes a device show, until the test ends, the memory that processes hold according to a file, with a PID
// and MiB per line, and what somebody else holds.
func DriveCard(t testing.TB, file string, foreign func() int64, show func(used int64, processes []fakenvml.Process)) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	ctx := t.Context()
	go func() {
		defer close(done)
		fakenvml.FollowAllocations(ctx, file, foreign, show)
	}()
}
