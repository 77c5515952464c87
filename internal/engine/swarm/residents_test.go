package swarm

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
)

func TestKeptOff(t *testing.T) {
	for name, test := range map[string]struct {
		placement *swarm.Placement
		nodes     []string
		want      []string
	}{
		"no node":                           {},
		"the first":                         {nodes: []string{"b"}, want: []string{"node.id!=b"}},
		"one that was rejecting before":     {placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"b"}, want: []string{"node.id!=b"}},
		"one before another, by its ID":     {placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"a"}, want: []string{"node.id!=a", "node.id!=b"}},
		"beside a constraint of somebody's": {placement: &swarm.Placement{Constraints: []string{"node.role==worker"}}, nodes: []string{"a"}, want: []string{"node.id!=a", "node.role==worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, keptOff(test.placement, test.nodes).Constraints); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
