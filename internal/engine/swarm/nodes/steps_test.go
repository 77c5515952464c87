package nodes

import (
	"fmt"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestNodeSpec(t *testing.T) {
	note := ownLabels("lab")
	worker := swarm.NodeSpec{Role: swarm.NodeRoleWorker, Availability: swarm.NodeAvailabilityPause}
	with := func(labels map[string]string) swarm.NodeSpec {
		spec := worker
		spec.Labels = labels
		return spec
	}
	for name, test := range map[string]struct {
		live swarm.NodeSpec
		host domain.Host
		want swarm.NodeSpec
	}{
		"nothing declared": {
			with(map[string]string{"theirs": "1"}), domain.Host{}, with(map[string]string{"theirs": "1"}),
		},
		"a label": {
			with(map[string]string{"theirs": "1"}), domain.Host{Labels: map[string]string{"gpu": "x"}},
			with(map[string]string{"theirs": "1", "gpu": "x", note: `["gpu"]`}),
		},
		"the first label": {
			worker, domain.Host{Labels: map[string]string{"gpu": "x"}},
			with(map[string]string{"gpu": "x", note: `["gpu"]`}),
		},
		"a label that drifted": {
			with(map[string]string{"gpu": "y", note: `["gpu"]`}), domain.Host{Labels: map[string]string{"gpu": "x"}},
			with(map[string]string{"gpu": "x", note: `["gpu"]`}),
		},
		"a label that is taken": {
			with(map[string]string{"gpu": "y"}), domain.Host{Labels: map[string]string{"gpu": "x"}},
			with(map[string]string{"gpu": "x", note: `["gpu"]`}),
		},
		"another label": {
			with(map[string]string{"a": "1", "theirs": "1", note: `["a"]`}),
			domain.Host{Labels: map[string]string{"b": "2"}},
			with(map[string]string{"b": "2", "theirs": "1", note: `["b"]`}),
		},
		"no label any more": {
			with(map[string]string{"a": "1", "theirs": "1", note: `["a"]`}), domain.Host{},
			with(map[string]string{"theirs": "1"}),
		},
		"another cluster's": {
			with(map[string]string{"a": "1", ownLabels("other"): `["a"]`}), domain.Host{},
			with(map[string]string{"a": "1", ownLabels("other"): `["a"]`}),
		},
		"a label that is also another cluster's": {
			with(map[string]string{"a": "1", "b": "2", note: `["a","b"]`, ownLabels("other"): `["a"]`}), domain.Host{},
			with(map[string]string{"a": "1", ownLabels("other"): `["a"]`}),
		},
		"a label that is also another cluster's, while others stay": {
			with(map[string]string{"a": "1", "b": "2", note: `["a","b"]`, ownLabels("other"): `["a"]`}),
			domain.Host{Labels: map[string]string{"b": "2"}},
			with(map[string]string{"a": "1", "b": "2", note: `["b"]`, ownLabels("other"): `["a"]`}),
		},
		"a label that another cluster declares with another value": {
			with(map[string]string{"a": "1", note: `["a"]`, ownLabels("other"): `["a"]`}),
			domain.Host{Labels: map[string]string{"a": "2"}},
			with(map[string]string{"a": "2", note: `["a"]`, ownLabels("other"): `["a"]`}),
		},
		"a note that is broken": {
			with(map[string]string{"a": "1", note: "?"}), domain.Host{Labels: map[string]string{"a": "2"}},
			with(map[string]string{"a": "2", note: `["a"]`}),
		},
		"a promotion": {
			worker, domain.Host{Role: domain.HostManager},
			swarm.NodeSpec{Role: swarm.NodeRoleManager, Availability: swarm.NodeAvailabilityPause},
		},
		"no demotion": {
			swarm.NodeSpec{Role: swarm.NodeRoleManager}, domain.Host{Role: domain.HostWorker},
			swarm.NodeSpec{Role: swarm.NodeRoleManager},
		},
		"another availability": {
			worker, domain.Host{Availability: domain.HostDrained},
			swarm.NodeSpec{Role: swarm.NodeRoleWorker, Availability: swarm.NodeAvailabilityDrain},
		},
		"several labels, sorted": {
			worker, domain.Host{Labels: map[string]string{"b": "", "a": ""}},
			with(map[string]string{"a": "", "b": "", note: `["a","b"]`}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(test.live)
			got := nodeSpec(test.live, "lab", test.host)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if after := fmt.Sprint(test.live); after != before {
				t.Errorf("what was given became %s, from %s", after, before)
			}
			if again := nodeSpec(got, "lab", test.host); !cmp.Equal(again, got) {
				t.Errorf("a second time it becomes %+v", again)
			}
		})
	}
}

// A label that two clusters declare stays on the node until the second of them has left.
func TestNodeSpecOfTwoClusters(t *testing.T) {
	host := domain.Host{Labels: map[string]string{"gpu": "v100"}}
	both := nodeSpec(nodeSpec(swarm.NodeSpec{}, "lab", host), "other", host)
	for first, second := range map[string]string{"lab": "other", "other": "lab"} {
		one := nodeSpec(both, first, domain.Host{})
		want := map[string]string{"gpu": "v100", ownLabels(second): `["gpu"]`}
		if diff := cmp.Diff(want, one.Labels); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", first, diff)
		}
		if none := nodeSpec(one, second, domain.Host{}); len(none.Labels) > 0 {
			t.Errorf("without both, the labels are %v", none.Labels)
		}
	}
}
