//go:build linux

package systemd_test

import (
	"fmt"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// tally counts the faults that a test injects into hosts, and their effect on members. DESIGN.md has the sums of a run.
type tally struct {
	mu     sync.Mutex
	faults map[string]int
	// looked is how often a member was checked, lost how often it did not run, and twice how often it ran on two hosts,
	// or had been started more often than it should.
	looked, lost, twice int
}

// note counts faults of a kind.
func (t *tally) note(kind string, times int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if times > 0 {
		t.faults[kind] += times
	}
}

// look counts a check of a member, given the hosts on which it runs, and how often it was started and should have been.
func (t *tally) look(processes []string, starts, want int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked++
	if len(processes) == 0 {
		t.lost++
	}
	if len(processes) > 1 || starts > want {
		t.twice++
	}
}

// lookAt counts a check of members by the hosts on which they run, if their starts are counted elsewhere.
func (t *tally) lookAt(processes map[string][]string) {
	for _, hosts := range processes {
		t.look(hosts, 1, 1)
	}
}

// String formats the counts.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("faults: %v; members looked at: %d, lost: %d, started twice: %d", t.faults, t.looked, t.lost,
		t.twice)
}

// fault is something that may happen to a host.
type fault struct {
	kind string
	do   func(faulty, *testbed.Host) error
}

var (
	powerCut   = fault{"power cut", func(_ faulty, h *testbed.Host) error { return h.Kill() }}
	networkCut = fault{"network cut", func(_ faulty, h *testbed.Host) error { return h.Cut() }}
	reboot     = fault{"reboot", func(f faulty, h *testbed.Host) error { return h.Reboot(f.bounded()) }}
	powerLoss  = fault{"power cut", func(f faulty, h *testbed.Host) error { // and power again
		if err := h.Kill(); err != nil {
			return err
		}
		return h.Start(f.bounded())
	}}
)

// suffers applies a fault to a host.
func (f faulty) suffers(host int, what fault) {
	f.Helper()
	f.must(what.do(f, f.host(host)))
	f.tally.note(what.kind, 1)
}
