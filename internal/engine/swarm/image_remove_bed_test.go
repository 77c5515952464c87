//go:build linux

package swarm

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestRemoveImage(t *testing.T) { swarmtest.OnBeds(t, testRemoveImage) }

func testRemoveImage(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "removals", nil)
	ours, foreign := archived(t, "removals/trainer:1", "ours"), archived(t, "removals/foreign:1", "foreign")
	s.provide(ours)
	s.provide(foreign)
	s.tag(1, foreign.ID, ours.Name)
	created, err := s.bed.Nodes[2].Client().ContainerCreate(t.Context(), &container.Config{Image: s.id(2, ours.ID)},
		nil, nil, nil, "")
	must(t, err)
	removeContainer := sync.OnceValue(func() error {
		return s.bed.Nodes[2].Client().ContainerRemove(context.WithoutCancel(t.Context()), created.ID,
			container.RemoveOptions{Force: true})
	})
	t.Cleanup(func() { must(t, removeContainer()) })

	left, err := s.RemoveImage(t.Context(), ours.Name, ours.ID)
	must(t, err)
	if len(left) != 2 || !strings.Contains(left["node2"], s.id(1, foreign.ID)) ||
		!strings.Contains(left["node3"], created.ID[:12]) {
		t.Errorf("left are %q", left)
	}
	s.want(ours.Name, "", foreign.ID, ours.ID)
	s.want(ours.ID, "", ours.ID, ours.ID) // the second host has it, without a name

	must(t, removeContainer())
	left, err = s.RemoveImage(t.Context(), ours.Name, ours.ID)
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left are %q", left)
	}
	s.want(ours.Name, "", foreign.ID, "")

	built := builtFrom(t, "removals/built:1",
		map[string]string{"Dockerfile": "FROM scratch\nCOPY train /\n", "train": "built"})
	s.provide(built)
	left, err = s.RemoveImage(t.Context(), built.Name, "sha256:"+strings.Repeat("0", 64))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	s.want(built.Name, "", "", "")
}

// TestRemoveImageOfServiceThatIsGone: the containers of a service outlive it for a moment. An image that only they use
// is removed all the same, one that another container uses is left.
func TestRemoveImageOfServiceThatIsGone(t *testing.T) {
	swarmtest.OnBeds(t, testRemoveImageOfServiceThatIsGone)
}

func testRemoveImageOfServiceThatIsGone(t *testing.T, bed *testbed.Bed) {
	s := shelfOf(t, bed, "leftovers", nil)
	manager, ours := s.bed.Nodes[0].Client(), archived(t, "leftovers/trainer:1", "no program")
	s.provide(ours)
	users := func(node *testbed.Node) int {
		found, err := node.Client().ContainerList(t.Context(),
			container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", ours.Name))})
		must(t, err)
		return len(found)
	}
	service, err := manager.ServiceCreate(t.Context(), dockerswarm.ServiceSpec{
		Annotations:  dockerswarm.Annotations{Name: "leftovers"},
		Mode:         dockerswarm.ServiceMode{Global: &dockerswarm.GlobalService{}},
		EndpointSpec: &dockerswarm.EndpointSpec{Mode: dockerswarm.ResolutionModeDNSRR},
		TaskTemplate: dockerswarm.TaskSpec{
			ContainerSpec: &dockerswarm.ContainerSpec{Image: ours.Name},
			RestartPolicy: &dockerswarm.RestartPolicy{Condition: dockerswarm.RestartPolicyConditionNone},
		},
	}, dockerswarm.ServiceCreateOptions{})
	must(t, err)
	removeService := sync.OnceValue(func() error {
		return manager.ServiceRemove(context.WithoutCancel(t.Context()), service.ID)
	})
	t.Cleanup(func() { must(t, removeService()) })
	acctest.Eventually(t, "a container on each node", func() bool {
		return !slices.ContainsFunc(s.bed.Nodes, func(node *testbed.Node) bool { return users(node) == 0 })
	})
	remove := func() map[string]string {
		left, err := s.RemoveImage(t.Context(), ours.Name, ours.ID)
		must(t, err)
		return left
	}
	if left := remove(); len(left) != 3 {
		t.Errorf("left are %q, though the service is there", left)
	}

	created, err := s.bed.Nodes[2].Client().ContainerCreate(t.Context(), &container.Config{Image: s.id(2, ours.ID)},
		nil, nil, nil, "")
	must(t, err)
	t.Cleanup(func() {
		must(t, s.bed.Nodes[2].Client().ContainerRemove(context.WithoutCancel(t.Context()), created.ID,
			container.RemoveOptions{Force: true}))
	})
	must(t, removeService())
	if left := remove(); len(left) != 1 || left["node3"] == "" {
		t.Errorf("left are %q, want node3 alone", left)
	}
	s.want(ours.Name, "", "", ours.ID)
}
