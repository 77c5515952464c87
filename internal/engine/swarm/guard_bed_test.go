//go:build linux

package swarm

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// counted returns reads that count how often each list is read.
func counted(r dockerapi.Reads, calls map[string]int) dockerapi.Reads {
	return dockerapi.Reads{
		Nodes:    counting(r.Nodes, calls, "nodes"),
		Configs:  counting(r.Configs, calls, "configs"),
		Services: counting(r.Services, calls, "services"),
		Tasks:    counting(r.Tasks, calls, "tasks"),
		Networks: counting(r.Networks, calls, "networks"),
	}
}

func counting[T any](read dockerapi.List[T], calls map[string]int, name string) dockerapi.List[T] {
	return func(ctx context.Context) ([]T, error) {
		calls[name]++
		return read(ctx)
	}
}

// TestGuardReadsOnce: the controller's regular checks read each list once, as they run while others work.
func TestGuardReadsOnce(t *testing.T) {
	t.Parallel()
	s := newStanding(t, testbed.Shared(t, swarmtest.Three), "guarded")
	e := s.open(s.bed.Nodes[0].Host())
	calls := map[string]int{}
	e.Reads = counted(e.Reads, calls)
	if _, err := e.guardOnce(t.Context(), members.Ends{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"nodes": 1, "services": 1, "tasks": 1}, calls); diff != "" {
		t.Errorf("lists read (-want +got):\n%s", diff)
	}
}

// TestServiceOfSomebodyElse: a service that somebody else created under a member's name is not changed.
func TestServiceOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := newStanding(t, testbed.Shared(t, swarmtest.Three), "elsewhere")
	e := s.open(s.bed.Nodes[0].Host())
	m, err := e.Connection.Manager(t.Context())
	must(t, err)
	none := uint64(0)
	theirs := swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: "elsewhere-worker-0", Labels: map[string]string{"owner": "them"}},
		TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Image: swarmtest.MemberImage}},
		Mode:         swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &none}},
	}
	created, err := m.ServiceCreate(t.Context(), theirs, swarm.ServiceCreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, m.ServiceRemove(context.WithoutCancel(t.Context()), created.ID)) })
	err = e.UpdateService(t.Context(), m, swarm.Service{}, theirs.Name, "",
		func(live swarm.Service) (swarm.ServiceSpec, bool) {
			live.Spec.Labels = map[string]string{spec.LabelCluster: "elsewhere"}
			return live.Spec, true
		})
	if err == nil || !strings.Contains(err.Error(), "no longer belongs to cluster") {
		t.Errorf("the change ended with %v", err)
	}
	found, _, err := m.ServiceInspectWithRaw(t.Context(), created.ID, swarm.ServiceInspectOptions{})
	must(t, err)
	if !maps.Equal(found.Spec.Labels, theirs.Labels) {
		t.Errorf("its labels are %v", found.Spec.Labels)
	}
}
