package swarm

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"

	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/endpoint"
)

// declaredSocket returns where a host is said to have its Engine's socket, by its own attribute or the path in its SSH address; empty where
// neither says it.
func declaredSocket(host domain.Host) string {
	if host.Socket != "" {
		return host.Socket
	}
	at, err := endpoint.Parse(host.Address)
	if err == nil && at.Scheme == endpoint.SchemeSSH && at.Socket != endpoint.DefaultSocket {
		return at.Socket
	}
	return ""
}

// socketOf returns where a host has its Engine's socket, by what is said and what is found of it. An address on this machine tells only
// where the Engine itself is on this machine: the socket may be a tunnel to elsewhere.
func (e *Engine) socketOf(ctx context.Context, host domain.Host, reached client.APIClient) (string, error) {
	if declared := declaredSocket(host); declared != "" {
		return declared, nil
	}
	if found := e.connection.socketAt(host.Address); found != "" {
		return found, nil
	}
	at, err := endpointAt(host.Address)
	if err != nil || at.Scheme != endpoint.SchemeUnix || at.Socket == endpoint.DefaultSocket || reached == nil {
		return endpoint.DefaultSocket, err
	}
	info, err := reached.Info(ctx)
	if err != nil {
		return "", err
	}
	if here, err := os.Hostname(); err == nil && here == info.Name {
		return at.Socket, nil
	}
	return endpoint.DefaultSocket, nil
}

// controllerSocket returns where the controller finds the socket of its host's Engine, which is one path for all hosts, and the managers that
// have it elsewhere. Those in without can't run the controller anyway.
func (e *Engine) controllerSocket(ctx context.Context, m manager, cluster domain.Cluster, without []string) (socket string, elsewhere []string, err error) {
	nodes, err := liveReads(e.connection).nodes(ctx)
	if err != nil {
		return "", nil, err
	}
	engines, err := e.engines(ctx, m)
	if err != nil {
		return "", nil, err
	}
	byNode := map[string]domain.Host{}
	for _, host := range cluster.Hosts {
		byNode[host.ID] = host
	}
	sockets := map[string]string{}
	for _, node := range nodes {
		if node.Spec.Role != swarm.NodeRoleManager || slices.Contains(without, node.ID) {
			continue
		}
		host := byNode[node.ID]
		if host.Address == "" && engines[node.ID] == m {
			host.Address = e.connection.order()[0] // by which it has answered
		}
		if sockets[node.ID], err = e.socketOf(ctx, host, engines[node.ID]); err != nil {
			return "", nil, err
		}
	}
	socket, elsewhere = chooseSocket(sockets)
	return socket, elsewhere, nil
}

// chooseSocket returns the path at which most have their socket, and who has it elsewhere. Among paths that as many have, the default counts,
// or else the first.
func chooseSocket(sockets map[string]string) (socket string, elsewhere []string) {
	count := map[string]int{endpoint.DefaultSocket: 0}
	for _, path := range sockets {
		count[path]++
	}
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(count)), func(path string) bool { return path == endpoint.DefaultSocket })
	paths = append([]string{endpoint.DefaultSocket}, paths...)
	socket = slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(count[a], count[b]) }) // the first of equals
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		if sockets[name] != socket {
			elsewhere = append(elsewhere, name)
		}
	}
	return socket, elsewhere
}

// checkSockets warns of managers that can't run the controller, as they have the socket of their Engine elsewhere than the others.
func (p *plan) checkSockets(f *facts) {
	sockets := map[string]string{}
	for name, host := range p.cluster.Hosts {
		node, found := f.known(name)
		if host.Role == domain.HostManager || host.Role == "" && found && isManager(node) {
			sockets[name] = cmp.Or(declaredSocket(host), endpoint.DefaultSocket)
		}
	}
	socket, elsewhere := chooseSocket(sockets)
	for _, name := range elsewhere {
		p.problems.Warn(domain.Path{"hosts", domain.Key(name), "socket"}, "Manager can't run the controller",
			"host %q has the socket of its Docker Engine at %s, and the controller finds that of most managers at %s: should those fail, it runs on no other. Have all managers listen at the same path",
			name, sockets[name], socket)
	}
}
