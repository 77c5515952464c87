package members

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// TestOutOfMemory: a killed member with a memory limit has run out of memory, even if it runs again; one that was ended
// by its health check or the Swarm has not.
func TestOutOfMemory(t *testing.T) {
	limited := &swarm.ResourceRequirements{Limits: &swarm.Limit{MemoryBytes: 64 * spec.MiB}}
	first := domain.OutOfMemory{At: moment.Add(1500 * time.Millisecond), LimitMiB: 64}
	for name, c := range map[string]struct {
		limits *swarm.ResourceRequirements
		tasks  func(h *history)
		want   *domain.OutOfMemory
	}{
		"killed": {
			limited, func(h *history) { h.task(2, "shutdown", "failed", 137, "task: non-zero exit (137)") }, &first,
		},
		"killed, and on": {
			limited, func(h *history) { h.task(2, "shutdown", "failed", 137, "").task(2, "running", "running", 0, "") },
			&first,
		},
		"killed before": {
			limited, func(h *history) { h.task(1, "shutdown", "failed", 137, "").task(2, "running", "running", 0, "") },
			nil,
		},
		"without a limit": {nil, func(h *history) { h.task(2, "shutdown", "failed", 137, "") }, nil},
		"failed":          {limited, func(h *history) { h.task(2, "shutdown", "failed", 1, "") }, nil},
		"not well": {limited, func(h *history) {
			h.task(2, "shutdown", "failed", 137, "task: non-zero exit (137): unhealthy container")
		}, nil},
		"drained": {limited, func(h *history) { h.task(2, "shutdown", "shutdown", 137, "") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, domain.Role{}.RestartRule(),
				map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"})
			h.service.Spec.TaskTemplate.Resources = c.limits
			c.tasks(h)
			observed, err := h.view(ready).observe("job")
			if err != nil || len(observed) != 1 {
				t.Fatalf("observed %v (%v)", observed, err)
			}
			if diff := cmp.Diff(c.want, observed[0].OutOfMemory); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
