package members

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Observe returns the members of a group, or of all groups. It lists services, tasks and nodes once each and, if
// somebody else changed a service, config objects too.
func (e Members) Observe(ctx context.Context, group string) ([]domain.Observed, error) {
	tasks, err := e.Reads.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	return e.observe(ctx, group, tasks)
}

// Specified returns the members as their services specify them. It does without the list of tasks, which is the
// slowest.
func (e Members) Specified(ctx context.Context, group string) ([]domain.Observed, error) {
	return e.observe(ctx, group, nil)
}

func (e Members) observe(ctx context.Context, group string, tasks []swarm.Task) ([]domain.Observed, error) {
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var hosts map[string]string
	if slices.ContainsFunc(services, func(s swarm.Service) bool {
		id := spec.IdentityOf(s)
		return spec.BelongsTo(s, e.Cluster) && id.Group != "" && id.Pooled
	}) {
		cluster, err := e.declared(ctx)
		if err != nil {
			return nil, err
		}
		hosts = dockerapi.HostsOf(cluster)
	}
	view := view{
		cluster: e.Cluster, services: services, seals: e.Reads.Seals(services), tasks: dockerapi.TasksByService(tasks),
		nodes: dockerapi.NewNodes(nodes), hosts: hosts,
		known: sync.OnceValues(func() (spec.Lookup, error) { return e.known(ctx, services) }),
	}
	return view.observe(group)
}

// view is the state of a Swarm.
type view struct {
	cluster  string
	services []swarm.Service
	seals    map[string]spec.Sealed // by service ID
	tasks    map[string][]swarm.Task
	nodes    dockerapi.Nodes
	// hosts are the names of the cluster's hosts by node ID; only members that the Swarm places need them.
	hosts map[string]string
	// known looks up what services refer to; only services that others changed need it.
	known func() (spec.Lookup, error)
}

// observe returns the members of a group, or of all the cluster's groups, sorted by group, role and index.
func (v view) observe(group string) ([]domain.Observed, error) {
	var members []domain.Observed
	there := map[string]bool{}
	for _, service := range v.services {
		there[service.ID] = true
		id := spec.IdentityOf(service)
		if !spec.BelongsTo(service, v.cluster) || id.Group == "" || group != "" && id.Group != group {
			continue
		}
		own := v.observeService(service)
		if v.seals[service.ID].Broken {
			k, err := v.known()
			if err != nil {
				return nil, err
			}
			live := spec.Drift(service, k)
			for i := range own {
				own[i].Live = live
				if id.Pooled {
					shared := spec.Individual(*live, own[i].Index)
					own[i].Live = &shared
				}
			}
		}
		members = append(members, own...)
	}
	for id, tasks := range v.tasks {
		if !there[id] {
			members = append(members, v.observeLeaving(group, tasks)...)
		}
	}
	slices.SortStableFunc(members, func(a, b domain.Observed) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(members, func(a, b domain.Observed) bool { return a.Name == b.Name }), nil
}

// observeService returns the members that a service stands for.
func (v view) observeService(service swarm.Service) []domain.Observed {
	r := v.seals[service.ID].Record
	id := spec.IdentityOf(service)
	var members []domain.Observed
	for _, member := range membersOf(service, v.tasks[service.ID]) {
		o := domain.Observed{
			Name: member.name, Group: id.Group, Role: id.Role, Index: member.index, Host: r.Host, Address: r.Address,
			State:    domain.StatePending,
			Instance: containerOf(member.tasks),
		}
		switch {
		case service.Spec.Labels[spec.LabelStaged] != "":
		case member.leaving && !v.nodes.Awaited(member.tasks[len(member.tasks)-1].NodeID):
			continue
		case member.leaving:
			o.State, o.LastError = domain.StateRunning, "shutting down"
		case id.Pooled:
			v.observeSlot(&o, service, member, r)
		default:
			v.observeMember(&o, service, member, r)
		}
		members = append(members, o)
	}
	if id.Pooled {
		failPaused(members, service, v.tasks[service.ID])
	}
	return members
}

// containerOf returns the running container among a member's tasks. A container without a first health check result
// runs too, though its task counts as starting.
func containerOf(tasks []swarm.Task) (id string) {
	for _, task := range tasks {
		runs := task.Status.State == swarm.TaskStateRunning || task.Status.State == swarm.TaskStateStarting
		if status := task.Status.ContainerStatus; runs && status != nil && status.ContainerID != "" {
			id = status.ContainerID
		}
	}
	return id
}

// observeMember describes the member of a single-replica service.
func (v view) observeMember(o *domain.Observed, service swarm.Service, member instances, r spec.Record) {
	id, labels := spec.IdentityOf(service), service.Spec.Labels
	o.Hash, o.Run = id.Hash, id.Run
	o.Restarts = spec.NumberIn(labels, spec.LabelRestarts)
	if n := spec.Replicas(service.Spec); n != 1 {
		o.Replicas = &n
	}
	runs := runsOf(member.tasks, id.Run)
	o.RunStartedAt, o.OutOfMemory = firstStart(service, runs), outOfMemory(runs)
	stop := labels[spec.LabelStop]
	for _, task := range slices.Backward(runs) {
		if started(task) {
			settle(o, task, ruleAfter(task, r.Restart), stop != "")
			if task.ID == labels[spec.LabelRestarted] ||
				o.State == domain.StateRunning && stop == "" && isReplaced(v.nodes, service, task) {
				o.State = domain.StateRestarting // its next task is about to appear, or to start
			}
			break
		}
	}
	if len(runs) > 0 {
		await(o, runs[len(runs)-1])
	}
	v.markStopped(o, service, runs)
	if o.State != domain.StateCompleted && o.State != domain.StateStopped {
		o.HostTrouble = v.nodes.Trouble(r.Host, spec.PinnedNode(service.Spec))
	}
}

// observeSlot describes a member of an interchangeable role, which the Swarm places and restarts.
func (v view) observeSlot(o *domain.Observed, service swarm.Service, member instances, r spec.Record) {
	id := spec.IdentityOf(service)
	o.Hash, o.Run = id.Hash, id.Run
	if n := spec.Replicas(service.Spec); n == 0 {
		o.Replicas = &n
	}
	runs := runsOf(member.tasks, id.Run)
	o.RunStartedAt, o.OutOfMemory = firstStart(service, runs), outOfMemory(runs)
	ran := slices.DeleteFunc(slices.Clone(runs), func(t swarm.Task) bool { return !started(t) })
	o.Restarts = max(len(ran)-1, 0)
	rule := r.Restart
	rule.Final = nil // the Swarm has no final exit codes
	stop := service.Spec.Labels[spec.LabelStop]
	if len(runs) > 0 && stop == "" {
		rule, o.Restarts = bySwarm(rule, o.Restarts, runs[len(runs)-1])
	}
	if len(ran) > 0 {
		last := ran[len(ran)-1]
		settle(o, last, rule, stop != "")
		if last.Status.State == swarm.TaskStateRejected {
			o.Unstarted = false // the Swarm may choose another host
		}
		if o.State == domain.StateRunning && stop == "" && isReplaced(v.nodes, service, last) {
			o.State = domain.StateRestarting
		}
	}
	var newest swarm.Task
	if len(runs) > 0 {
		newest = runs[len(runs)-1]
		await(o, newest)
	}
	v.markStopped(o, service, runs)
	o.Host = v.nodes.Host(newest.NodeID, v.hosts)
	if o.State.Ended() && len(ran) > 0 {
		o.Host = v.nodes.Host(ran[len(ran)-1].NodeID, v.hosts) // later tasks were never on a host
	}
	if !o.State.Ended() && newest.NodeID != "" {
		o.HostTrouble = v.nodes.Trouble(o.Host, newest.NodeID)
	}
}

// bySwarm returns a slot's restart rule and number of restarts as its newest task shows them. Only the Swarm knows
// whether all attempts are used up: it includes those that ended before they started, and counts anew once its service
// has changed. A task that it restarts gets its successor in the transaction in which it is told to end.
func bySwarm(rule domain.RestartRule, restarts int, newest swarm.Task) (domain.RestartRule, int) {
	retried := rule.Condition == domain.RestartAlways ||
		rule.Condition == domain.RestartOnFailure && newest.Status.State != swarm.TaskStateComplete
	switch {
	case newest.DesiredState != swarm.TaskStateShutdown || !dockerapi.Ended(newest):
		rule.MaxAttempts = 0 // it has not given up
	case retried:
		restarts = max(restarts, rule.MaxAttempts)
	}
	return rule, restarts
}

// markStopped marks a member that does not run as stopped if its service was stopped. One whose task is on a host may
// still start for a moment.
func (v view) markStopped(o *domain.Observed, service swarm.Service, runs []swarm.Task) {
	stop := service.Spec.Labels[spec.LabelStop]
	mayStart := func(t swarm.Task) bool { return t.NodeID != "" && !dockerapi.Ended(t) && v.nodes.Awaited(t.NodeID) }
	if stop == "" || slices.ContainsFunc(runs, mayStart) {
		return
	}
	switch o.State {
	case domain.StatePending, domain.StateRestarting, domain.StateStopped:
		o.State, o.StopReason, o.LastError = domain.StateStopped, domain.StopReason(stop), ""
		if o.FinishedAt == nil {
			o.FinishedAt = &service.UpdatedAt // it was stopped before it had started
		}
	}
}

// failPaused marks one of the members that share a service as failed if the Swarm has paused their update because of a
// failure: the one whose task failed, or else the first that waits for the update.
func failPaused(members []domain.Observed, service swarm.Service, tasks []swarm.Task) {
	if service.UpdateStatus == nil || service.UpdateStatus.State != swarm.UpdateStatePaused {
		return
	}
	isWaiting := func(o domain.Observed) bool { return o.State == domain.StatePending && o.Hash != "" }
	first := slices.IndexFunc(members, isWaiting)
	if first < 0 {
		return // none waits for it any more
	}
	blamed := first
	for i, member := range membersOf(service, tasks) {
		isBlamed := func(t swarm.Task) bool { return strings.Contains(service.UpdateStatus.Message, t.ID) }
		if i < len(members) && members[i].Name == member.name && slices.ContainsFunc(member.tasks, isBlamed) {
			blamed = i
		}
	}
	o := &members[blamed]
	reason := "the Swarm paused the update: " + service.UpdateStatus.Message
	if blamed != first && o.LastError != "" {
		reason = o.LastError + "; " + reason
	}
	o.State, o.LastError = domain.StateFailed, reason
}

// runsOf returns the tasks of a run, in order.
func runsOf(tasks []swarm.Task, run int) []swarm.Task {
	var runs []swarm.Task
	for _, task := range tasks {
		if container := task.Spec.ContainerSpec; container != nil &&
			container.Labels[spec.LabelRun] == strconv.Itoa(run) && task.DesiredState != swarm.TaskStateRemove {
			runs = append(runs, task)
		}
	}
	return runs
}

// started reports whether a task got as far as running, or failing to.
func started(task swarm.Task) bool {
	switch task.Status.State {
	case swarm.TaskStateRunning, swarm.TaskStateComplete, swarm.TaskStateFailed, swarm.TaskStateRejected,
		swarm.TaskStateOrphaned:
		return true
	case swarm.TaskStateShutdown:
		// A task that was never on a host has no container either.
		return task.Status.ContainerStatus != nil && task.Status.ContainerStatus.ContainerID != ""
	}
	return false
}

// firstStart returns when the first instance of a run started; the service's label records it once that task is no
// longer kept.
func firstStart(service swarm.Service, runs []swarm.Task) *time.Time {
	if t, err := time.Parse(time.RFC3339Nano, service.Spec.Labels[spec.LabelStarted]); err == nil {
		return &t
	}
	for _, task := range runs {
		if started(task) {
			return &task.CreatedAt
		}
	}
	return nil
}

// outOfMemory returns the last time at which a task ran out of its allowed memory; nil if none did. A Swarm reports
// only that a task with a limit was killed, but gives a reason if it killed the task itself, as for a failing health
// check.
func outOfMemory(tasks []swarm.Task) *domain.OutOfMemory {
	for _, task := range slices.Backward(tasks) {
		c, r := task.Status.ContainerStatus, task.Spec.Resources
		if task.Status.State == swarm.TaskStateFailed && c != nil && c.ExitCode == killedCode &&
			!strings.Contains(task.Status.Err, unhealthy) && r != nil && r.Limits != nil && r.Limits.MemoryBytes > 0 {
			return &domain.OutOfMemory{At: task.Status.Timestamp, LimitMiB: r.Limits.MemoryBytes / spec.MiB}
		}
	}
	return nil
}

// settle describes the member by the last of its tasks that ran. What follows an end is up to its restart rule; stopped
// means that the member was to be stopped.
func settle(o *domain.Observed, task swarm.Task, rule domain.RestartRule, stopped bool) {
	o.StartedAt = &task.CreatedAt
	status := task.Status
	if status.State == swarm.TaskStateRunning {
		o.State = domain.StateRunning
		return
	}
	o.FinishedAt = &status.Timestamp
	if c := status.ContainerStatus; c != nil && c.ContainerID != "" {
		o.ExitCode = &c.ExitCode
	}
	if stopped &&
		(status.State == swarm.TaskStateRejected || status.State == swarm.TaskStateFailed && value(o.ExitCode) == 0) {
		// Only members that haven't ended are told to stop, so the Swarm ended this one: its constraints no longer
		// hold.
		o.State = domain.StateStopped
		return
	}
	switch status.State {
	case swarm.TaskStateRejected:
		code := refusedCode
		o.ExitCode = &code
		o.State, o.LastError = rule.Judge(code, o.Restarts).State, "could not be started: "+status.Err
		o.Unstarted = !isPassing(status.Err)
	case swarm.TaskStateShutdown, swarm.TaskStateOrphaned:
		// The Swarm ended it, or lost its host: whatever its exit code, it did not end by itself.
		if stopped {
			o.State = domain.StateStopped
			return
		}
		killed := killedCode
		o.ExitCode = &killed
		verdict := rule.Judge(killed, o.Restarts)
		o.State, o.LastError = verdict.State, "stopped by the Swarm, for example because its host was drained or lost"
	default:
		code := value(o.ExitCode)
		verdict := rule.Judge(code, o.Restarts)
		o.State, o.LastError = verdict.State, verdict.Reason
		o.Unstarted = strings.HasPrefix(status.Err, notStarted) && !isPassing(status.Err)
		// Add the Swarm's own message if it says more than the code, such as why the container could not be started.
		if status.Err != "" && status.Err != fmt.Sprintf("task: non-zero exit (%d)", code) {
			o.LastError = strings.TrimPrefix(o.LastError+": "+status.Err, ": ")
		}
	}
}

// unhealthy is in the error of a task that was ended because of its health check.
const unhealthy = "unhealthy"

// notStarted is the start of a task's error if its container never ran.
const notStarted = "starting container failed"

// isPassing reports whether another attempt may start a container that could not be started: Engines now and then fail
// to make the mount of its secrets read-only (moby#48783), a host that has just joined may not know its network, and a
// busy one may take too long. A program may have any name, and its errors stay.
func isPassing(err string) bool { return passing.MatchString(err) && !strings.Contains(err, `exec: "`) }

// passing matches "network" as a word, not in the name of an image.
var passing = regexp.MustCompile(
	`device or resource busy|context deadline exceeded|(^|[\s"(])network([\s"),;]|:\s|:?$)`)

const (
	// killedCode is the exit code of a process killed by SIGKILL.
	killedCode = 137
	// refusedCode is the exit code of a container that its Engine refused to create, as of docker run.
	refusedCode = 125
)

func value(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

// await describes a member whose newest task does not run yet: it is pending, or about to be restarted, and the Swarm
// says what it waits for.
func await(o *domain.Observed, newest swarm.Task) {
	switch newest.Status.State {
	case swarm.TaskStateNew, swarm.TaskStateAllocated, swarm.TaskStatePending, swarm.TaskStateAssigned,
		swarm.TaskStateAccepted,
		swarm.TaskStatePreparing, swarm.TaskStateReady, swarm.TaskStateStarting:
	default:
		return
	}
	switch {
	case o.State == domain.StateRunning: // the previous task has yet to end
	case o.State.Ended(): // it does not run again: its service was stopped
	case o.StartedAt == nil:
		o.State, o.LastError = domain.StatePending, newest.Status.Err
	default:
		o.State, o.LastError, o.Unstarted = domain.StateRestarting, newest.Status.Err, false
	}
}

// observeLeaving returns members whose service is gone, while their last tasks end. Those on a host that is down are
// left out: the Swarm ends them when the host is back.
func (v view) observeLeaving(group string, tasks []swarm.Task) []domain.Observed {
	var members []domain.Observed
	for i, slot := range slotsOf(tasks) {
		task := slot[len(slot)-1]
		id, found := spec.IdentityOfTask(task)
		if !found || id.Cluster != v.cluster || group != "" && id.Group != group ||
			!slices.ContainsFunc(slot, func(t swarm.Task) bool { return v.nodes.Awaited(t.NodeID) }) {
			continue
		}
		if id.Pooled {
			id.Index = i
		}
		members = append(members, domain.Observed{
			Name: id.Member(id.Index), Group: id.Group, Role: id.Role, Index: id.Index,
			State: domain.StateRunning, LastError: "shutting down",
		})
	}
	return members
}
