//go:build linux

package swarm

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// using returns the node whose manager an engine uses.
func using(t *testing.T, e *Engine, bed *testbed.Bed) *testbed.Node {
	t.Helper()
	for _, node := range bed.Nodes {
		if e.Connection.Preferred() == node.Host() {
			return node
		}
	}
	t.Fatal("the engine has another manager")
	return nil
}

// revive starts a manager again, and returns once the first one reaches it.
func revive(ctx context.Context, t *testing.T, bed *testbed.Bed, dead *testbed.Node) {
	t.Helper()
	must(t, dead.Restart(ctx))
	acctest.Eventually(t, dead.Name+" to be back", func() bool {
		nodes, err := bed.Nodes[0].Client().NodeList(ctx, swarm.NodeListOptions{})
		return err == nil && slices.ContainsFunc(nodes, func(n swarm.Node) bool {
			return dockerapi.HostName(n) == dead.Name && dockerapi.IsReachable(n) &&
				n.Status.State == swarm.NodeStateReady
		})
	})
}

// TestManagersDie: the manager that an apply uses is killed before some of its changing calls, or with AllKills before
// each of them, and the apply gets through by another one.
func TestManagersDie(t *testing.T) {
	t.Parallel()
	bed := testbed.New(t, testbed.Options{Nodes: 3, Managers: 3})
	acctest.LoadMember(t, bed, swarmtest.MemberImage)
	ctx := t.Context()
	open := func(nodes ...*testbed.Node) *Engine {
		var others []string
		for _, node := range nodes[1:] {
			others = append(others, node.Host())
		}
		ref := domain.ClusterRef{Engine: Name, Name: "handover", Endpoint: nodes[0].Host()}
		e, err := Open(ref, engine.Settings{Endpoints: others},
			daemons.Program{File: acctest.Build(t, acctest.Provider)})
		must(t, err)
		return e
	}
	first := open(bed.Nodes[0])
	spec, problems, err := first.Complete(ctx, domain.Cluster{
		Name: "handover", Engine: Name, Endpoint: bed.Nodes[0].Host(),
		Network: &domain.Network{Subnet: swarmtest.OwnSubnet() + ".0.0/20"},
	})
	must(t, err)
	must(t, problems.Err())
	spec, err = first.Form(ctx, spec)
	must(t, err)
	_, err = engine.Put(ctx, first, domain.ClusterDocument{Spec: spec})
	must(t, err)

	// The leader is the first node, which the apply doesn't use, so that the others can be killed one after the other.
	e := open(bed.Nodes[1], bed.Nodes[2])
	_, err = engine.Cluster(ctx, e.Items)
	must(t, err)
	var dead *testbed.Node
	var met []string
	one := 1
	group := domain.Group{
		Cluster: "handover", Name: "job", Framework: "none", RestartScope: domain.ScopeMember,
		WaitFor:  domain.WaitRunning,
		Template: domain.Template{Image: swarmtest.MemberImage, Args: []string{"wait"}},
		Roles: map[string]domain.Role{
			"worker": {Replicas: &one, Placement: domain.Placement{Hosts: []string{"node1"}}},
		},
	}
	mortal := reconcile.Reconciler{
		Engine: engine.Intercept(e, func(_ context.Context, call engine.Call, do func() error) error {
			if call.Changes &&
				(acctest.AllKills() || slices.Contains([]string{"Put group", "Start", "Remove"}, call.Name)) {
				if dead != nil {
					revive(ctx, t, bed, dead)
				}
				dead = using(t, e, bed)
				must(t, dead.Kill())
				met = append(met, call.Name+" without "+dead.Name)
			}
			return do()
		}),
	}
	if err := mortal.Update(ctx, group); err != nil {
		t.Fatalf("the apply failed after %q: %v", met, err)
	}
	if len(met) < 3 ||
		!slices.ContainsFunc(met,
			func(m string) bool { return m == "Start without node2" || m == "Start without node3" }) {
		t.Errorf("the deaths were %q", met)
	}
	if err := mortal.Destroy(ctx, group.Name); err != nil {
		t.Fatalf("the destroy failed after %q: %v", met, err)
	}
	revive(ctx, t, bed, dead)

	// When the leader dies, the others elect another one, and callers wait for it.
	e = open(bed.Nodes...)
	_, err = engine.Cluster(ctx, e.Items)
	must(t, err)
	group.Roles["worker"] = domain.Role{Replicas: &one, Placement: domain.Placement{Hosts: []string{"node3"}}}
	leaderless := reconcile.Reconciler{
		Engine: engine.Intercept(e, func(_ context.Context, call engine.Call, do func() error) error {
			if call.Name == "Stage" && using(t, e, bed) == bed.Nodes[0] {
				must(t, bed.Nodes[0].Kill())
			}
			return do()
		}),
	}
	acctest.Eventually(t, "an apply by way of the next leader", func() bool {
		err := leaderless.Update(ctx, group)
		// On a busy machine the election may take longer than callers wait, who then can't release their lock either.
		if _, locked := errors.AsType[*engine.LockedError](err); !locked && !reconcile.Passes(err) {
			must(t, err)
		}
		return err == nil
	})
	if using(t, e, bed) == bed.Nodes[0] {
		t.Error("the leader did not die")
	}
	must(t, leaderless.Destroy(ctx, group.Name))

	// A manager that has left the Swarm doesn't know its present state: its answer proves nothing.
	revive(ctx, t, bed, bed.Nodes[0])
	must(t, bed.Nodes[1].Client().SwarmLeave(ctx, true))
	alone := open(bed.Nodes[1])
	_, err = engine.Cluster(ctx, alone)
	isOpen(t, "read", err)
	_, err = engine.Get[domain.GroupDocument](ctx, alone, group.Name)
	isOpen(t, "read of a group", err)
	isOpen(t, "deletion", alone.Dissolve(ctx))
	if _, err := engine.Cluster(ctx, open(bed.Nodes[1], bed.Nodes[2])); err != nil {
		t.Errorf("by way of another manager: %v", err)
	}

	// A manager without a leader lists only its own node's networks, without an error: that the cluster's is missing
	// there proves nothing either.
	must(t, bed.Nodes[2].Kill())
	acctest.Eventually(t, "the leader to be lost", func() bool {
		_, err := bed.Nodes[0].Client().NodeList(ctx, swarm.NodeListOptions{})
		return err != nil
	})
	networks, err := open(bed.Nodes[0]).Reads.Networks(ctx)
	if _, there := dockerapi.OwnNetwork(networks, "handover"); err == nil && !there {
		t.Errorf("without a leader the network is not among %d", len(networks))
	}
}

// isOpen fails unless err leaves open whether something exists.
func isOpen(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the %s: %v, want an error that is not ErrNotFound", what, err)
	}
}
