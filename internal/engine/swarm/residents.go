package swarm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

const (
	// programPath is where the controller's program is in its image.
	programPath = "/terraform-provider-trainyard"
	// socketPath is where the controller finds the socket of its host's Engine.
	socketPath = "/var/run/docker.sock"
	// hostProc is where an agent finds the process table of its host.
	hostProc = "/host/proc"
	// historyFolder is where the volume is in which an agent leaves what it measured to its successor.
	historyFolder = "/var/lib/trainyard"
)

const (
	// controllerMemory and agentMemory bound the memory of a resident, with room to spare: a controller of 1,000
	// policies takes 100 MB, an agent 40 MB. One that takes more is started anew before its host has none left for
	// members.
	controllerMemory = 1024 * mebibyte
	agentMemory      = 512 * mebibyte
)

// StartController runs this program as two services on the cluster's network: the controller on one of the managers, and an agent on every
// host that has its image. Those that are there already are left alone.
func (e *Engine) StartController(ctx context.Context) error {
	now, err := e.scene(ctx)
	if err != nil {
		return err
	}
	from, err := e.residentImage(ctx, now)
	if err != nil {
		return err
	}
	on, err := e.residentNetwork(ctx)
	if err != nil {
		return err
	}
	e.dropFormer(ctx, now, from.reference)
	m, services := now.manager, now.services
	socket, elsewhere, err := e.controllerSocket(ctx, now, from.without)
	if err != nil {
		return err
	}
	wanted := []residentService{{controllerService(e.cluster.Name, from, on, socket, elsewhere), from.auth}}
	if now.cluster.Agent.Disabled {
		err = e.stop(ctx, kindAgent)
	} else {
		wanted, err = e.withAgents(ctx, now, wanted, from, on)
	}
	if err != nil {
		return err
	}
	return dockerapi.InParallel(ctx, wanted, func(ctx context.Context, want residentService) error {
		live, found := services[want.Name]
		switch {
		case !found:
			_, err := m.ServiceCreate(ctx, want.ServiceSpec, swarm.ServiceCreateOptions{EncodedRegistryAuth: want.auth})
			if err != nil && !cerrdefs.IsConflict(err) {
				return fmt.Errorf("service %q could not be created: %w", want.Name, err)
			}
			return nil
		case !spec.BelongsTo(live, e.cluster.Name):
			return fmt.Errorf("there is a service %q already that is not of cluster %q: remove it, or give the cluster another name", want.Name, e.cluster.Name)
		}
		return e.update(ctx, m, live, want.Name, want.auth, func(live swarm.Service) (swarm.ServiceSpec, bool) {
			next := spec.Overlay(live.Spec, want.ServiceSpec)
			next.TaskTemplate.Networks = slices.Clone(want.TaskTemplate.Networks) // and no former one
			if held := heldKeys(live.Spec); isAgent(live, e.cluster.Name) && len(held) > 0 {
				next = withKeys(next, held) // to change them is up to keepKeys
			}
			return next, !spec.Equal(next, live.Spec)
		})
	})
}

// scene is what is read of a Swarm, once, to start a cluster's residents.
type scene struct {
	manager dockerapi.Manager
	// cluster is the stored one; zero if none is stored.
	cluster domain.Cluster
	nodes   []swarm.Node
	// services are those of the Swarm by name, and engines the reachable Engines by node ID.
	services map[string]swarm.Service
	engines  map[string]client.APIClient
}

// scene reads the Swarm.
func (e *Engine) scene(ctx context.Context) (now scene, err error) {
	if now.manager, err = e.connection.Manager(ctx); err != nil {
		return now, err
	}
	document, err := engine.Cluster(ctx, e.live())
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return now, err
	}
	now.cluster = document.Spec
	if now.nodes, err = dockerapi.Live(e.connection).Nodes(ctx); err != nil {
		return now, err
	}
	if now.services, err = e.services(ctx); err != nil {
		return now, err
	}
	now.engines, err = e.connection.Engines(ctx, e, now.manager)
	return now, err
}

// The kinds of services that are no members.
const (
	kindController = "controller"
	kindAgent      = "agent"
)

// residentService is a service of a resident, and what is shown to the registry of its image.
type residentService struct {
	swarm.ServiceSpec

	auth string
}

// residentNetwork returns the network that the residents are on, the cluster's.
func (e *Engine) residentNetwork(ctx context.Context) (network.Summary, error) {
	networks, err := dockerapi.Live(e.connection).Networks(ctx)
	if err != nil {
		return network.Summary{}, err
	}
	own, found := dockerapi.OwnNetwork(networks, e.cluster.Name)
	if !found {
		return own, fmt.Errorf("network %s is missing, on which the controller and the agents of cluster %q are: apply the cluster again", spec.NetworkName(e.cluster.Name), e.cluster.Name)
	}
	if _, err := netip.ParsePrefix(readNetwork(own).Subnet); err != nil {
		return own, fmt.Errorf("network %s has no subnet, in which the controller and the agents of cluster %q could listen: %w", own.Name, e.cluster.Name, err)
	}
	return own, nil
}

// metricsAt returns where a resident serves /metrics: on the cluster's network, and not on the host's bridge.
func metricsAt(on network.Summary, port int) string {
	return net.JoinHostPort(readNetwork(on).Subnet, strconv.Itoa(port))
}

// controllerService is the service of a cluster's controller, from an image, on a manager that has it or can pull it. On the network it reaches
// what runs in groups by name. Nodes that have their Engine's socket elsewhere can't run it.
func controllerService(cluster string, from residentImage, on network.Summary, socket string, elsewhere []string) swarm.ServiceSpec {
	controller := resident(cluster, from, on, kindController, controllerMemory, "controller", "--engine", Name, "--cluster", cluster,
		"--metrics", metricsAt(on, telemetry.ControllerMetricsPort))
	controller.TaskTemplate.ContainerSpec.Env = []string{taskVariable + "={{.Task.ID}}", collecting(controllerMemory * 7 / 8)}
	controller.TaskTemplate.ContainerSpec.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: socket, Target: socketPath}}
	controller.TaskTemplate.Placement = spec.KeepOff(controller.TaskTemplate.Placement, elsewhere)
	controller.TaskTemplate.Placement.Constraints = append(controller.TaskTemplate.Placement.Constraints, "node.role==manager")
	spec.SetReplicas(&controller, 1)
	return controller
}

// mountedSocket returns the host path of the socket that a controller mounts, "" if it mounts none.
func mountedSocket(controller swarm.Service) string {
	if spec := controller.Spec.TaskTemplate.ContainerSpec; spec != nil {
		for _, m := range spec.Mounts {
			if m.Target == socketPath {
				return m.Source
			}
		}
	}
	return ""
}

// withAgents adds the service of the agents, which run from an image of their own where one is given.
func (e *Engine) withAgents(ctx context.Context, now scene, services []residentService, from residentImage, on network.Summary) ([]residentService, error) {
	if image := now.cluster.Agent.Image; image != "" {
		given, err := e.pulledImage(ctx, now, kindAgent, image, "agent.image")
		if err != nil {
			return nil, err
		}
		from = given
	}
	keys, err := e.agentKeys(ctx, now.manager)
	if err == nil && len(keys) == 0 {
		keys, err = e.addKey(ctx, now.manager, nil)
	}
	if err != nil {
		return nil, err
	}
	return append(services, residentService{agentService(e.cluster.Name, from, on, keys[len(keys)-1]), from.auth}), nil
}

// agentService is the service of a cluster's agents, on all nodes that have their image or can pull it. They know each
// other by a key. What they measure outlasts them in a volume, as another key takes another container.
func agentService(cluster string, from residentImage, on network.Summary, key swarm.Secret) swarm.ServiceSpec {
	measuring := resident(cluster, from, on, kindAgent, agentMemory, "agent", "--keys", keysPath,
		"--history", historyFolder+"/history", "--metrics", metricsAt(on, telemetry.MetricsPort))
	measuring.Mode = swarm.ServiceMode{Global: &swarm.GlobalService{}}
	measuring.TaskTemplate.ContainerSpec.Secrets = []*swarm.SecretReference{keyReference(key)}
	// NVIDIA's container runtime, where it is a host's default, gives the agent the driver's library and all devices to look at.
	measuring.TaskTemplate.ContainerSpec.Env = []string{
		"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility", telemetry.ProcVariable + "=" + hostProc, agent.NodeVariable + "={{.Node.ID}}",
		agent.HostVariable + "=" + spec.HostnameTemplate,
		collecting(agentMemory * 3 / 8), // as one that asks its peers runs beside it
	}
	measuring.TaskTemplate.ContainerSpec.Mounts = []mount.Mount{
		{
			// What is mounted below is left out: Engines before 25 leave that writable, and with binfmt_misc the host.
			Type: mount.TypeBind, Source: "/proc", Target: hostProc, ReadOnly: true,
			BindOptions: &mount.BindOptions{NonRecursive: true},
		},
		{
			Type: mount.TypeVolume, Source: residentName(cluster, kindAgent), Target: historyFolder,
			VolumeOptions: &mount.VolumeOptions{Labels: measuring.Labels},
		},
	}
	// Nothing that it reads takes a capability. Without any, the kernel refuses it the files and memory of others that
	// have one, to which that process table leads: a controller's, with its Docker socket.
	measuring.TaskTemplate.ContainerSpec.CapabilityDrop = []string{allCapabilities}
	measuring.TaskTemplate.ContainerSpec.ReadOnly = true
	return measuring
}

// allCapabilities stands for all capabilities that there are.
const allCapabilities = "ALL"

// collecting returns the variable that makes Go's garbage collector aim at a process below a number of bytes.
func collecting(memory int64) string { return fmt.Sprintf("GOMEMLIMIT=%d", memory) }

// resident is the service of a resident on a network, which alone leads to its ports. The service's name stands for all of its tasks.
func resident(cluster string, from residentImage, on network.Summary, kind string, memory int64, args ...string) swarm.ServiceSpec {
	labels := map[string]string{spec.LabelCluster: cluster, spec.LabelKind: kind}
	return swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: residentName(cluster, kind), Labels: labels},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Image: from.reference, Args: args, Labels: labels},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionAny},
			Placement:     spec.KeepOff(nil, from.without),
			Resources:     &swarm.ResourceRequirements{Limits: &swarm.Limit{MemoryBytes: memory}},
			Networks:      []swarm.NetworkAttachmentConfig{{Target: on.ID}},
		},
		// All hosts get a new version at once: one where it fails doesn't hold up the others.
		UpdateConfig: &swarm.UpdateConfig{FailureAction: swarm.UpdateFailureActionContinue},
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR},
	}
}

// isResident tells whether a service is that of a cluster's controller or agents.
func isResident(service swarm.Service, cluster string) bool {
	return isAgent(service, cluster) || service.Spec.Name == residentName(cluster, kindController) && spec.BelongsTo(service, cluster)
}

// isAgent tells whether a service is that of a cluster's agents.
func isAgent(service swarm.Service, cluster string) bool {
	return service.Spec.Name == residentName(cluster, kindAgent) && spec.BelongsTo(service, cluster)
}

// residentName is the name of the service of a cluster's controller or agents.
func residentName(cluster, kind string) string { return "trainyard-" + cluster + "-" + kind }

// keepOff keeps the agents off nodes where they were rejected: those that joined since the image was loaded have it not, and a Swarm would
// try again for ever. The next start of the controller, which loads it there, tries them anew.
func (e *Engine) keepOff(ctx context.Context, services []swarm.Service, tasks []swarm.Task) error {
	i := slices.IndexFunc(services, func(s swarm.Service) bool { return isAgent(s, e.cluster.Name) })
	if i < 0 {
		return nil
	}
	rejecting := rejectingNodes(services[i], byService(tasks)[services[i].ID])
	if len(rejecting) == 0 {
		return nil
	}
	m, err := e.connection.Manager(ctx)
	if err != nil {
		return err
	}
	return e.update(ctx, m, services[i], services[i].Spec.Name, "", func(live swarm.Service) (swarm.ServiceSpec, bool) {
		next := live.Spec
		next.TaskTemplate.Placement = spec.KeepOff(next.TaskTemplate.Placement, rejecting)
		return next, live.Version == services[i].Version // or else it is looked at again
	})
}

// rejectingNodes returns the nodes that rejected a task of a global service's current version because they lack its
// image. Engines word that differently, but all name the image. They also reject a task if they haven't learned of its
// network yet.
func rejectingNodes(service swarm.Service, own []swarm.Task) []string {
	spec := service.Spec.TaskTemplate.ContainerSpec
	if spec == nil || !isLocal(spec.Image) {
		return nil
	}
	var nodes []string
	for id, task := range newestByNode(own) {
		if id != "" && task.Status.State == swarm.TaskStateRejected && strings.Contains(task.Status.Err, programRepository) && task.CreatedAt.After(service.UpdatedAt) {
			nodes = append(nodes, id)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// newestByNode returns the newest of a global service's tasks on each node.
func newestByNode(own []swarm.Task) map[string]swarm.Task {
	newest := map[string]swarm.Task{}
	for _, task := range own {
		newest[task.NodeID] = task
	}
	return newest
}

// StopController removes the services of the controller and the agents, and returns when their tasks have ended.
func (e *Engine) StopController(ctx context.Context) error {
	return e.stop(ctx, kindController, kindAgent)
}

// stop removes the services of kinds of residents, and returns when their tasks have ended.
func (e *Engine) stop(ctx context.Context, kinds ...string) error {
	m, err := e.connection.Manager(ctx)
	if err != nil {
		return err
	}
	services, err := e.services(ctx)
	if err != nil {
		return err
	}
	ending := map[string]bool{}
	for _, kind := range kinds {
		service, found := services[residentName(e.cluster.Name, kind)]
		if !found || !spec.BelongsTo(service, e.cluster.Name) {
			continue
		}
		if err := m.ServiceRemove(ctx, service.ID); err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("service %q could not be removed: %w", service.Spec.Name, err)
		}
		ending[service.ID] = true
	}
	if len(ending) == 0 {
		return nil
	}
	return e.awaitTasks(ctx, func(t swarm.Task) bool { return ending[t.ServiceID] })
}

// awaitTasks returns when no task is left of which leaving is true and that may still run, as far as its host tells: what is
// on one that is down keeps its last state.
func (e *Engine) awaitTasks(ctx context.Context, leaving func(t swarm.Task) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := e.Watch(ctx)
	if err != nil {
		return err
	}
	for {
		tasks, err := dockerapi.Live(e.connection).Tasks(ctx)
		if err != nil {
			return err
		}
		nodes, err := dockerapi.Live(e.connection).Nodes(ctx)
		if err != nil {
			return err
		}
		view := dockerapi.NewNodes(nodes)
		if !slices.ContainsFunc(tasks, func(t swarm.Task) bool { return leaving(t) && !dockerapi.Ended(t) && view.Awaited(t.NodeID) }) {
			return nil
		}
		if err := engine.Await(ctx, events, time.Time{}); err != nil {
			return err
		}
	}
}
