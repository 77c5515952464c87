package swarm

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// placePatience is how long a task may be without a place, as while a node is starting, before nobody waits for it any more.
const placePatience = 30 * time.Second

// Residents returns the controller and the agents by their tasks, which take one request.
func (e *Engine) Residents(ctx context.Context) (domain.Residents, error) {
	document, err := e.Cluster(ctx)
	if err != nil {
		return domain.Residents{}, fmt.Errorf("cluster %q: %w", e.cluster.Name, err)
	}
	services, err := e.reads.services(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	nodes, err := e.reads.nodes(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	tasks, err := e.reads.residents(ctx)
	if err != nil {
		return domain.Residents{}, err
	}
	r := residentView{cluster: document.Spec, nodes: newNodeView(nodes), tasks: byService(tasks), now: time.Now()}
	for _, service := range services {
		if ours(service, e.cluster.Name) && service.Spec.Name == residentName(e.cluster.Name, kindController) {
			r.controller = &service
		}
		if isAgent(service, e.cluster.Name) {
			r.agent = &service
		}
	}
	return r.residents(), nil
}

// residentView is what is known of a cluster's residents.
type residentView struct {
	cluster domain.Cluster
	// controller and agent are the services; nil where they are missing.
	controller, agent *swarm.Service
	tasks             map[string][]swarm.Task
	nodes             nodeView
	now               time.Time
}

func (r residentView) residents() domain.Residents {
	all := domain.Residents{Controller: r.absent(kindController)}
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

// absent is a resident whose service is missing.
func (r residentView) absent(kind string) domain.Resident {
	return domain.Resident{
		State: domain.ResidentAbsent, Error: fmt.Sprintf("service %s is missing", residentName(r.cluster.Name, kind)),
		Advice: "The next apply that changes the cluster or one of its groups creates it again.",
	}
}

// agentOf returns the agent of a host.
func (r residentView) agentOf(name string, host domain.Host) domain.Resident {
	if r.agent == nil {
		return r.absent(kindAgent)
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
	if trouble := r.nodes.trouble(name, host.ID); trouble != "" {
		return domain.Resident{State: domain.ResidentAbsent, Host: name, Error: trouble, Excused: true}
	}
	if !r.nodes.meets(host.ID, r.agent.Spec) {
		agent = domain.Resident{State: domain.ResidentAbsent, Host: name, Error: "it does not have Trainyard's image", Excused: host.Address == ""}
		agent.Advice = r.imageAdvice(name, host)
	}
	return agent
}

// imageAdvice says how Trainyard's image comes to a host.
func (r residentView) imageAdvice(name string, host domain.Host) string {
	const registry = "name an image of Trainyard that the host can pull in the provider's docker.controller_image"
	if node := r.nodes[host.ID]; !runsProgram(node, runtime.GOARCH) {
		return fmt.Sprintf("The image is for %s, and the host is %s: %s.", runtime.GOARCH, node.Description.Platform.Architecture, registry)
	}
	if host.Address == "" {
		return fmt.Sprintf("Declare the host with its address (hosts = { %s = { address = \"ssh://…\" } }), so that the image can be loaded there, or %s.", name, registry)
	}
	return fmt.Sprintf("It could not be loaded there the last time, or was removed since. The next apply that changes the cluster or one of its groups loads it; check that its Docker Engine can be reached at %s.", host.Address)
}

// judge tells a resident from the tasks of its service, or of those on one node; the newest is the last.
func (r residentView) judge(service swarm.Service, own []swarm.Task) domain.Resident {
	own = slices.DeleteFunc(slices.Clone(own), func(t swarm.Task) bool { return t.DesiredState == swarm.TaskStateRemove })
	if len(own) == 0 {
		return domain.Resident{State: domain.ResidentStarting}
	}
	newest := own[len(own)-1]
	resident := domain.Resident{State: domain.ResidentStarting, Host: r.nodes.host(newest.NodeID)}
	if newest.Status.State == swarm.TaskStateRunning && newest.DesiredState == swarm.TaskStateRunning {
		resident.State = domain.ResidentRunning
		return resident
	}
	if !ended(newest) && newest.Status.Err != "" {
		resident.State, resident.Error = domain.ResidentFailing, newest.Status.Err
		resident.Advice = "Add a manager that can run it, or bring one back."
		if r.now.Sub(newest.CreatedAt) > placePatience {
			resident.Attempts = domain.HopelessAttempts
		}
		return resident
	}
	for _, task := range slices.Backward(own) {
		if !ended(task) {
			continue
		}
		if task.CreatedAt.Before(service.UpdatedAt) || task.Status.State == swarm.TaskStateShutdown {
			break
		}
		resident.Attempts++
		if resident.Error == "" {
			resident.Host, resident.Error = r.nodes.host(task.NodeID), taskError(task)
		}
	}
	if resident.Attempts > 0 {
		resident.State = domain.ResidentFailing
		resident.Advice = r.advice(service, resident)
	}
	return resident
}

// taskError says why a task has ended, in the Swarm's words.
func taskError(task swarm.Task) string {
	if task.Status.Err != "" {
		return task.Status.Err
	}
	return fmt.Sprintf("task %s", task.Status.State)
}

// advice says what to do about a resident that fails.
func (r residentView) advice(service swarm.Service, failing domain.Resident) string {
	container := service.Spec.TaskTemplate.ContainerSpec
	for _, m := range container.Mounts {
		if m.Type == mount.TypeBind && strings.Contains(failing.Error, m.Source) && m.Target == socketPath {
			return fmt.Sprintf("The controller needs the socket of the host's Docker Engine. On the host, docker context inspect --format '{{.Endpoints.docker.Host}}' tells where it is: "+
				"set hosts[%q].socket to that path. A host without a socket can't run the controller: have another be a manager.", failing.Host)
		}
	}
	if strings.Contains(failing.Error, container.Image) {
		return r.imageAdvice(failing.Host, r.cluster.Hosts[failing.Host])
	}
	return "Its log says more: docker service logs " + service.Spec.Name + "."
}
