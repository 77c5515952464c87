package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
)

const (
	// listenAddress is the address at which managers listen for each other, Docker's default.
	listenAddress = "0.0.0.0:2377"
)

// Complete fills in the hosts of a cluster from the nodes of the Swarm, and chooses its network's subnet.
func (e Hosts) Complete(ctx context.Context, cluster domain.Cluster) (domain.Cluster, domain.Problems, error) {
	f, err := e.look(ctx, cluster)
	if err != nil {
		return cluster, nil, err
	}
	p, err := e.decide(ctx, f, cluster)
	return p.cluster, p.problems, err
}

// decide returns how the hosts become a cluster. It adds two checks to the plan from the facts: if a network is to be
// created, what conflicts with it on any host, and if it is to be recreated, what prevents that.
func (e Hosts) decide(ctx context.Context, f *facts, cluster domain.Cluster) (plan, error) {
	f.sockets = map[string]string{}
	for name, host := range cluster.Hosts {
		f.sockets[name] = e.Connection.SocketAt(host.Address)
	}
	p := f.plan(cluster)
	if slices.ContainsFunc(p.steps, func(s step) bool { return s.do == createNetwork }) {
		inside := map[string]string{}
		for name, host := range p.cluster.Hosts {
			if node, found := f.known(name); found && node.Status.State == swarm.NodeStateReady && host.Address != "" {
				inside[name] = host.Address
			}
		}
		f.inside = e.askEngines(ctx, inside)
		p = f.plan(cluster)
	}
	anew := slices.ContainsFunc(p.steps, func(s step) bool { return s.do == removeNetwork })
	live, found := dockerapi.OwnNetwork(f.networks, cluster.Name)
	if !anew || !found {
		return p, nil
	}
	services, err := e.Reads.Services(ctx)
	if err != nil {
		return p, err
	}
	p.checkUnused(live, services)
	return p, nil
}

// live returns the hosts of the Swarm without cached reads.
func (e Hosts) live() Hosts {
	e.Swarm = e.Live()
	return e
}

// Form turns the hosts into the cluster: new managers join before others are demoted, one at a time, and hosts that
// were not added to the Swarm for this cluster remain in it.
func (e Hosts) Form(ctx context.Context, cluster domain.Cluster) (domain.Cluster, error) {
	e = e.live()
	f, err := e.look(ctx, cluster)
	if err != nil {
		return cluster, err
	}
	if f.missing == nil {
		if err := e.recallJoined(ctx, f); err != nil {
			return cluster, err
		}
	}
	p, err := e.decide(ctx, f, cluster)
	if err != nil {
		return cluster, err
	}
	if err := errors.Join(p.problems.Err(), p.cluster.Validate().Err()); err != nil {
		return cluster, err
	}
	w := &work{hosts: e, cluster: p.cluster.Name, joined: f.stillJoined(p.cluster)}
	if err := w.take(ctx, p.steps); err != nil {
		return cluster, err
	}
	if !maps.Equal(w.joined, f.joined) {
		if err := e.writeJoined(ctx, w.joined); err != nil {
			return cluster, err
		}
	}
	for name, node := range w.nodes {
		host := p.cluster.Hosts[name]
		host.ID, host.Joined = node.ID, true
		p.cluster.Hosts[name] = host
	}
	is, err := e.Inspect(ctx)
	p.cluster.ID = is.ID
	return p.cluster, err
}

// recallJoined adds the hosts that the Swarm's label records as added, whether or not the cluster was stored since, and
// asks the Engines of those that are neither declared nor known.
func (e Hosts) recallJoined(ctx context.Context, f *facts) error {
	is, err := e.Inspect(ctx)
	if err != nil {
		return err
	}
	if err := readJoined(is.Spec, e.Cluster, f.joined); err != nil {
		return err
	}
	apart := map[string]string{}
	for name, address := range f.joined {
		_, asked := f.engines[name]
		if _, found := f.known(name); !found && !asked && address != "" {
			apart[name] = address
		}
	}
	maps.Copy(f.engines, e.askEngines(ctx, apart))
	return ctx.Err()
}

// stillJoined returns the hosts that were added to the Swarm, except those that are no longer declared and, by their
// own report, no longer in it.
func (f *facts) stillJoined(cluster domain.Cluster) map[string]string {
	joined := map[string]string{}
	for name, address := range f.joined {
		_, declared := cluster.Hosts[name]
		if _, found := f.find(name); declared || found || f.engines[name].err != nil {
			joined[name] = address
		}
	}
	return joined
}

// work carries out steps.
type work struct {
	hosts   Hosts
	cluster string

	mu sync.Mutex
	// joined is the content of the Swarm's label, see [joinedLabel].
	joined map[string]string
	// nodes are those that joined, by host.
	nodes map[string]swarm.Node
}

// take takes the steps in order. Steps that can't interfere with each other are taken in parallel.
func (w *work) take(ctx context.Context, steps []step) error {
	if err := w.noteJoining(ctx, steps); err != nil {
		return err
	}
	for len(steps) > 0 {
		n := 1
		if do := steps[0].do; do == joinWorker || do == amend || do == takeOut {
			for n < len(steps) && steps[n].do == do {
				n++
			}
		}
		if err := dockerapi.InParallel(ctx, steps[:n], w.takeOne); err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

func (w *work) takeOne(ctx context.Context, s step) error {
	var err error
	switch s.do {
	case initialise:
		err = w.initialise(ctx, s)
	case joinManager, joinWorker:
		err = w.join(ctx, s)
	case removeNetwork:
		// the residents use the network; they are started again once the cluster is stored
		if err := w.hosts.daemons.StopController(ctx); err != nil {
			return err
		}
		return w.hosts.removeNetwork(ctx)
	case createNetwork:
		return w.hosts.createNetwork(ctx, s.network)
	case amend:
		err = w.amend(ctx, s)
	case demote:
		err = w.hosts.demote(ctx, s.node)
	case takeOut:
		err = w.leave(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("host %s: %w", s.host, err)
	}
	return nil
}

// noteJoining records which hosts are about to join. A new Swarm is created with that record.
func (w *work) noteJoining(ctx context.Context, steps []step) error {
	noted, made := false, false
	for _, s := range steps {
		switch s.do {
		case initialise, joinManager, joinWorker:
			w.joined[s.host] = s.spec.Address
			noted = true
			made = made || s.do == initialise
		}
	}
	if !noted || made {
		return nil
	}
	return w.hosts.writeJoined(ctx, w.joined)
}

// writeJoined records in the Swarm's label which hosts were added to it.
func (e Hosts) writeJoined(ctx context.Context, joined map[string]string) error {
	for {
		is, err := e.Inspect(ctx)
		if err != nil {
			return err
		}
		labels, err := writeJoined(is.Spec.Labels, e.Cluster, joined)
		if err != nil || maps.Equal(labels, is.Spec.Labels) {
			return err
		}
		is.Spec.Labels = labels
		err = e.Connection.Ask(ctx, func(m dockerapi.Manager) error {
			return m.SwarmUpdate(ctx, is.Version, is.Spec, swarm.UpdateFlags{})
		})
		if !dockerapi.OutOfSequence(err) {
			return err
		}
	}
}

// initialise creates the Swarm.
func (w *work) initialise(ctx context.Context, s step) error {
	at, err := w.hosts.Connection.Client(s.spec.Address)
	if err != nil {
		return err
	}
	labels, err := writeJoined(nil, w.cluster, w.joined)
	if err != nil {
		return err
	}
	_, err = at.SwarmInit(ctx, swarm.InitRequest{
		ListenAddr: listenAddress, AdvertiseAddr: s.spec.AdvertiseAddress,
		Availability: swarm.NodeAvailability(s.spec.Availability),
		Spec:         swarm.Spec{Annotations: swarm.Annotations{Labels: labels}},
	})
	if err == nil {
		return w.arrived(ctx, s, at)
	}
	// The Engine gives a new Swarm 5 s to take its label, and keeps the Swarm if that was too short. It says of itself
	// that it is unavailable if it was in a Swarm before.
	if cerrdefs.IsUnavailable(err) || !w.entering(ctx, at) {
		return explainAdvertise(s, fmt.Errorf("creating the Swarm: %w", err))
	}
	if err := w.arrived(ctx, s, at); err != nil {
		return err
	}
	return w.hosts.writeJoined(ctx, w.joined)
}

// entering reports whether an Engine that failed to enter the Swarm does so all the same: it stops waiting before it
// stops trying.
func (w *work) entering(ctx context.Context, at client.APIClient) bool {
	info, err := at.Info(ctx)
	if err != nil || info.Swarm.LocalNodeState != swarm.LocalNodeStateActive {
		return err == nil && info.Swarm.LocalNodeState == swarm.LocalNodeStatePending
	}
	nodes, err := w.hosts.Reads.Nodes(ctx)
	_, found := (&facts{nodes: nodes}).node(info.Swarm.NodeID)
	return err == nil && found
}

// explainAdvertise adds advice to the error of an Engine that could not determine its own address.
func explainAdvertise(s step, err error) error {
	if s.spec.AdvertiseAddress == "" && cerrdefs.IsInvalidArgument(err) {
		return fmt.Errorf("%w; if the host has several addresses, set the one at which the other hosts reach it: "+
			"advertise_address = \"192.0.2.1\", or the name of its network interface", err)
	}
	return err
}

// join makes a host a node of the Swarm.
func (w *work) join(ctx context.Context, s step) error {
	at, err := w.hosts.Connection.Client(s.spec.Address)
	if err != nil {
		return err
	}
	if s.rejoins {
		if err := at.SwarmLeave(ctx, true); err != nil && !cerrdefs.IsUnavailable(err) {
			return fmt.Errorf("leaving the Swarm, which no longer knows the host: %w", err)
		}
	}
	role := domain.HostWorker
	if s.do == joinManager {
		role = domain.HostManager
	}
	join, err := w.hosts.JoinToken(ctx, role)
	if err != nil {
		return err
	}
	err = at.SwarmJoin(ctx, swarm.JoinRequest{
		ListenAddr: listenAddress, AdvertiseAddr: s.spec.AdvertiseAddress,
		Availability: swarm.NodeAvailability(s.spec.Availability),
		RemoteAddrs:  join.Managers, JoinToken: string(join.Token),
	})
	if err != nil && !w.entering(ctx, at) {
		return explainAdvertise(s, fmt.Errorf("joining the Swarm at %v: %w", join.Managers, err))
	}
	return w.arrived(ctx, s, at)
}

// arrived waits until the Swarm lists the host's node as ready, and as a manager if it is to be one.
func (w *work) arrived(ctx context.Context, s step, at client.APIClient) error {
	var node swarm.Node
	err := dockerapi.Until(ctx, "the host to become a ready node of the Swarm", func() (bool, error) {
		info, err := at.Info(ctx)
		if err != nil || info.Swarm.LocalNodeState == swarm.LocalNodeStateError {
			return false, cmp.Or(err, errors.New(info.Swarm.Error))
		}
		nodes, err := w.hosts.Reads.Nodes(ctx)
		if err != nil {
			return false, err
		}
		var found bool
		node, found = (&facts{nodes: nodes}).node(info.Swarm.NodeID)
		return found && node.Status.State == swarm.NodeStateReady && (!s.manages() || dockerapi.IsReachable(node)), nil
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]swarm.Node{}
	}
	w.nodes[s.host] = node
	return nil
}

// amend corrects a node that is not as specified.
func (w *work) amend(ctx context.Context, s step) error {
	id := s.node.ID
	if id == "" {
		w.mu.Lock()
		id = w.nodes[s.host].ID
		w.mu.Unlock()
	}
	err := w.hosts.amend(ctx, id, func(live swarm.NodeSpec) swarm.NodeSpec { return nodeSpec(live, w.cluster, s.spec) })
	if err != nil || !s.promotes() {
		return err
	}
	return w.hosts.awaitNode(ctx, id, "the host to become a reachable manager", dockerapi.IsReachable)
}

// amend changes the specification of a node, and retries if somebody else changed it in the meantime.
func (e Hosts) amend(ctx context.Context, id string, change func(live swarm.NodeSpec) swarm.NodeSpec) error {
	for {
		err := e.Connection.Ask(ctx, func(m dockerapi.Manager) error {
			node, _, err := m.NodeInspectWithRaw(ctx, id)
			if err != nil {
				return err
			}
			next := change(node.Spec)
			if reflect.DeepEqual(next, node.Spec) {
				return nil
			}
			return m.NodeUpdate(ctx, id, node.Version, next)
		})
		if !dockerapi.OutOfSequence(err) {
			return err
		}
	}
}

// demote makes a manager a worker, and returns once it is no manager and the Swarm has a leader.
func (e Hosts) demote(ctx context.Context, node swarm.Node) error {
	err := e.amend(ctx, node.ID, func(live swarm.NodeSpec) swarm.NodeSpec {
		live.Role = swarm.NodeRoleWorker
		return live
	})
	if err != nil {
		return err
	}
	return e.awaitNode(ctx, node.ID, "the host to be demoted",
		func(node swarm.Node) bool { return node.ManagerStatus == nil })
}

// awaitNode waits until as accepts the node, in a Swarm that has a leader.
func (e Hosts) awaitNode(ctx context.Context, id, what string, as func(swarm.Node) bool) error {
	return dockerapi.Until(ctx, what, func() (bool, error) {
		nodes, err := e.Reads.Nodes(ctx)
		if err != nil {
			return false, err
		}
		led := slices.ContainsFunc(nodes,
			func(n swarm.Node) bool { return n.ManagerStatus != nil && n.ManagerStatus.Leader })
		node, found := (&facts{nodes: nodes}).node(id)
		return led && found && as(node), nil
	})
}
