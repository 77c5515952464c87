//go:build linux

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/swarm"
	"golang.org/x/sync/errgroup"
)

const (
	// swarmPort is the managers' port.
	swarmPort = "2377"
	// Steady is an Options.Heartbeat for beds whose nodes never go down. With a shorter one, a machine that stalls for
	// some seconds makes all nodes miss heartbeats, and the Swarm restarts their tasks.
	Steady = time.Minute
	// defaultHeartbeat is the default of Options.Heartbeat.
	defaultHeartbeat = 3 * time.Second
	// answerLimit is how long to wait for an answer from a manager that may be paused.
	answerLimit = time.Second
)

// formSwarm forms a Swarm of the nodes, and waits until all are ready.
func (b *Bed) formSwarm(ctx context.Context) error {
	first := b.Nodes[0]
	if err := b.initSwarm(ctx, first); err != nil {
		return fmt.Errorf("swarm init on %s: %w", first.Name, err)
	}
	formed, err := first.client.SwarmInspect(ctx)
	if err != nil {
		return err
	}
	var joins errgroup.Group
	for i, node := range b.Nodes[1:] {
		token := formed.JoinTokens.Worker
		if i+1 < b.options.Managers {
			token = formed.JoinTokens.Manager
		}
		joins.Go(func() error {
			return node.Join(ctx, swarm.JoinRequest{
				ListenAddr:    node.swarmAddress(),
				AdvertiseAddr: node.Address.String(),
				RemoteAddrs:   []string{first.swarmAddress()},
				JoinToken:     token,
			})
		})
	}
	if err := joins.Wait(); err != nil {
		return err
	}
	return b.awaitNodes(ctx, []*Node{first}, "all nodes ready", func(nodes []swarm.Node) bool {
		return len(nodes) == len(b.Nodes) && !slices.ContainsFunc(nodes, func(node swarm.Node) bool {
			return node.Status.State != swarm.NodeStateReady
		})
	})
}

// initSwarm initialises the Swarm on a node.
func (b *Bed) initSwarm(ctx context.Context, node *Node) error {
	_, err := node.client.SwarmInit(ctx, swarm.InitRequest{
		ListenAddr:    node.swarmAddress(),
		AdvertiseAddr: node.Address.String(),
		Spec:          swarm.Spec{Dispatcher: swarm.DispatcherConfig{HeartbeatPeriod: b.heartbeat()}},
	})
	if err == nil {
		return nil
	}
	// An Engine gives a new Swarm 5 s to take its settings, which may be too short on a busy machine.
	formed, errFormed := node.client.SwarmInspect(ctx)
	if errFormed != nil {
		return errors.Join(err, errFormed)
	}
	formed.Spec.Dispatcher.HeartbeatPeriod = b.heartbeat()
	return node.client.SwarmUpdate(ctx, formed.Version, formed.Spec, swarm.UpdateFlags{})
}

// Join joins the node to a Swarm. Its Engine stops waiting for that after 20 s, but keeps trying.
func (n *Node) Join(ctx context.Context, request swarm.JoinRequest) error {
	err := n.client.SwarmJoin(ctx, request)
	if err == nil {
		return nil
	}
	info, unknown := n.client.Info(ctx)
	if unknown == nil && (info.Swarm.LocalNodeState == swarm.LocalNodeStatePending ||
		info.Swarm.LocalNodeState == swarm.LocalNodeStateActive) {
		return nil
	}
	return fmt.Errorf("swarm join on %s: %w\n%s", n.Name, errors.Join(err, unknown), n.log())
}

// heartbeat is the interval of the heartbeats of a Swarm that the bed forms.
func (b *Bed) heartbeat() time.Duration { return cmp.Or(b.options.Heartbeat, defaultHeartbeat) }

// usualHeartbeat is Docker's default, plus the most that a dispatcher adds at random.
const usualHeartbeat = 5500 * time.Millisecond

// missedHeartbeats is the number of heartbeat intervals after which a node is surely down: three, plus one since a
// heartbeat may just have been sent.
const missedHeartbeats = 4

// outlastHeartbeats waits until the Swarm considers a node down that has already been silent for this long. If a
// manager noticed it only while the node registers again, it might record that afterwards, and the node would stay down
// despite its heartbeats.
func (b *Bed) outlastHeartbeats(ctx context.Context, silence time.Duration) error {
	if len(b.Nodes) == 1 {
		return nil // there is no manager to notice
	}
	heartbeat := b.heartbeat()
	if b.options.Managers == 0 {
		heartbeat = usualHeartbeat // somebody else formed the Swarm
	}
	select {
	case <-time.After(missedHeartbeats*heartbeat - silence):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// swarmAddress is the node's address as a manager.
func (n *Node) swarmAddress() string { return n.Address.String() + ":" + swarmPort }

// Await waits until another node, a manager, sees the node in this state.
func (b *Bed) Await(ctx context.Context, node *Node, state swarm.NodeState) error {
	others := slices.DeleteFunc(slices.Clone(b.Nodes), func(other *Node) bool { return other == node })
	return b.awaitNodes(ctx, others, fmt.Sprintf("%s %s", node.Name, state), func(nodes []swarm.Node) bool {
		return slices.ContainsFunc(nodes, func(seen swarm.Node) bool {
			return seen.Description.Hostname == node.Name && seen.Status.State == state
		})
	})
}

// awaitNodes waits until the Swarm's nodes, as listed by one of these managers, satisfy a condition. Some of them may
// be down, or be worker nodes.
func (b *Bed) awaitNodes(ctx context.Context, managers []*Node, what string, holds func([]swarm.Node) bool) error {
	look := time.NewTicker(poll)
	defer look.Stop()
	var last error
	for {
		for _, manager := range managers {
			answer, cancel := context.WithTimeout(ctx, answerLimit)
			nodes, err := manager.client.NodeList(answer, swarm.NodeListOptions{})
			cancel()
			if err != nil {
				last = fmt.Errorf("%s: %w", manager.Name, err)
				continue
			}
			if holds(nodes) {
				return nil
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), last))
		}
	}
}
