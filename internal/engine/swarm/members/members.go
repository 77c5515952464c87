// Package members runs the members of groups as services of a Swarm, and reports on them: it stages, starts, stops and
// removes them, restarts those that ended, watches them, and reads their logs.
package members

import (
	"context"
	"fmt"
	"maps"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Members are the members of a cluster's groups, as services of the Swarm.
type Members struct {
	dockerapi.Swarm

	images images.Images
	memory *Memory
}

// Memory is the state of members kept between calls.
type Memory struct {
	staged  *staged
	watcher *watcher
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{newStaged(), &watcher{}} }

// New returns the members of a cluster, which run from its images.
func New(in dockerapi.Swarm, images images.Images, known *Memory) Members {
	return Members{in, images, known}
}

// Stage creates the first missing service of each role, without any task, to learn that the Swarm accepts the role's
// services before any member starts. All other changes are kept until [Members.Start].
func (e Members) Stage(ctx context.Context, specs []domain.MemberSpec) error {
	services, err := e.Services(ctx)
	if err != nil {
		return err
	}
	for _, member := range specs {
		name := spec.ServiceName(member)
		if existing, found := services[name]; found && !spec.BelongsTo(existing, e.Cluster) {
			return fmt.Errorf(
				"service %q already exists and does not belong to cluster %q: remove it, or rename the group "+
					"or the role",
				name, e.Cluster,
			)
		}
	}
	changes, err := e.prepare(ctx, specs, services)
	if err != nil {
		return err
	}
	for _, c := range changes {
		e.memory.staged.put(c)
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	firsts := map[string]change{} // by role
	for _, c := range slices.Backward(changes) {
		if _, found := services[c.want.Name]; !found {
			firsts[c.want.Labels[spec.LabelRole]] = c
		}
	}
	return dockerapi.InParallel(ctx, slices.Collect(maps.Values(firsts)), func(ctx context.Context, c change) error {
		c.want.Labels = maps.Clone(c.want.Labels)
		c.want.Labels[spec.LabelStaged] = "true"
		spec.SetReplicas(&c.want, 0)
		_, err := create(ctx, m, c)
		return err
	})
}

// create creates a service, unless there is one with its name.
func create(ctx context.Context, m dockerapi.Manager, c change) (created bool, err error) {
	_, err = m.ServiceCreate(ctx, c.want, swarm.ServiceCreateOptions{EncodedRegistryAuth: c.auth})
	if cerrdefs.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating service %q: %w", c.want.Name, err)
	}
	return true, nil
}

// Start applies what is staged. A service that matches, or differs only in labels, is not disturbed.
func (e Members) Start(ctx context.Context, group string, run int) error {
	changes := e.memory.staged.take(group, run)
	if len(changes) == 0 {
		return nil
	}
	services, err := e.Services(ctx)
	if err != nil {
		return err
	}
	if err := e.awaitEnding(ctx, changes, services); err != nil {
		return err
	}
	if services, err = e.endFirst(ctx, changes, services); err != nil {
		return err
	}
	for i, c := range changes {
		live, found := services[c.want.Name]
		changes[i].starts = !found || live.Spec.Labels[spec.LabelStaged] != ""
	}
	return e.startInTurns(ctx, run, changes, func(ctx context.Context, m dockerapi.Manager, c change) error {
		if _, found := services[c.want.Name]; !found {
			if created, err := create(ctx, m, c); created || err != nil {
				return err
			}
		}
		return e.UpdateService(ctx, m, services[c.want.Name], c.want.Name, c.auth, c.apply)
	})
}

// Stop makes the members' services impossible to place: unlike a service without replicas, such a service keeps its
// last task, with exit code and log.
func (e Members) Stop(ctx context.Context, runs map[string]int, reason domain.StopReason) error {
	services, err := dockerapi.Live(e.Connection).Services(ctx)
	if err != nil {
		return err
	}
	observed, err := e.Observe(ctx, "")
	if err != nil {
		return err
	}
	running := maps.Clone(runs)
	for _, o := range observed {
		if o.State.Ended() {
			delete(running, o.Name)
		}
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	stops := func(s swarm.Service) bool {
		return slices.ContainsFunc(membersOf(s, nil), func(i instances) bool {
			run, found := running[i.name]
			return found && run == spec.IdentityOf(s).Run
		})
	}
	concerned := slices.DeleteFunc(slices.Clone(services), func(s swarm.Service) bool {
		return !spec.BelongsTo(s, e.Cluster) || !stops(s)
	})
	return dockerapi.InParallel(ctx, concerned, func(ctx context.Context, service swarm.Service) error {
		err := e.UpdateService(ctx, m, service, service.Spec.Name, "",
			func(live swarm.Service) (swarm.ServiceSpec, bool) {
				return spec.Stopped(live.Spec, reason), live.Spec.Labels[spec.LabelStop] == "" && stops(live)
			})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// Remove removes the members' services, which ends their tasks; for an interchangeable role it removes replicas.
func (e Members) Remove(ctx context.Context, names []string) error {
	services, err := dockerapi.Live(e.Connection).Services(ctx)
	if err != nil {
		return err
	}
	tasks, err := dockerapi.Live(e.Connection).Tasks(ctx)
	if err != nil {
		return err
	}
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	removed := map[string]bool{}
	for _, name := range names {
		removed[name] = true
	}
	of := dockerapi.TasksByService(tasks)
	concerned := slices.DeleteFunc(slices.Clone(services), func(s swarm.Service) bool {
		staying, kept := staying(s, of[s.ID], removed)
		return !spec.BelongsTo(s, e.Cluster) || kept == staying
	})
	return dockerapi.InParallel(ctx, concerned, func(ctx context.Context, service swarm.Service) error {
		var err error
		if _, kept := staying(service, of[service.ID], removed); kept == 0 {
			e.memory.staged.drop(service.Spec.Name)
			err = m.ServiceRemove(ctx, service.ID)
		} else {
			// Even if nothing changes: a Swarm forgets to remove a task whose state changes at the same moment, and
			// only checks again at the next update of its service.
			err = e.UpdateService(ctx, m, service, service.Spec.Name, "",
				func(live swarm.Service) (swarm.ServiceSpec, bool) {
					next := live.Spec
					spec.SetReplicas(&next, min(kept, spec.Replicas(live.Spec)))
					return next, true
				})
		}
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("removing service %q: %w", service.Spec.Name, err)
		}
		return nil
	})
}

// staying returns how many members of a service are not leaving yet, and how many of them remain after the removal. A
// service whose identity is lost has none of the cluster's members.
func staying(service swarm.Service, tasks []swarm.Task, removed map[string]bool) (staying, kept int) {
	for _, member := range membersOf(service, tasks) {
		if member.leaving {
			continue
		}
		staying++
		if !removed[member.name] {
			kept++
		}
	}
	return staying, kept
}

// awaitEnding returns when the tasks of changed services that were told to end have ended: a Swarm only waits for those
// that it tells to end itself, and would start their successors beside the others. A task that was not told to end is
// replaced like any other, and so are the members that share a service, unless they were stopped.
func (e Members) awaitEnding(ctx context.Context, changes []change, services map[string]swarm.Service) error {
	replaced := map[string]bool{}
	for _, c := range changes {
		service, found := services[c.want.Name]
		stopped := service.Spec.Labels[spec.LabelStop] != ""
		if found && service.Spec.Labels[spec.LabelStaged] == "" && (stopped || !c.pooled) {
			replaced[service.ID] = true
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	return e.AwaitTasks(ctx, func(t swarm.Task) bool { return replaced[t.ServiceID] && isEnding(t) })
}

// isEnding reports whether a task was told to end, and may still run on its host.
func isEnding(task swarm.Task) bool {
	switch task.DesiredState {
	case swarm.TaskStateComplete, swarm.TaskStateShutdown, swarm.TaskStateRemove:
		return task.NodeID != "" && !dockerapi.Ended(task)
	}
	return false
}

func keepLabels(labels, live map[string]string, names ...string) {
	for _, name := range names {
		if kept, found := live[name]; found {
			labels[name] = kept
		}
	}
}
