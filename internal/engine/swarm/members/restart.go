package members

import (
	"context"
	"maps"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Ends maps tasks' IDs to the time at which their end was first seen here: the hosts' clocks need not agree.
type Ends map[string]time.Time

// RestartDue restarts the members whose restart is due, and returns when the next one is.
func (e Members) RestartDue(ctx context.Context, seen Ends) (next time.Time, err error) {
	services, tasks, err := e.Reads.ServicesWithTasks(ctx)
	if err != nil {
		return next, err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return next, err
	}
	now := time.Now()
	current := map[string]bool{}
	var due []restart
	for _, service := range services {
		if !spec.BelongsTo(service, e.Cluster) {
			continue
		}
		r, wanted := restartOf(service, tasks[service.ID])
		if !wanted {
			continue
		}
		current[r.after.ID] = true
		if _, known := seen[r.after.ID]; !known {
			seen[r.after.ID] = now
		}
		if at := seen[r.after.ID].Add(r.delay); at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		due = append(due, r)
	}
	maps.DeleteFunc(seen, func(task string, _ time.Time) bool { return !current[task] })
	return next, dockerapi.InParallel(ctx, due, func(ctx context.Context, r restart) error {
		err := e.UpdateService(ctx, m, r.service, r.service.Spec.Name, "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				return r.apply(live)
			})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// restart is a member that is to be started again.
type restart struct {
	service swarm.Service
	// after is the task that ended.
	after swarm.Task
	delay time.Duration
	// first is when the first instance of the run started.
	first *time.Time
}

// restartOf returns the restart of the service's member, and whether it is to be restarted.
func restartOf(service swarm.Service, own []swarm.Task) (r restart, wanted bool) {
	id := spec.IdentityOf(service)
	labels := service.Spec.Labels
	if id.Pooled || id.Group == "" || labels[spec.LabelStaged] != "" || labels[spec.LabelStop] != "" ||
		spec.Replicas(service.Spec) == 0 {
		return r, false
	}
	member := membersOf(service, own)[0]
	runs := runsOf(member.tasks, id.Run)
	if len(runs) == 0 {
		return r, false
	}
	last := runs[len(runs)-1]
	if last.ID == labels[spec.LabelRestarted] || !dockerapi.Ended(last) {
		return r, false
	}
	kept, found := spec.RecordOf(service.Spec)
	if !found {
		return r, false // its rule is lost: the next apply writes it again
	}
	var o domain.Observed
	view{}.observeMember(&o, service, member, kept)
	if o.State != domain.StateRestarting || o.ExitCode == nil {
		return r, false
	}
	verdict := ruleAfter(last, kept.Restart).Judge(*o.ExitCode, o.Restarts)
	return restart{service: service, after: last, delay: verdict.Delay, first: o.RunStartedAt}, true
}

// endedBySwarm reports whether the Swarm ended a task because its host was drained or lost. That is no attempt of the
// member's.
func endedBySwarm(task swarm.Task) bool {
	return task.Status.State == swarm.TaskStateShutdown || task.Status.State == swarm.TaskStateOrphaned
}

// ruleAfter returns a member's restart rule as it applies to the end of this task.
func ruleAfter(task swarm.Task, rule domain.RestartRule) domain.RestartRule {
	if endedBySwarm(task) {
		rule.MaxAttempts = 0
	}
	return rule
}

// apply returns the service with another instance, unless it has another run or was stopped in the meantime.
func (r restart) apply(live swarm.Service) (swarm.ServiceSpec, bool) {
	next := live.Spec
	labels := live.Spec.Labels
	if spec.IdentityOf(live).Run != spec.IdentityOf(r.service).Run || labels[spec.LabelStop] != "" ||
		labels[spec.LabelRestarted] == r.after.ID {
		return next, false
	}
	next.Labels = maps.Clone(labels)
	if !endedBySwarm(r.after) {
		next.Labels[spec.LabelRestarts] = strconv.Itoa(spec.NumberIn(labels, spec.LabelRestarts) + 1)
	}
	next.Labels[spec.LabelRestarted] = r.after.ID
	if r.first != nil && labels[spec.LabelStarted] == "" {
		next.Labels[spec.LabelStarted] = r.first.Format(time.RFC3339Nano)
	}
	next.TaskTemplate.ForceUpdate++
	return next, true
}
