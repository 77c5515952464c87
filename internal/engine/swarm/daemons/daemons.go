// Package daemons runs a cluster's resident services in its Swarm, the controller and the agents, and collects the
// agents' reports.
package daemons

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/members"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/store"
)

const (
	// ProgramPath is the path of the controller's program in its image.
	ProgramPath = "/terraform-provider-trainyard"
	// socketPath is the path of the Engine's socket in the controller's container.
	socketPath = "/var/run/docker.sock"
	// HostProc is the path of the host's /proc in an agent's container.
	HostProc = "/host/proc"
	// historyFolder is the mount point of the volume in which an agent leaves its measurements to its successor.
	historyFolder = "/var/lib/trainyard"
)

const (
	// controllerMemory and agentMemory limit a resident's memory with a margin: a controller of 1,000 policies takes
	// 100 MB, an agent 40 MB. One that exceeds the limit is restarted before it takes its host's memory away from
	// members.
	controllerMemory = 1024 * spec.MiB
	agentMemory      = 512 * spec.MiB
)

// Daemons are the resident services of a cluster: its controller and its agents.
type Daemons struct {
	dockerapi.Swarm

	program Program
	images  images.Images
	members members.Members
}

// New returns the residents of a cluster, which run from program.
func New(in dockerapi.Swarm, program Program, images images.Images, members members.Members) Daemons {
	return Daemons{in, program, images, members}
}

// StartController runs this program as two services on the cluster's network: the controller on one of the managers,
// and an agent on every host that has its image. Services that already match are left alone.
func (e Daemons) StartController(ctx context.Context) error {
	now, err := e.swarmState(ctx)
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
	wanted := []residentService{{controllerService(e.Cluster, from, on, socket, elsewhere), from.auth}}
	if now.cluster.Agent.Disabled {
		err = e.stop(ctx, spec.KindAgent)
	} else {
		wanted, err = e.withAgents(ctx, now, wanted, from, on)
	}
	if err != nil {
		return err
	}
	err = dockerapi.InParallel(ctx, wanted, func(ctx context.Context, want residentService) error {
		live, found := services[want.Name]
		switch {
		case !found:
			_, err := m.ServiceCreate(ctx, want.ServiceSpec, swarm.ServiceCreateOptions{EncodedRegistryAuth: want.auth})
			if err != nil && !cerrdefs.IsConflict(err) {
				return fmt.Errorf("creating service %q: %w", want.Name, err)
			}
			return nil
		case !spec.BelongsTo(live, e.Cluster):
			return fmt.Errorf("service %q already exists and does not belong to cluster %q: remove it, or rename "+
				"the cluster",
				want.Name, e.Cluster)
		}
		return e.UpdateService(ctx, m, live, want.Name, want.auth, func(live swarm.Service) (swarm.ServiceSpec, bool) {
			next := spec.Overlay(live.Spec, want.ServiceSpec)
			next.TaskTemplate.Networks = slices.Clone(want.TaskTemplate.Networks) // without a former network
			if held := heldKeys(live.Spec); isAgent(live, e.Cluster) && len(held) > 0 {
				next = withKeys(next, held) // changing them is up to KeepKeys
			}
			return next, !spec.Equal(next, live.Spec)
		})
	})
	if err != nil {
		return err
	}
	return from.ensure(ctx)
}

// swarmState is the state of a Swarm, read once to start a cluster's residents.
type swarmState struct {
	manager dockerapi.Manager
	// cluster is the stored one; zero if none is stored.
	cluster domain.Cluster
	nodes   []swarm.Node
	// services are those of the Swarm by name, and engines the reachable Engines by node ID.
	services map[string]swarm.Service
	engines  map[string]client.APIClient
}

// swarmState reads the Swarm.
func (e Daemons) swarmState(ctx context.Context) (now swarmState, err error) {
	if now.manager, err = e.Connection.Manager(ctx); err != nil {
		return now, err
	}
	document, err := engine.Cluster(ctx, e.Items)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return now, err
	}
	now.cluster = document.Spec
	if now.nodes, err = dockerapi.Live(e.Connection).Nodes(ctx); err != nil {
		return now, err
	}
	if now.services, err = e.Services(ctx); err != nil {
		return now, err
	}
	now.engines, err = e.Engines(ctx, now.manager)
	return now, err
}

// residentService is a resident's service, and the credentials for its image's registry.
type residentService struct {
	swarm.ServiceSpec

	auth string
}

// residentNetwork returns the network of the residents, which is the cluster's.
func (e Daemons) residentNetwork(ctx context.Context) (network.Summary, error) {
	networks, err := dockerapi.Live(e.Connection).Networks(ctx)
	if err != nil {
		return network.Summary{}, err
	}
	own, found := dockerapi.OwnNetwork(networks, e.Cluster)
	if !found {
		return own, fmt.Errorf(
			"network %s of the controller and the agents of cluster %q is missing: apply the cluster again",
			spec.NetworkName(e.Cluster), e.Cluster,
		)
	}
	if _, err := netip.ParsePrefix(dockerapi.ReadNetwork(own).Subnet); err != nil {
		return own, fmt.Errorf("network %s of the controller and the agents of cluster %q has no valid subnet: %w",
			own.Name, e.Cluster, err)
	}
	return own, nil
}

// metricsAt returns where a resident serves /metrics: on the cluster's network, and not on the host's bridge.
func metricsAt(on network.Summary, port int) string {
	return net.JoinHostPort(dockerapi.ReadNetwork(on).Subnet, strconv.Itoa(port))
}

// NoMetricsPort says why residents have no ports on their hosts, and where they serve metrics.
func NoMetricsPort(cluster string) string {
	return fmt.Sprintf("on a Swarm, agents and the controller serve Prometheus metrics without it, only on the "+
		"cluster's network, at %s:%d and %s:%d. Omit it",

		spec.ResidentName(cluster, spec.KindAgent), telemetry.MetricsPort,
		spec.ResidentName(cluster, spec.KindController), telemetry.ControllerMetricsPort)
}

// controllerService is the service of a cluster's controller, on a manager that has the image or can pull it. Through
// the cluster's network it reaches what runs in groups by name. Nodes with their Engine's socket at another path can't
// run it.
func controllerService(
	cluster string, from residentImage, on network.Summary, socket string, elsewhere []string,
) swarm.ServiceSpec {
	controller := resident(cluster, from, on, spec.KindController, controllerMemory, "controller", "--engine",
		dockerapi.EngineName, "--cluster", cluster,
		"--metrics", metricsAt(on, telemetry.ControllerMetricsPort))
	controller.TaskTemplate.ContainerSpec.Env = []string{
		store.TaskVariable + "={{.Task.ID}}", collecting(controllerMemory * 7 / 8),
	}
	controller.TaskTemplate.ContainerSpec.Mounts = []mount.Mount{
		{Type: mount.TypeBind, Source: socket, Target: socketPath},
	}
	controller.TaskTemplate.Placement = spec.KeepOff(controller.TaskTemplate.Placement, elsewhere)
	controller.TaskTemplate.Placement.Constraints = append(controller.TaskTemplate.Placement.Constraints,
		"node.role==manager")
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

// withAgents adds the service of the agents, which run from their own image if one is configured.
func (e Daemons) withAgents(
	ctx context.Context, now swarmState, services []residentService, from residentImage, on network.Summary,
) ([]residentService, error) {
	if image := now.cluster.Agent.Image; image != "" {
		given, err := e.pulledImage(ctx, now, spec.KindAgent, image, "agent.image")
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
	return append(services, residentService{agentService(e.Cluster, from, on, keys[len(keys)-1]), from.auth}), nil
}

// agentService is the service of a cluster's agents, on all nodes that have their image or can pull it. They
// authenticate each other by a key. Their measurements are kept in a volume, as a new key requires a new container.
func agentService(cluster string, from residentImage, on network.Summary, key swarm.Secret) swarm.ServiceSpec {
	measuring := resident(cluster, from, on, spec.KindAgent, agentMemory, "agent", "--keys", KeysPath,
		"--history", historyFolder+"/history", "--metrics", metricsAt(on, telemetry.MetricsPort))
	measuring.Mode = swarm.ServiceMode{Global: &swarm.GlobalService{}}
	measuring.TaskTemplate.ContainerSpec.Secrets = []*swarm.SecretReference{keyReference(key)}
	// If it is a host's default, NVIDIA's container runtime gives the agent the driver's library and access to all
	// devices.
	measuring.TaskTemplate.ContainerSpec.Env = []string{
		"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility", telemetry.ProcVariable + "=" + HostProc,
		telemetry.NodeVariable + "={{.Node.ID}}",
		telemetry.HostVariable + "=" + spec.HostnameTemplate,
		collecting(agentMemory * 3 / 8), // as another process that queries its peers runs beside it
	}
	measuring.TaskTemplate.ContainerSpec.Mounts = []mount.Mount{
		{
			// Without submounts: Engines before 25 leave those writable, and writing to binfmt_misc gives control of
			// the host.
			Type: mount.TypeBind, Source: "/proc", Target: HostProc, ReadOnly: true,
			BindOptions: &mount.BindOptions{NonRecursive: true},
		},
		{
			Type: mount.TypeVolume, Source: spec.ResidentName(cluster, spec.KindAgent), Target: historyFolder,
			VolumeOptions: &mount.VolumeOptions{Labels: measuring.Labels},
		},
	}
	// Nothing that it reads requires a capability. Without any, the kernel denies it access, through this process
	// table, to files and memory of processes that have one, such as a controller with its Docker socket.
	measuring.TaskTemplate.ContainerSpec.CapabilityDrop = []string{allCapabilities}
	measuring.TaskTemplate.ContainerSpec.ReadOnly = true
	return measuring
}

// allCapabilities stands for all capabilities.
const allCapabilities = "ALL"

// collecting returns the variable that makes Go's garbage collector aim at a process size below a number of bytes.
func collecting(memory int64) string { return fmt.Sprintf("GOMEMLIMIT=%d", memory) }

// resident is the service of a resident on a network, the only one on which its ports are reachable. The service's name
// resolves to all of its tasks.
func resident(
	cluster string, from residentImage, on network.Summary, kind string, memory int64, args ...string,
) swarm.ServiceSpec {
	labels := map[string]string{spec.LabelCluster: cluster, spec.LabelKind: kind}
	return swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: spec.ResidentName(cluster, kind), Labels: labels},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Image: from.reference, Args: args, Labels: labels},
			RestartPolicy: &swarm.RestartPolicy{Condition: swarm.RestartPolicyConditionAny},
			Placement:     spec.KeepOff(nil, from.without),
			Resources:     &swarm.ResourceRequirements{Limits: &swarm.Limit{MemoryBytes: memory}},
			Networks:      []swarm.NetworkAttachmentConfig{{Target: on.ID}},
		},
		// All hosts are updated at once, and a host where that fails doesn't hold up the others.
		UpdateConfig: &swarm.UpdateConfig{FailureAction: swarm.UpdateFailureActionContinue},
		EndpointSpec: &swarm.EndpointSpec{Mode: swarm.ResolutionModeDNSRR},
	}
}

// IsResident reports whether a service is that of a cluster's controller or agents.
func IsResident(service swarm.Service, cluster string) bool {
	return isAgent(service, cluster) ||
		service.Spec.Name == spec.ResidentName(cluster, spec.KindController) && spec.BelongsTo(service, cluster)
}

// isAgent reports whether a service is that of a cluster's agents.
func isAgent(service swarm.Service, cluster string) bool {
	return service.Spec.Name == spec.ResidentName(cluster, spec.KindAgent) && spec.BelongsTo(service, cluster)
}

// StopController removes the services of the controller and the agents, and returns when their tasks have ended.
func (e Daemons) StopController(ctx context.Context) error {
	return e.stop(ctx, spec.KindController, spec.KindAgent)
}

// stop removes the services of kinds of residents, and returns when their tasks have ended.
func (e Daemons) stop(ctx context.Context, kinds ...string) error {
	m, err := e.Connection.Manager(ctx)
	if err != nil {
		return err
	}
	services, err := e.Services(ctx)
	if err != nil {
		return err
	}
	ending := map[string]bool{}
	for _, kind := range kinds {
		service, found := services[spec.ResidentName(e.Cluster, kind)]
		if !found || !spec.BelongsTo(service, e.Cluster) {
			continue
		}
		if err := m.ServiceRemove(ctx, service.ID); err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("removing service %q: %w", service.Spec.Name, err)
		}
		ending[service.ID] = true
	}
	if len(ending) == 0 {
		return nil
	}
	return e.members.AwaitTasks(ctx, func(t swarm.Task) bool { return ending[t.ServiceID] })
}
