//go:build linux

package supervisor

import (
	"log/slog"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestReleaseInOrder: an apply that died after it had asked for a start, and the next one, may both be waiting to be dealt
// with. The later one has no member to stage that the earlier one starts.
func TestReleaseInOrder(t *testing.T) {
	for range 20 { // in whichever order they are listed
		s := &supervisor{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}, log: slog.New(slog.DiscardHandler)}
		write := func(folder, name string, document any) {
			if err := statedir.Write(s.dir.Document(folder, name), document, statedir.Volatile); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.dir.Create(); err != nil {
			t.Fatal(err)
		}
		write(statedir.Staged, "job-worker-0", domain.MemberSpec{Group: "job", Name: "job-worker-0", Run: 9})
		for _, run := range []int{9, 10} {
			start := statedir.Start{Group: "job", Run: run}
			write(statedir.Starts, start.Name(), start)
		}
		if !s.release() {
			t.Fatal("the requests could not be dealt with")
		}
		specs, err := s.dir.List(statedir.Specs)
		if _, found := specs["job-worker-0"]; err != nil || !found {
			t.Fatalf("in force are %v (%v), without the member that was staged", specs, err)
		}
	}
}
