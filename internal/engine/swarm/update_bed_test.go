package swarm

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestUpdateOfWhatOthersChange: a service that somebody else changes between our reading and our writing is changed on its fresh version, and
// what they changed stays.
func TestUpdateOfWhatOthersChange(t *testing.T) {
	t.Parallel()
	e, _ := documentsOf(t, "contended")
	m, err := e.connection.Manager(t.Context())
	must(t, err)
	empty := swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: "contended", Labels: map[string]string{spec.LabelCluster: "contended"}},
		TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Image: memberRef}},
	}
	spec.SetReplicas(&empty, 0)
	created, err := m.ServiceCreate(t.Context(), empty, swarm.ServiceCreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, m.ServiceRemove(context.WithoutCancel(t.Context()), created.ID)) })
	inspect := func() swarm.Service {
		service, _, err := m.ServiceInspectWithRaw(t.Context(), created.ID, swarm.ServiceInspectOptions{})
		must(t, err)
		return service
	}
	asked := 0
	change := func(times int) error {
		asked = 0
		return e.update(t.Context(), m, inspect(), "contended", "", func(live swarm.Service) (swarm.ServiceSpec, bool) {
			if asked++; asked <= times {
				theirs := inspect()
				theirs.Spec.Labels["theirs"] = strconv.Itoa(asked)
				_, err := m.ServiceUpdate(t.Context(), theirs.ID, theirs.Version, theirs.Spec, swarm.ServiceUpdateOptions{})
				must(t, err)
			}
			live.Spec.TaskTemplate.ContainerSpec.Env = []string{"OURS=1"}
			return live.Spec, true
		})
	}
	must(t, change(2))
	if got := inspect().Spec; asked != 3 || got.Labels["theirs"] != "2" || strings.Join(got.TaskTemplate.ContainerSpec.Env, " ") != "OURS=1" {
		t.Errorf("after being asked %d times it has labels %v and the environment %v", asked, got.Labels, got.TaskTemplate.ContainerSpec.Env)
	}
	if err := change(updateAttempts); err == nil || !strings.Contains(err.Error(), "others changed it 10 times in a row") {
		t.Errorf("a service that others keep changing: %v", err)
	}
}
