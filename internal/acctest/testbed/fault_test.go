//go:build linux

package testbed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// answers reports whether a node's engine answers within a second.
func answers(ctx context.Context, node *Node) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := node.Client().Ping(ctx)
	return err == nil
}

// wantAnswer fails unless somebody eventually answers, or doesn't, as wanted. On a busy machine an answer may be late.
func wantAnswer(t *testing.T, who string, want bool, answers func() bool) {
	t.Helper()
	if want {
		acctest.Eventually(t, who+" to answer", answers)
	} else if answers() {
		t.Errorf("%s answers", who)
	}
}

// TestFaults injects faults into different nodes of one bed in parallel, because most of it is waiting for heartbeats.
func TestFaults(t *testing.T) {
	t.Parallel()
	bed := New(t, Options{Nodes: 5, Managers: 1})
	runPeers(t, bed, "victims", 5)
	t.Run("at once", func(t *testing.T) {
		for i, test := range []struct {
			name      string
			fault     func(*Node) error
			undo      func(*Node, context.Context) error
			engine    bool // answers on its socket
			container bool // answers on the network
		}{
			{
				name: "pause", container: true,
				fault: (*Node).Pause,
				undo:  func(node *Node, _ context.Context) error { return node.Resume() },
			}, {
				name: "kill", container: true,
				fault: (*Node).Kill,
				undo:  (*Node).Restart,
			}, {
				name:  "crash",
				fault: (*Node).Crash,
				undo:  (*Node).Restart,
			}, {
				name: "cut", engine: true,
				fault: (*Node).Cut,
				undo:  func(node *Node, _ context.Context) error { return node.Reconnect() },
			},
		} {
			node := bed.Nodes[i+1]
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				ctx := limited(t)
				before, err := node.Client().Info(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := test.fault(node); err != nil {
					t.Fatal(err)
				}
				wantAnswer(t, "the engine", test.engine, func() bool { return answers(ctx, node) })
				wantAnswer(t, "the container", test.container, func() bool {
					name, err := ask(ctx, bed, node, "name")
					return err == nil && name == node.Name
				})
				if err := bed.Await(ctx, node, swarm.NodeStateDown); err != nil {
					t.Fatal(err)
				}
				if err := test.undo(node, ctx); err != nil {
					t.Fatal(err)
				}
				if err := bed.Await(ctx, node, swarm.NodeStateReady); err != nil {
					t.Fatal(err)
				}
				after, err := node.Client().Info(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if after.ID != before.ID || after.Swarm.NodeID != before.Swarm.NodeID {
					t.Errorf("engine %s, node %s has become engine %s, node %s", before.ID, before.Swarm.NodeID,
						after.ID, after.Swarm.NodeID)
				}
				if _, err := node.Client().ImageInspect(ctx, peerRef); err != nil {
					t.Errorf("the node lost its data: %v", err)
				}
			})
		}
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	bed := New(t, Options{Nodes: 1})
	node, ctx := bed.Nodes[0], limited(t)
	loadPeer(t, bed)
	if err := node.Cut(); err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]func() error{
		"running":       func() error { return nil },
		"paused":        node.Pause,
		"killed":        node.Kill,
		"crashed":       node.Crash,
		"crashed twice": func() error { return errors.Join(node.Crash(), node.Crash()) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := before(); err != nil {
				t.Fatal(err)
			}
			if err := node.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := node.Client().ImageInspect(ctx, peerRef); err != nil {
				t.Error(err)
			}
			dial, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if connection, err := bed.DialContext(dial, "tcp", node.Address.String()+":22"); err == nil {
				t.Errorf("the node's cable came back with the engine: %v", connection.Close())
			}
		})
	}
}
