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
	// swarmPort is where managers listen.
	swarmPort = "2377"
	// Steady is Options.Heartbeat of a bed whose nodes are never down. A machine that stands still for some seconds has
	// all of them miss shorter ones, and the Swarm starts their tasks anew.
	Steady = time.Minute
	// defaultHeartbeat is Options.Heartbeat where none is given.
	defaultHeartbeat = 3 * time.Second
	// answerLimit is how long a manager that may be paused is given to answer.
	answerLimit = time.Second
)

// formSwarm makes the nodes a Swarm, and waits until all are ready.
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

// initSwarm has a node make the Swarm.
func (b *Bed) initSwarm(ctx context.Context, node *Node) error {
	_, err := node.client.SwarmInit(ctx, swarm.InitRequest{
		ListenAddr:    node.swarmAddress(),
		AdvertiseAddr: node.Address.String(),
		Spec:          swarm.Spec{Dispatcher: swarm.DispatcherConfig{HeartbeatPeriod: b.heartbeat()}},
	})
	if err == nil {
		return nil
	}
	// An Engine gives the Swarm that it has made 5 s to take its settings, which may be too few on a busy machine.
	formed, errFormed := node.client.SwarmInspect(ctx)
	if errFormed != nil {
		return errors.Join(err, errFormed)
	}
	formed.Spec.Dispatcher.HeartbeatPeriod = b.heartbeat()
	return node.client.SwarmUpdate(ctx, formed.Version, formed.Spec, swarm.UpdateFlags{})
}

// Join has the node join a Swarm. Its Engine stops waiting for that after 20 s, though it goes on.
func (n *Node) Join(ctx context.Context, request swarm.JoinRequest) error {
	err := n.client.SwarmJoin(ctx, request)
	if err == nil {
		return nil
	}
	info, unknown := n.client.Info(ctx)
	if unknown == nil && (info.Swarm.LocalNodeState == swarm.LocalNodeStatePending || info.Swarm.LocalNodeState == swarm.LocalNodeStateActive) {
		return nil
	}
	return fmt.Errorf("swarm join on %s: %w\n%s", n.Name, errors.Join(err, unknown), n.log())
}

// heartbeat is how often the Swarm's nodes tell that they live.
func (b *Bed) heartbeat() time.Duration { return cmp.Or(b.options.Heartbeat, defaultHeartbeat) }

// missedHeartbeats make a node down; one that was just sent may be one more.
const missedHeartbeats = 4

// outlastHeartbeats returns when the Swarm takes a node for down that has been silent for so long already. A manager
// that finds this out at the moment at which the node registers anew may note it after that, and then the node stays
// down, though it is heard of.
func (b *Bed) outlastHeartbeats(ctx context.Context, silence time.Duration) error {
	if len(b.Nodes) == 1 {
		return nil // nobody hears it
	}
	select {
	case <-time.After(missedHeartbeats*b.heartbeat() - silence):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// swarmAddress is where the node listens as a manager.
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

// awaitNodes waits until one of these managers, of which some may be gone and some be workers, sees what holds of the
// Swarm's nodes.
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
