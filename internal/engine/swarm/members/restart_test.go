package members

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

func TestRestartOf(t *testing.T) {
	rule := domain.RestartRule{Condition: domain.RestartOnFailure, MaxAttempts: 2, Delay: domain.Duration(time.Second)}
	ended := func(h *history) *history { return h.task(2, swarm.TaskStateShutdown, swarm.TaskStateFailed, 137, "") }
	for name, c := range map[string]struct {
		labels map[string]string
		tasks  func(h *history)
		wanted bool
		delay  time.Duration
		// free means that it does not count.
		free bool
	}{
		"runs": {
			tasks: func(h *history) { h.task(2, swarm.TaskStateRunning, swarm.TaskStateRunning, 0, "") },
		},
		"ended": {tasks: func(h *history) { ended(h) }, wanted: true, delay: time.Second},
		"ended once more": {
			map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"},
			func(h *history) { ended(ended(h)) }, true, 2 * time.Second, false,
		},
		"ended too often": {
			map[string]string{spec.LabelRestarts: "2", spec.LabelRestarted: "task1"},
			func(h *history) { ended(ended(h)) }, false, 0, false,
		},
		"without its rule": {
			labels: map[string]string{spec.LabelSpec: ""}, tasks: func(h *history) { ended(h) },
		},
		"restarted already": {
			labels: map[string]string{spec.LabelRestarts: "1", spec.LabelRestarted: "task1"},
			tasks:  func(h *history) { ended(h) },
		},
		"about to start": {tasks: func(h *history) { ended(h).unplaced("") }},
		"stopped": {
			labels: map[string]string{spec.LabelStop: "completed"}, tasks: func(h *history) { ended(h) },
		},
		"staged": {labels: map[string]string{spec.LabelStaged: "true"}, tasks: func(h *history) { ended(h) }},
		"of an earlier run": {
			tasks: func(h *history) { h.task(1, swarm.TaskStateShutdown, swarm.TaskStateFailed, 137, "") },
		},
		"completed": {
			tasks: func(h *history) { h.task(2, swarm.TaskStateShutdown, swarm.TaskStateComplete, 0, "") },
		},
		"rejected": {
			tasks: func(h *history) {
				h.task(2, swarm.TaskStateShutdown, swarm.TaskStateRejected, 0, "network trainyard-lab not found")
			},
			wanted: true, delay: time.Second,
		},
		"lost with its host": {
			tasks:  func(h *history) { h.task(2, swarm.TaskStateShutdown, swarm.TaskStateShutdown, 0, "") },
			wanted: true, delay: time.Second, free: true,
		},
		"lost with its host, and had ended too often": {
			labels: map[string]string{spec.LabelRestarts: "2", spec.LabelRestarted: "task1"},
			tasks: func(h *history) {
				ended(h).task(2, swarm.TaskStateShutdown, swarm.TaskStateOrphaned, 0, "")
			},
			wanted: true, delay: 4 * time.Second, free: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, rule, c.labels)
			c.tasks(h)
			r, wanted := restartOf(h.service, h.tasks)
			if wanted != c.wanted || r.delay != c.delay {
				t.Fatalf("wanted %v after %s, not %v after %s", wanted, r.delay, c.wanted, c.delay)
			}
			if !wanted {
				return
			}
			counted := spec.NumberIn(c.labels, spec.LabelRestarts)
			if !c.free {
				counted++
			}
			next, changed := r.apply(h.service)
			if !changed || spec.NumberIn(next.Labels, spec.LabelRestarts) != counted ||
				next.Labels[spec.LabelRestarted] != r.after.ID || next.TaskTemplate.ForceUpdate != 1 ||
				next.Labels[spec.LabelStarted] == "" {
				t.Errorf("the restart is %v %+v", changed, next)
			}
			// A second restart after the same end does nothing.
			again := h.service
			again.Spec = next
			if _, changed := r.apply(again); changed {
				t.Error("it is restarted twice")
			}
			if _, wanted := restartOf(again, h.tasks); wanted {
				t.Error("it is to be restarted twice")
			}
			stopped := h.service
			stopped.Spec = spec.Stopped(h.service.Spec, domain.StopCompleted)
			if _, changed := r.apply(stopped); changed {
				t.Error("it is restarted after it was stopped")
			}
		})
	}
}
