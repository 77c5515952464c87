package spec

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestRenderFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *domain.MemberSpec, in *Target)
		want   string
	}{
		"host": {
			func(s *domain.MemberSpec, _ *Target) { s.Host = "h9" },
			`member "mnist-worker-3": host "h9" is not a node of the Swarm`,
		},
		"host of a pool": {
			func(s *domain.MemberSpec, _ *Target) {
				share(s, s.Address)
				s.Placement.Hosts = []string{"h9"}
			},
			`members of role "worker": host "h9" is not a node of the Swarm`,
		},
		"config": {
			func(_ *domain.MemberSpec, in *Target) { in.Configs = nil },
			`the source of /run/trainyard/hostfile`,
		},
		"secret": {
			func(_ *domain.MemberSpec, in *Target) { in.Secrets = nil },
			`member "mnist-worker-3": secret "trainyard.lab.secret.mnist.worker.token.1", the source of /run/secrets/token, is not in the Swarm`,
		},
	} {
		spec := rich()
		in, _ := around(spec)
		c.change(&spec, &in)
		if _, err := Render(spec, in, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestPooledServicesAreOne: all members of a role render to the same service.
func TestPooledServicesAreOne(t *testing.T) {
	first, second := richPool(), Individual(richPool(), 8)
	in, _ := around(first)
	a, errA := Render(first, in, 2)
	b, errB := Render(second, in, 2)
	if errA != nil || errB != nil || !Equal(a, b) {
		t.Errorf("%v, %v, (-first +second):\n%s", errA, errB, cmp.Diff(a, b))
	}
	if got := *a.Mode.Replicated.Replicas; got != 2 {
		t.Errorf("it has %d replicas, want 2", got)
	}
}

// TestFailureAction: the Swarm never pauses an update of all members at once.
func TestFailureAction(t *testing.T) {
	for update, want := range map[domain.Update]string{
		{}:                                 swarm.UpdateFailureActionContinue,
		{OnFailure: domain.UpdateRollback}: swarm.UpdateFailureActionContinue,
		{Parallelism: 1}:                   swarm.UpdateFailureActionPause,
		{Parallelism: 2, OnFailure: domain.UpdateRollback}: swarm.UpdateFailureActionPause,
		{Parallelism: 2, OnFailure: domain.UpdateContinue}: swarm.UpdateFailureActionContinue,
	} {
		if got := failureAction(update); got != want {
			t.Errorf("of an update %+v the Swarm makes %s, want %s", update, got, want)
		}
	}
}
