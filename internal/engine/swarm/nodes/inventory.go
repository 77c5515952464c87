package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// Inventory returns the hosts with the labels of their nodes, and those that take no members.
func (e Hosts) Inventory(ctx context.Context, cluster domain.Cluster) (engine.Inventory, error) {
	nodes, err := e.Reads.Nodes(ctx)
	if errors.Is(err, dockerapi.ErrNoManager) && joinsLater(cluster) {
		return inventory(cluster, domain.Cluster{}, nil, nil), nil
	}
	if err != nil {
		return engine.Inventory{}, err
	}
	stored, err := engine.Cluster(ctx, e.Items)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return engine.Inventory{}, err
	}
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return engine.Inventory{}, err
	}
	var tasks []swarm.Task
	if slices.ContainsFunc(services, func(s swarm.Service) bool {
		return !isMembers(s, cluster.Name) && reserves(s.Spec.TaskTemplate)
	}) {
		if tasks, err = e.Reads.Tasks(ctx); err != nil {
			return engine.Inventory{}, err
		}
	}
	inv := inventory(cluster, stored.Spec, nodes, tasks)
	inv.Taken = taken(services, cluster.Name)
	return inv, nil
}

// taken maps the names of services that are not members of the cluster to their owners.
func taken(services []swarm.Service, cluster string) map[string]string {
	whose := map[string]string{}
	for _, service := range services {
		switch id := spec.IdentityOf(service); {
		case id.Cluster == "":
			whose[service.Spec.Name] = "a service that is not Trainyard's"
		case id.Cluster != cluster:
			whose[service.Spec.Name] = "a service of cluster " + id.Cluster
		case id.Group == "":
			whose[service.Spec.Name] = "a service of Trainyard's own"
		}
	}
	return whose
}

// joinsLater reports whether the cluster's hosts will form its Swarm when the cluster is applied.
func joinsLater(cluster domain.Cluster) bool {
	for _, host := range cluster.Hosts {
		if host.ID != "" || host.Address == "" {
			return false
		}
	}
	return len(cluster.Hosts) > 0
}

// inventory returns what the hosts offer to a cluster: if it differs from the stored one, what they will offer after an
// apply.
func inventory(cluster, stored domain.Cluster, nodes []swarm.Node, tasks []swarm.Task) engine.Inventory {
	f := &facts{stored: cluster, nodes: nodes}
	inv := engine.Inventory{
		Hosts: map[string]domain.Host{}, Closed: map[string]string{}, Lost: map[string]string{},
		Reserved:  map[string]domain.Resources{},
		Addresses: room(cluster, nodes),
	}
	byNode := map[string]string{}
	view := dockerapi.NewNodes(nodes)
	for name, host := range cluster.Hosts {
		node, found := f.known(name)
		if found {
			byNode[node.ID] = name
			if host.Availability == domain.HostActive && stored.Hosts[name].Availability != domain.HostActive {
				node.Spec.Availability = swarm.NodeAvailabilityActive // the apply makes it active
				view[node.ID] = node
			}
			host = offered(host, stored.Hosts[name], node, cluster.Name)
		}
		inv.Hosts[name] = host
		why, lost := "", true
		switch {
		case !found && host.ID == "" && host.Address != "":
			lost = false // it joins in the apply
		case !found || node.Status.State == swarm.NodeStateDown ||
			node.Spec.Availability == swarm.NodeAvailabilityDrain:
			why = view.Trouble(name, node.ID)
		case host.Availability == domain.HostDrained:
			why = fmt.Sprintf("host %s will be drained", name)
		case host.Availability == domain.HostPaused && node.Spec.Availability == swarm.NodeAvailabilityActive:
			why, lost = fmt.Sprintf("host %s will be paused", name), false
		default:
			// A node with an unknown state, as after the managers elected another leader, is ready or down within
			// seconds.
			why, lost = view.Trouble(name, node.ID), false
		}
		if why != "" {
			inv.Closed[name] = why
		}
		if lost {
			inv.Lost[name] = why
		}
	}
	for _, task := range tasks {
		if name, found := byNode[task.NodeID]; found && !dockerapi.Ended(task) && !isMember(task, cluster.Name) &&
			reserves(task.Spec) {
			r := task.Spec.Resources.Reservations
			has := capacity(r.NanoCPUs, r.MemoryBytes+spec.MiB-1)
			sum := inv.Reserved[name]
			inv.Reserved[name] = domain.Resources{CPUs: sum.CPUs + has.CPUs, MemoryMiB: sum.MemoryMiB + has.MemoryMiB}
		}
	}
	return inv
}

// offered returns a host with what its node has in addition to the declaration: labels, except those that no cluster
// declares any longer, and the capacity if none is given.
func offered(host, stored domain.Host, node swarm.Node, cluster string) domain.Host {
	labels, shared := map[string]string{}, sharedLabels(node.Spec, cluster)
	for key, value := range node.Spec.Labels {
		_, declared := stored.Labels[key]
		if (!declared || slices.Contains(shared, key)) && !strings.HasPrefix(key, spec.LabelPrefix) {
			labels[key] = value
		}
	}
	maps.Copy(labels, host.Labels)
	if len(labels) > 0 {
		host.Labels = labels
	}
	if host.Capacity == (domain.Capacity{}) {
		host.Capacity = capacityOf(node)
	}
	return host
}

// room returns for how many members the cluster's network has addresses, 0 if unknown; a network without room even for
// its nodes gives a negative number.
func room(cluster domain.Cluster, nodes []swarm.Node) int {
	if cluster.Network == nil {
		return 0
	}
	subnet, err := netip.ParsePrefix(cluster.Network.Subnet)
	if err != nil {
		return 0
	}
	if room := addressRoom(subnet, max(len(nodes), len(cluster.Hosts))); room != 0 {
		return room
	}
	return -1
}

// isMember reports whether a task is that of a member of the cluster's groups.
func isMember(task swarm.Task, cluster string) bool {
	id, member := spec.IdentityOfTask(task)
	return member && id.Cluster == cluster
}

// isMembers reports whether a service is that of members of the cluster's groups.
func isMembers(service swarm.Service, cluster string) bool {
	return spec.BelongsTo(service, cluster) && spec.IdentityOf(service).Group != ""
}

// reserves reports whether tasks reserve anything on their hosts.
func reserves(task swarm.TaskSpec) bool {
	return task.Resources != nil && task.Resources.Reservations != nil
}
