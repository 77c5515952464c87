package spec

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestConstraints(t *testing.T) {
	pool := func(p domain.Placement) domain.MemberSpec {
		return domain.MemberSpec{Role: "worker", Scheduling: domain.SchedulingEngine, Shared: true, Placement: p}
	}
	hosts := func(names ...string) domain.Placement { return domain.Placement{Hosts: names} }
	for name, c := range map[string]struct {
		spec domain.MemberSpec
		want []string
	}{
		"indexed":   {domain.MemberSpec{Scheduling: domain.SchedulingPinned, Host: "h1"}, []string{"node.id==node1"}},
		"anywhere":  {pool(domain.Placement{}), []string{"node.id!=stranger"}},
		"one host":  {pool(hosts("h1")), []string{"node.id==node1"}},
		"two hosts": {pool(hosts("h2", "h0")), []string{"node.id!=node1", "node.id!=stranger"}},
		"labels": {
			pool(domain.Placement{Labels: map[string]string{"gpu": "t4", "disk": "ssd"}}),
			[]string{"node.labels.disk==ssd", "node.labels.gpu==t4", "node.id!=stranger"},
		},
		"labels and a host": {
			pool(domain.Placement{Labels: map[string]string{"gpu": "t4"}, Hosts: []string{"h0"}}),
			[]string{"node.labels.gpu==t4", "node.id==node0"},
		},
	} {
		in, _ := around()
		got, err := constraintsOf(c.spec, in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestPinnedTo(t *testing.T) {
	for want, constraints := range map[string][]string{
		"":      {"node.role==manager", nowhere, "node.id!=node2"},
		"node1": {nowhere, "node.id == node1"},
	} {
		if got := PinnedNode(
			swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{Placement: &swarm.Placement{Constraints: constraints}}},
		); got != want {
			t.Errorf("%q: pinned to %q, want %q", constraints, got, want)
		}
	}
	if got := PinnedNode(swarm.ServiceSpec{}); got != "" {
		t.Errorf("without constraints: pinned to %q", got)
	}
}

func TestKeptOff(t *testing.T) {
	for name, test := range map[string]struct {
		placement *swarm.Placement
		nodes     []string
		want      []string
	}{
		"no node":   {},
		"the first": {nodes: []string{"b"}, want: []string{"node.id!=b"}},
		"one that was rejecting before": {
			placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"b"},
			want: []string{"node.id!=b"},
		},
		"one before another, by its ID": {
			placement: &swarm.Placement{Constraints: []string{"node.id!=b"}}, nodes: []string{"a"},
			want: []string{"node.id!=a", "node.id!=b"},
		},
		"beside a constraint of somebody's": {
			placement: &swarm.Placement{Constraints: []string{"node.role==worker"}}, nodes: []string{"a"},
			want: []string{"node.id!=a", "node.role==worker"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, KeepOff(test.placement, test.nodes).Constraints); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
