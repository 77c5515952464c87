package sweep

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// testCase is a decision's input, and the expected result.
type testCase struct {
	cluster Cluster
	queues  []Queue
	starts  []string
	// waits are words of why sweeps wait. Sweeps not listed do not wait.
	waits    map[string][]string
	next     time.Time
	measured bool
}

func (s testCase) check(t *testing.T) {
	t.Helper()
	got := Admit(s.cluster, s.queues, noon)
	if diff := cmp.Diff(s.starts, startTexts(got.Starts), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	for sweep, parts := range s.waits {
		says(t, "sweep "+sweep+" waits", got.Waits[sweep], append(parts, "")...)
		if got.Waits[sweep] == "" {
			t.Errorf("of sweep %s nothing is said", sweep)
		}
	}
	for sweep, why := range got.Waits {
		if _, wanted := s.waits[sweep]; !wanted {
			t.Errorf("sweep %s waits: %s", sweep, why)
		}
	}
	if !got.Next.Equal(s.next) {
		t.Errorf("next is at %s, want %s", got.Next, s.next)
	}
	if got.Measured != s.measured {
		t.Errorf("it waits for what is measured: %v", got.Measured)
	}
	slices.Reverse(s.queues)
	if diff := cmp.Diff(got, Admit(s.cluster, s.queues, noon)); diff != "" {
		t.Errorf("the order of sweeps matters:\n%s", diff)
	}
}

func run(t *testing.T, testCases map[string]testCase) {
	for name, s := range testCases {
		t.Run(name, s.check)
	}
}

// aged returns a queue created some seconds after noon, with a priority.
func aged(s domain.Sweep, seconds float64, priority int) Queue {
	s.Priority = priority
	q := queueOf(s)
	q.Document.Since = at(seconds)
	return q
}

// claimOf returns a claim on room for one CPU by a group with a priority, which has waited since some seconds after
// noon.
func claimOf(priority int, seconds float64) Claim {
	group := domain.Group{
		Name: "g", Priority: priority,
		Roles: map[string]domain.Role{"w": {Resources: domain.ResourceRequirements{CPUs: 1}}},
	}
	return Claim{
		Request:  domain.RoomRequest{Spec: group, Since: at(seconds)},
		Document: domain.GroupDocument{Spec: group, Assignments: map[string]domain.Assignment{"g-w-0": {Host: "a"}}},
	}
}

// atMost returns a sweep that runs some at a time.
func atMost(n int, s domain.Sweep) domain.Sweep {
	s.MaxParallel = &n
	return s
}
