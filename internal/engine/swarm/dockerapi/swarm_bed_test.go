//go:build linux

package dockerapi_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

// TestUpdateOfWhatOthersChange: if somebody else changes a service between read and write, the update is repeated on
// the new version, and keeps their change.
func TestUpdateOfWhatOthersChange(t *testing.T) {
	t.Parallel()
	c, _ := swarmtest.Connect(t, testbed.Shared(t, swarmtest.One), "contended")
	e := dockerapi.Swarm{Cluster: "contended", Connection: c, Reads: dockerapi.Live(c)}
	m, err := e.Connection.Manager(t.Context())
	swarmtest.Must(t, err)
	empty := swarm.ServiceSpec{
		Annotations:  swarm.Annotations{Name: "contended", Labels: map[string]string{spec.LabelCluster: "contended"}},
		TaskTemplate: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Image: swarmtest.MemberImage}},
	}
	spec.SetReplicas(&empty, 0)
	created, err := m.ServiceCreate(t.Context(), empty, swarm.ServiceCreateOptions{})
	swarmtest.Must(t, err)
	t.Cleanup(func() { swarmtest.Must(t, m.ServiceRemove(context.WithoutCancel(t.Context()), created.ID)) })
	inspect := func() swarm.Service {
		service, _, err := m.ServiceInspectWithRaw(t.Context(), created.ID, swarm.ServiceInspectOptions{})
		swarmtest.Must(t, err)
		return service
	}
	asked := 0
	change := func(times int) error {
		asked = 0
		return e.UpdateService(t.Context(), m, inspect(), "contended", "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				if asked++; asked <= times {
					theirs := inspect()
					theirs.Spec.Labels["theirs"] = strconv.Itoa(asked)
					_, err := m.ServiceUpdate(t.Context(), theirs.ID, theirs.Version, theirs.Spec,
						swarm.ServiceUpdateOptions{})
					swarmtest.Must(t, err)
				}
				live.Spec.TaskTemplate.ContainerSpec.Env = []string{"OURS=1"}
				return live.Spec, true
			})
	}
	swarmtest.Must(t, change(2))
	if got := inspect().Spec; asked != 3 || got.Labels["theirs"] != "2" ||
		strings.Join(got.TaskTemplate.ContainerSpec.Env, " ") != "OURS=1" {
		t.Errorf("after being asked %d times it has labels %v and the environment %v", asked, got.Labels,
			got.TaskTemplate.ContainerSpec.Env)
	}
	if err := change(dockerapi.UpdateAttempts); err == nil ||
		!strings.Contains(err.Error(), "others changed it 10 times in a row") {
		t.Errorf("a service that others keep changing: %v", err)
	}
}
