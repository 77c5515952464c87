//go:build linux

package supervisor

import (
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestReleaseInOrder: the start requests of an apply that died and of the next one may both be pending. The later one
// must not discard what is staged for the earlier one.
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

// TestReleaseWhatWasAskedFor: what is staged between a start request and its handling waits for a request of its own.
func TestReleaseWhatWasAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		asked, want []string
	}{
		"named":                           {[]string{"job-worker-0"}, []string{"job-worker-0"}},
		"all, as earlier versions ask it": {nil, []string{"job-worker-0", "job-worker-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}, log: slog.New(slog.DiscardHandler)}
			if err := s.dir.Create(); err != nil {
				t.Fatal(err)
			}
			start := statedir.Start{Group: "job", Run: 1, Members: test.asked}
			documents := map[string]any{s.dir.Document(statedir.Starts, start.Name()): start}
			for _, member := range []string{"job-worker-0", "job-worker-1"} {
				documents[s.dir.Document(statedir.Staged, member)] = domain.MemberSpec{
					Group: "job", Name: member, Run: 1,
				}
			}
			for file, document := range documents {
				if err := statedir.Write(file, document, statedir.Volatile); err != nil {
					t.Fatal(err)
				}
			}
			if !s.release() {
				t.Fatal("the request could not be dealt with")
			}
			specs, err := s.dir.List(statedir.Specs)
			if got := slices.Sorted(maps.Keys(specs)); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("in force are %v (%v), not %v", got, err, test.want)
			}
		})
	}
}
