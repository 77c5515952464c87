package daemons

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Residents returns the states of the controller and the agents. Their tasks take one request.
func (e Daemons) Residents(ctx context.Context) (domain.Residents, error) {
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil {
		return domain.Residents{}, fmt.Errorf("cluster %q: %w", e.Cluster, err)
	}
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	nodes, err := e.Reads.Nodes(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	tasks, err := e.Reads.Residents(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	r := residentView{
		cluster: document.Spec, nodes: dockerapi.NewNodes(nodes), hosts: dockerapi.HostsOf(document.Spec),
		tasks: dockerapi.TasksByService(tasks), now: time.Now(),
	}
	for _, service := range services {
		if spec.BelongsTo(service, e.Cluster) &&
			service.Spec.Name == spec.ResidentName(e.Cluster, spec.KindController) {
			r.controller = &service
		}
		if isAgent(service, e.Cluster) {
			r.agent = &service
		}
	}
	return r.residents(), nil
}

// residentView is what is known about a cluster's residents.
type residentView struct {
	cluster domain.Cluster
	// controller and agent are their services; nil if missing.
	controller, agent *swarm.Service
	tasks             map[string][]swarm.Task
	nodes             dockerapi.Nodes
	// hosts are the names of the cluster's hosts by node ID.
	hosts map[string]string
	now   time.Time
}

func (r residentView) residents() domain.Residents {
	all := domain.Residents{Controller: r.absent(spec.KindController)}
	if r.controller != nil {
		all.Controller = r.judge(*r.controller, r.tasks[r.controller.ID])
	}
	if r.cluster.Agent.Disabled {
		return all
	}
	all.Agents = map[string]domain.Resident{}
	for name, host := range r.cluster.Hosts {
		all.Agents[name] = r.agentOf(name, host)
	}
	return all
}

// absent returns the state of a resident without a service.
func (r residentView) absent(kind string) domain.Resident {
	return domain.Resident{
		State:  domain.ResidentAbsent,
		Error:  fmt.Sprintf("service %s is missing", spec.ResidentName(r.cluster.Name, kind)),
		Advice: "The next apply that changes the cluster or a group recreates it.",
	}
}

// agentOf returns the state of a host's agent.
func (r residentView) agentOf(name string, host domain.Host) domain.Resident {
	if r.agent == nil {
		return r.absent(spec.KindAgent)
	}
	own := slices.DeleteFunc(slices.Clone(r.tasks[r.agent.ID]), func(t swarm.Task) bool { return t.NodeID != host.ID })
	agent := domain.Resident{State: domain.ResidentStarting}
	if len(own) > 0 {
		agent = r.judge(*r.agent, own)
	}
	agent.Host = name
	if agent.State == domain.ResidentRunning {
		return agent
	}
	if trouble := r.nodes.Trouble(name, host.ID); trouble != "" {
		return domain.Resident{State: domain.ResidentAbsent, Host: name, Error: trouble, Excused: true}
	}
	if !r.nodes.Meets(host.ID, r.agent.Spec) {
		agent = domain.Resident{
			State: domain.ResidentAbsent, Host: name, Error: "the host lacks Trainyard's image",
			Excused: host.Address == "",
		}
		agent.Advice = r.imageAdvice(name, host)
	}
	return agent
}

// imageAdvice says how to get Trainyard's image onto a host.
func (r residentView) imageAdvice(name string, host domain.Host) string {
	const registry = "set the provider's docker.controller_image to a Trainyard image that the host can pull"
	if node, found := r.nodes[host.ID]; found && !runsProgram(node, runtime.GOARCH) {
		return fmt.Sprintf("The image is built for %s, the host is %s: %s.", runtime.GOARCH,
			node.Description.Platform.Architecture, registry)
	}
	if host.Address == "" {
		return fmt.Sprintf("Declare the host with its address (hosts = { %s = { address = \"ssh://…\" } }), so that "+
			"the image can be loaded there, or %s.", name, registry)
	}
	return fmt.Sprintf("Loading it failed, or it was removed since. Check that the host's Docker Engine answers at "+
		"%s; the next apply that changes the cluster or a group loads it.", host.Address)
}

// judge returns a resident's state from the tasks of its service, or those of one node, oldest first.
func (r residentView) judge(service swarm.Service, own []swarm.Task) domain.Resident {
	own = slices.DeleteFunc(slices.Clone(own),
		func(t swarm.Task) bool { return t.DesiredState == swarm.TaskStateRemove })
	if len(own) == 0 {
		return domain.Resident{State: domain.ResidentStarting}
	}
	newest := own[len(own)-1]
	resident := domain.Resident{State: domain.ResidentStarting, Host: r.nodes.Host(newest.NodeID, r.hosts)}
	if newest.Status.State == swarm.TaskStateRunning && outdated(newest, service) {
		return resident // about to be replaced
	}
	if newest.Status.State == swarm.TaskStateRunning && newest.DesiredState == swarm.TaskStateRunning {
		// One that just failed may fail again. The host's clock may be ahead of this one.
		if len(own) == 1 || !crashed(own[len(own)-2], service) ||
			r.now.Sub(newest.Status.Timestamp).Abs() > domain.ResidentSettled {
			resident.State = domain.ResidentRunning
		}
		return resident
	}
	if !dockerapi.Ended(newest) && newest.Status.Err != "" {
		resident.State, resident.Error = domain.ResidentFailing, newest.Status.Err
		if service.Spec.Mode.Global == nil {
			resident.Advice = "Add a manager that can run it, or bring one back."
		}
		return resident
	}
	for _, task := range slices.Backward(own) {
		if !dockerapi.Ended(task) {
			continue
		}
		if task.CreatedAt.Before(service.UpdatedAt) || task.Status.State == swarm.TaskStateShutdown ||
			task.Status.Timestamp.Sub(task.CreatedAt) > domain.ResidentInARow {
			break
		}
		resident.Attempts++
		if resident.Error == "" {
			resident.Host, resident.Error = r.nodes.Host(task.NodeID, r.hosts), taskError(task)
		}
	}
	if resident.Attempts > 0 {
		resident.State = domain.ResidentFailing
		resident.Advice = r.advice(service, resident)
	}
	return resident
}

// outdated reports whether a task is from an earlier version of its service.
func outdated(task swarm.Task, service swarm.Service) bool {
	is, should := task.Spec, service.Spec.TaskTemplate
	return is.ForceUpdate != should.ForceUpdate || !reflect.DeepEqual(is.ContainerSpec, should.ContainerSpec)
}

// crashed reports whether a task of the service's current version failed.
func crashed(task swarm.Task, service swarm.Service) bool {
	return task.Status.State == swarm.TaskStateFailed && !task.CreatedAt.Before(service.UpdatedAt)
}

// taskError returns why a task ended, as the Swarm reports it.
func taskError(task swarm.Task) string {
	if task.Status.Err != "" {
		return task.Status.Err
	}
	return fmt.Sprintf("task %s", task.Status.State)
}

// advice says what to do about a failing resident.
func (r residentView) advice(service swarm.Service, failing domain.Resident) string {
	container := service.Spec.TaskTemplate.ContainerSpec
	for _, m := range container.Mounts {
		if m.Type == mount.TypeBind && strings.Contains(failing.Error, m.Source) && m.Target == socketPath {
			return fmt.Sprintf("The controller mounts the host's Docker socket. Run docker context inspect --format "+
				"'{{.Endpoints.docker.Host}}' on the host, "+
				"and set hosts[%q].socket to the path after unix://. A host without a socket can't run the "+
				"controller: make another host a manager.", failing.Host)
		}
	}
	if images.IsLocal(container.Image) && strings.Contains(failing.Error, container.Image) {
		return r.imageAdvice(failing.Host, r.cluster.Hosts[failing.Host])
	}
	return "See docker service logs " + service.Spec.Name + "."
}
