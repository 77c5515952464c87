package sweep

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestAdmitRequests checks that a sweep asks for room only for those of its runs that would start if there was any.
func TestAdmitRequests(t *testing.T) {
	small := Cluster{Hosts: hostsOf(2, "a")}
	late := endedRun(domain.RunQueued, "a", at(-1))
	late.NotBefore = new(at(9))
	for name, test := range map[string]struct {
		cluster Cluster
		queues  []Queue
		want    map[string]int
	}{
		"there is room": {small, []Queue{queueOf(sweepOf("a", 2))}, nil},
		"max_parallel bounds it": {
			small, []Queue{queueOf(atMost(5, sweepOf("a", 1000)))}, map[string]int{"a": 3},
		},
		"max_parallel is reached": {small, []Queue{queueOf(atMost(2, sweepOf("a", 1000)))}, nil},
		"as many as are started at once": {
			small, []Queue{queueOf(sweepOf("a", 1000))}, map[string]int{"a": startedAtOnce - 2},
		},
		"few are left": {small, []Queue{queueOf(sweepOf("a", 5))}, map[string]int{"a": 3}},
		"not those that are due later": {
			small, []Queue{queueOf(sweepOf("a", 5)).with(map[string]domain.Run{"r0": late})}, map[string]int{"a": 2},
		},
		"nor those behind another sweep": {
			small, []Queue{queueOf(sweepOf("a", 5)), aged(sweepOf("b", 5), 9, 0)}, map[string]int{"a": 3},
		},
		"those beside another sweep's do": {
			Cluster{Hosts: hostsOf(1, "a", "b")}, []Queue{onHost(sweepOf("a", 2), "a"), onHost(sweepOf("b", 2), "b")},
			map[string]int{"a": 1, "b": 1},
		},
		"a group that waits has its place": {
			Cluster{Hosts: hostsOf(2, "a"), Claims: []Claim{claimOf(1, 0)}}, []Queue{queueOf(sweepOf("a", 2))},
			map[string]int{"a": 1},
		},
		"what a sweep claims takes no room": {
			Cluster{Hosts: hostsOf(2, "a"), Claims: []Claim{ofSweep(claimOf(1, 0))}}, []Queue{queueOf(sweepOf("a", 2))},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]int
			for sweep, request := range Admit(test.cluster, test.queues, noon).Requests {
				if got == nil {
					got = map[string]int{}
				}
				got[sweep] = request.Runs()
				if !request.Sweep || request.Key() != sweep ||
					request.Spec.Roles[domain.WaitingRuns].Resources.CPUs != 1 || request.Most != nil {
					t.Errorf("%s asks for %+v", sweep, request)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("room is asked for (-want +got):\n%s", diff)
			}
		})
	}
}

func onHost(s domain.Sweep, host string) Queue {
	s.Placement.Hosts = []string{host}
	return queueOf(s)
}

func ofSweep(c Claim) Claim {
	c.Request.Sweep = true
	return c
}

// TestAdmitRequestsByLevel checks that a sweep with measured progress asks only for as many runs as its level leaves
// places for, and only on those places.
func TestAdmitRequestsByLevel(t *testing.T) {
	s := sweepOf("a", 9)
	s.Progress, s.Resources.CPUs = &domain.SweepProgress{Pattern: "step"}, 2
	q := queueOf(s).with(map[string]domain.Run{"r0": running("a", noon)})
	q.Parallelism = NewSearch(q.Document, domain.SweepParallelism{}).Found()
	got := Admit(Cluster{
		Hosts: hostsOf(3, "a", "b"), Groups: map[string]domain.GroupDocument{"g": claimOf(0, 0).on("b", 2)},
	}, []Queue{q}, noon).Requests["a"]
	if got.Spec.Roles == nil || got.Runs() != 1 {
		t.Fatalf("it asks for %+v", got)
	}
	if diff := cmp.Diff(map[string]int{"a": 0, "b": 1}, got.Most); diff != "" {
		t.Errorf("it may have places (-want +got):\n%s", diff)
	}
}

// on returns the group with a number of members instead of the claimed one.
func (c Claim) on(host string, members int) domain.GroupDocument {
	doc := c.Document
	doc.Assignments = map[string]domain.Assignment{}
	for i := range members {
		doc.Assignments[domain.MemberName("g", "w", i)] = domain.Assignment{Host: host}
	}
	return doc
}
