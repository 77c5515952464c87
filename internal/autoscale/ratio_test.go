package autoscale

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestRatio(t *testing.T) {
	for name, test := range map[string]struct {
		workers int
		per     float64
		want    proposal
	}{
		"one for every four":       {8, 4, proposal{count: 2, why: "role worker has a count of 8: one for every 4"}},
		"and one for what is left": {9, 4, proposal{count: 3, why: "role worker has a count of 9: one for every 4"}},
		"two for each": {
			3, 0.5, proposal{count: 6, why: "role worker has a count of 3: one for every 0.5"},
		},
		"for every tenth of one": {3, 0.1, proposal{count: 30, why: "role worker has a count of 3: one for every 0.1"}},
		"13 cores, a replica for 2 of them (README of the cluster-proportional-autoscaler)": {
			13, 2, proposal{count: 7, why: "role worker has a count of 13: one for every 2"},
		},
		"none for nobody": {0, 4, proposal{why: "role worker has a count of 0: one for every 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking{count: 5, roles: map[string]int{"worker": test.workers}}
			if diff := cmp.Diff(test.want, ratio(domain.RatioAlgorithm{Role: "worker", Per: test.per}, in),
				cmp.AllowUnexported(proposal{})); diff != "" {
				t.Errorf("proposal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRatioOfNothing(t *testing.T) {
	want := proposal{count: 5, abstains: true, why: "the group has no role worker"}
	got := ratio(domain.RatioAlgorithm{Role: "worker", Per: 4}, asking{count: 5, roles: map[string]int{"ps": 1}})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(proposal{})); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
}
