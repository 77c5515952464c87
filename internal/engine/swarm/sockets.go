package swarm

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"sync"

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

// foundSocket returns where a host has the socket of the Engine that is reached at an address, as far as can be found out; empty where it does not
// answer. An address on this machine tells only where the Engine itself is on this machine: the socket may be a tunnel to elsewhere.
func (e *Engine) foundSocket(ctx context.Context, address string, reached client.APIClient) string {
	info, err := reached.Info(ctx)
	if err != nil {
		return ""
	}
	if found := e.connection.socketAt(address); found != "" {
		return found
	}
	at, err := endpointAt(address)
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

// controllerSocket returns where the controller finds the socket of its host's Engine, which is one path for all hosts, and the managers that
// have it elsewhere. Those in without can't run the controller anyway, and managers of which nothing can be found out have no say: where that is
// all of them, the path stays what it was, if it was any.
func (e *Engine) controllerSocket(ctx context.Context, m manager, cluster domain.Cluster, without []string, was string) (socket string, elsewhere []string, err error) {
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
	var mu sync.Mutex
	sockets := map[string]string{}
	err = inParallel(ctx, nodes, func(ctx context.Context, node swarm.Node) error {
		if node.Spec.Role != swarm.NodeRoleManager || slices.Contains(without, node.ID) {
			return nil
		}
		host, reached := byNode[node.ID], engines[node.ID]
		if reached == m {
			host.Address = e.connection.order()[0] // by which it has answered, however else it is declared
		}
		socket := declaredSocket(byNode[node.ID])
		if socket == "" && reached != nil {
			socket = e.foundSocket(ctx, host.Address, reached)
		}
		if socket != "" {
			mu.Lock()
			defer mu.Unlock()
			sockets[node.ID] = socket
		}
		return nil
	})
	if len(sockets) == 0 && was != "" {
		return was, nil, err
	}
	socket, elsewhere = chooseSocket(sockets)
	return socket, elsewhere, err
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

// checkSockets warns of managers that can't run the controller, as far as is known before the apply: they have the socket of their Engine elsewhere than the others.
func (p *plan) checkSockets(f *facts) {
	sockets := map[string]string{}
	for name, host := range p.cluster.Hosts {
		node, found := f.known(name)
		if host.Role == domain.HostManager || host.Role == "" && found && isManager(node) {
			sockets[name] = cmp.Or(declaredSocket(host), f.sockets[name], endpoint.DefaultSocket)
		}
	}
	socket, elsewhere := chooseSocket(sockets)
	for _, name := range elsewhere {
		p.problems.Warn(domain.Path{"hosts", domain.Key(name), "socket"}, "Manager can't run the controller",
			"the Docker socket of host %q is at %s, that of most managers at %s: the controller can't move to this host. Use the same path on all managers",
			name, sockets[name], socket)
	}
}
