//go:build linux

package swarm_test

import (
	"fmt"
	"slices"
	"testing"

	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// isDegraded returns a check that the group is degraded for this reason.
func (l *swarmLab) isDegraded(reason string) func() error {
	return func() error {
		group, err := reconcile.Reconciler{Engine: l.engine()}.Read(l.Context(), l.name)
		l.must(err)
		return acceptance.Differences(domain.Progress{Phase: domain.PhaseDegraded, Reason: reason}, group.Progress)
	}
}

// What happened to hosts shows in the plan at what is declared about them, and otherwise in the group's phase.
func TestAccSwarmDriftOfHosts(t *testing.T) {
	acceptance.Test(t)
	bed := ownBed(t, testbed.Options{Nodes: 3, Managers: 1, Heartbeat: slowHeartbeat})
	l := newSwarmLab(t, bed, "hosts")
	w := newSwarmWorkspace(l)
	w.configure(l.formed(map[string]string{"node1": `role = "manager"`, "node2": "", "node3": ""}), l.group(`
  image    = "`+memberImage+`"
  args     = ["ignore", "wait"]
  timeouts = { create = "10m", update = "10m" }
  roles    = { worker = { replicas = 3, placement = { strategy = "one_per_host" }, grace_period = "1s" } }`))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("after the first apply")

	third := bed.Nodes[2]
	available := func(a dockerswarm.NodeAvailability) {
		l.updateNode(third.Name, func(n *dockerswarm.NodeSpec) { n.Availability = a })
	}
	remove := func() {
		node := l.node(third.Name)
		l.must(third.Client().SwarmLeave(t.Context(), true))
		l.must(bed.Await(t.Context(), third, dockerswarm.NodeStateDown))
		l.must(bed.Nodes[0].Client().NodeRemove(t.Context(), node.ID, dockerswarm.NodeRemoveOptions{Force: true}))
	}
	join := func() {
		is, err := bed.Nodes[0].Client().SwarmInspect(t.Context())
		l.must(err)
		l.must(third.Join(t.Context(), dockerswarm.JoinRequest{
			ListenAddr: "0.0.0.0:2377", RemoteAddrs: []string{bed.Nodes[0].Address.String() + ":2377"},
			JoinToken: is.JoinTokens.Worker,
		}))
	}
	var former dockerswarm.Node
	has := l.node(third.Name).Description.Resources
	cpus, memory := fmt.Sprint(has.NanoCPUs/1e9), fmt.Sprint(has.MemoryBytes>>20)
	runs := func() bool { return l.tasks()["hosts-worker-2"] != "" }
	var results table
	for _, d := range []drift{{
		what: "node paused", by: func() { available(dockerswarm.NodeAvailabilityPause) },
		as: l.isDegraded("host node3 is paused: hosts-worker-2"),
	}, {
		what: "node drained", by: func() {
			available(dockerswarm.NodeAvailabilityDrain)
			acctest.Eventually(l, "hosts-worker-2 to end", func() bool { return !runs() })
		},
		as: l.isDegraded("host node3 is drained: hosts-worker-2"),
	}, {
		what: "node active again", by: func() {
			available(dockerswarm.NodeAvailabilityActive)
			acctest.Eventually(l, "hosts-worker-2 to run again", runs)
		},
	}, {
		what: "node down", by: func() {
			l.must(third.Kill())
			l.must(bed.Await(t.Context(), third, dockerswarm.NodeStateDown))
			acctest.Eventually(l, "hosts-worker-2 to be given up", func() bool { return !runs() })
		},
		as: l.isDegraded("host node3 is down: hosts-worker-2"),
	}, {
		what: "node up again", by: func() {
			l.must(third.Restart(t.Context()))
			l.must(bed.Await(t.Context(), third, dockerswarm.NodeStateReady))
			acctest.Eventually(l, "hosts-worker-2 to run again", runs)
		},
	}, {
		what: "node joined again, still listed as down", by: func() {
			former = l.node(third.Name)
			l.must(third.Client().SwarmLeave(t.Context(), true))
			l.must(bed.Await(t.Context(), third, dockerswarm.NodeStateDown))
			acctest.Eventually(l, "hosts-worker-2 to be given up", func() bool { return !runs() })
			join()
			acctest.Eventually(l, "hosts-worker-2 to follow", runs)
		},
	}, {
		what: "node removed, and joined again", by: func() {
			l.must(bed.Nodes[0].Client().NodeRemove(t.Context(), former.ID, dockerswarm.NodeRemoveOptions{Force: true}))
			remove()
			join()
			acctest.Eventually(l, "hosts-worker-2 to follow", runs)
		},
	}, {
		what: "node removed from the Swarm", by: remove,
		shown: []string{
			"cluster.lab.hosts.node3.address: none → " + third.Host(),
			"cluster.lab.hosts.node3.capacity.cpus: none → " + cpus,
			"cluster.lab.hosts.node3.capacity.memory_mib: none → " + memory,
		},
		mended: []string{"+hosts-worker-2"},
		until:  runs,
	}, {
		what: "network removed", by: func() {
			leave := func(s *dockerswarm.ServiceSpec) { s.TaskTemplate.Networks = nil }
			for i := range 3 {
				l.updateService(l.member("worker", i), leave)
			}
			for _, resident := range []string{"trainyard-hosts-agent", "trainyard-hosts-controller"} {
				l.change(resident, leave)
				acctest.Eventually(l, resident+" to leave the network", func() bool {
					return !slices.ContainsFunc(l.tasksOf(l.service(resident).ID), func(task dockerswarm.Task) bool {
						return len(task.Spec.Networks) > 0 || task.Status.State != dockerswarm.TaskStateRunning
					})
				})
			}
			acctest.Eventually(l, "the network to be left by all tasks", func() bool {
				return bed.Nodes[0].Client().NetworkRemove(t.Context(), "trainyard-hosts") == nil
			})
		},
		shown: []string{
			"cluster.lab.network.attachable: none → false",
			"cluster.lab.network.encrypted: none → false",
			"cluster.lab.network.subnet: none → " + l.subnet,
			// Their services were detached from the network first.
			"group.job.members.hosts-worker-0: none → hosts-worker-0:20000",
			"group.job.members.hosts-worker-1: none → hosts-worker-1:20000",
			"group.job.members.hosts-worker-2: none → hosts-worker-2:20000",
			"group.job.placements.hosts-worker-0: none → node1",
			"group.job.placements.hosts-worker-1: none → node2",
			"group.job.placements.hosts-worker-2: none → node3",
		},
		mended: []string{"~hosts-worker-0", "~hosts-worker-1", "~hosts-worker-2"},
	}} {
		w.meet(d, &results)
	}
	results.log(l)
}
