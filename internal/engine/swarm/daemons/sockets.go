package daemons

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// DeclaredSocket returns a host's socket from its attribute or the path in its SSH address, "" if neither sets one.
func DeclaredSocket(host domain.Host) string {
	if host.Socket != "" {
		return host.Socket
	}
	at, err := endpoint.Parse(host.Address)
	if err == nil && at.Scheme == endpoint.SchemeSSH && at.Socket != endpoint.DefaultSocket {
		return at.Socket
	}
	return ""
}

// foundSocket returns the socket of the Engine at an address, given the one found before, if any; "" if the Engine does
// not answer. The path of a local address counts only if the Engine is on this machine: it may be a tunnel.
func foundSocket(ctx context.Context, address, found string, reached client.APIClient) string {
	info, err := reached.Info(ctx)
	if err != nil {
		return ""
	}
	if found != "" {
		return found
	}
	at, err := dockerapi.EndpointAt(address)
	if err != nil {
		return ""
	}
	here, err := os.Hostname()
	switch {
	case at.Scheme == endpoint.SchemeSSH, at.Scheme == endpoint.SchemeUnix && err == nil && here == info.Name:
		return at.Socket
	}
	return endpoint.DefaultSocket
}

// controllerSocket returns the host path of the Docker socket that the controller mounts, and the managers that have it
// elsewhere. Managers without the image or with an unknown socket don't count; if none counts, the path stays as it is.
func (e Daemons) controllerSocket(ctx context.Context, now swarmState, without []string) (
	socket string, elsewhere []string, err error,
) {
	byNode := map[string]domain.Host{}
	for _, host := range now.cluster.Hosts {
		byNode[host.ID] = host
	}
	var mu sync.Mutex
	sockets := map[string]string{}
	err = dockerapi.InParallel(ctx, now.nodes, func(ctx context.Context, node swarm.Node) error {
		if node.Spec.Role != swarm.NodeRoleManager || slices.Contains(without, node.ID) {
			return nil
		}
		host, reached := byNode[node.ID], now.engines[node.ID]
		if reached == now.manager {
			host.Address = e.Connection.Preferred() // the manager that answered
		}
		socket := DeclaredSocket(byNode[node.ID])
		if socket == "" && reached != nil {
			socket = foundSocket(ctx, host.Address, e.Connection.SocketAt(host.Address), reached)
		}
		if socket != "" {
			mu.Lock()
			defer mu.Unlock()
			sockets[node.ID] = socket
		}
		return nil
	})
	if present := mountedSocket(now.services[spec.ResidentName(e.Cluster, spec.KindController)]); len(sockets) == 0 &&
		present != "" {
		return present, nil, err
	}
	socket, elsewhere = ChooseSocket(sockets)
	return socket, elsewhere, err
}

// ChooseSocket returns the most common path, and the hosts with another one. The default wins a tie, then the first in
// order.
func ChooseSocket(sockets map[string]string) (socket string, elsewhere []string) {
	count := map[string]int{}
	for _, path := range sockets {
		count[path]++
	}
	socket = endpoint.DefaultSocket
	for _, path := range slices.Sorted(maps.Keys(count)) {
		if count[path] > count[socket] {
			socket = path
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		if sockets[name] != socket {
			elsewhere = append(elsewhere, name)
		}
	}
	return socket, elsewhere
}
