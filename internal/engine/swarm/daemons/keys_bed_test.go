//go:build linux

package daemons

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// TestAgentKeyMadeAtOnce: several concurrent runs create only one first key. A key that has lost its labels is left
// alone, and does no harm.
func TestAgentKeyMadeAtOnce(t *testing.T) {
	t.Parallel()
	in, _ := swarmtest.Storage(t, "keys-at-once", keep)
	e := New(in, Program{}, images.Images{}, members.Members{})
	m, err := e.Connection.Manager(t.Context())
	swarmtest.Must(t, err)
	made := make([][]swarm.Secret, 8)
	swarmtest.Must(t,
		dockerapi.InParallel(t.Context(), []int{0, 1, 2, 3, 4, 5, 6, 7}, func(ctx context.Context, i int) (err error) {
			made[i], err = e.addKey(ctx, m, nil)
			return err
		}))
	all, err := e.agentKeys(t.Context(), m)
	swarmtest.Must(t, err)
	for _, keys := range made {
		if len(keys) != 1 || len(all) != 1 || keys[0].ID != all[0].ID {
			t.Fatalf("of the keys %+v, a run knows %+v", all, keys)
		}
	}
	t.Cleanup(func() { swarmtest.Must(t, m.SecretRemove(context.WithoutCancel(t.Context()), all[0].ID)) })

	unlabelled := all[0].Spec
	unlabelled.Labels = nil
	swarmtest.Must(t, m.SecretUpdate(t.Context(), all[0].ID, all[0].Version, unlabelled))
	next, err := e.addKey(t.Context(), m, nil)
	swarmtest.Must(t, err)
	t.Cleanup(func() { swarmtest.Must(t, removeKeys(context.WithoutCancel(t.Context()), m, next)) })
	if len(next) != 1 || keyNumber(next[0]) != 2 {
		t.Errorf("beside a key without labels, the keys are %+v", next)
	}
}
