//go:build linux

package swarm_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerswarm "github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared, fakenvml.Remove) }

// memberImage is the image of the program that members run.
const memberImage = "trainyard/member:1"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened is an engine, the name of its cluster, and how the Swarm is reached.
type opened struct {
	*swarm.Engine
	cluster, endpoint string
	settings          engine.Settings
}

// open returns the engine of a cluster on a bed, which is deleted at the end of the test.
func open(t *testing.T, cluster, endpoint string) opened {
	t.Helper()
	return opened{cluster: cluster, endpoint: endpoint}.open(t)
}

// open opens the engine, whose cluster is deleted at the end of the test.
func (o opened) open(t *testing.T) opened {
	t.Helper()
	o = o.again(t)
	t.Cleanup(func() {
		if err := o.Dissolve(acctest.Bounded(t)); err != nil {
			t.Errorf("cluster %s could not be deleted: %v", o.cluster, err)
		}
	})
	return o
}

// again opens the engine a second time.
func (o opened) again(t *testing.T) opened {
	t.Helper()
	ref := domain.ClusterRef{Engine: swarm.Name, Name: o.cluster, Endpoint: o.endpoint}
	e, err := swarm.Open(ref, o.settings, swarm.Program{File: acctest.Build(t, acctest.Provider), Version: "dev"})
	must(t, err)
	o.Engine = e
	return o
}

// known returns an engine as open returned it.
func known(t *testing.T, e engine.Engine) opened {
	t.Helper()
	o, ok := e.(opened)
	if !ok {
		t.Fatalf("%T is not of these tests", e)
	}
	return o
}

// declared is the name under which clusters declare the host of a node: not that of the machine.
func declared(node *testbed.Node) string { return "rack-" + node.Name }

// clusterOn returns the specification of a cluster of all nodes of a bed, the n-th of those that share it.
func clusterOn(bed *testbed.Bed, name string, n int) domain.Cluster {
	hosts := map[string]domain.Host{}
	for _, node := range bed.Nodes {
		hosts[declared(node)] = domain.Host{Address: node.Host()}
	}
	return domain.Cluster{
		Name: name, Engine: swarm.Name, Endpoint: bed.Nodes[0].Host(), Hosts: hosts,
		Network: &domain.Network{Subnet: fmt.Sprintf("10.%d.0.0/20", 1+n)},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testConformance)
}

func testConformance(t *testing.T, engineName string) {
	t.Parallel()
	bed := testbed.New(t, testbed.Options{Nodes: 3, Managers: 1, Heartbeat: testbed.Steady, Engine: engineName})
	acctest.LoadMember(t, bed, memberImage)
	acctest.LoadAgent(t, bed, enginetest.Lacking)
	var number atomic.Int32
	enginetest.Run(t, enginetest.Harness{
		Brief: engineName != "", // dying callers and races between callers don't depend on the Engine's version
		Open:  func(t *testing.T, cluster string) engine.Engine { return open(t, cluster, bed.Nodes[0].Host()) },
		Store: swarm.StoreOn(bed),
		Cluster: func(name string) domain.Cluster {
			return clusterOn(bed, name, int(number.Add(1)))
		},
		Host:         declared(bed.Nodes[1]),
		StartsWithin: 20 * time.Second,
		Template: func(steps ...string) domain.Template {
			return domain.Template{
				Image: memberImage, Args: steps,
				Mounts: []domain.Mount{{Type: domain.MountVolume, Source: "scratch", Target: "/scratch"}},
			}
		},
		Scratch: func(*testing.T) string { return "/scratch/" + rand.Text() },
		Foreign: func(t *testing.T, _ engine.Engine, _ string) func() error { return foreign(t, bed) },
		Alive:   func(t *testing.T, e engine.Engine, group string) int { return alive(t, bed, e, group) },
		GPUs: enginetest.GPUs{
			Open: func(t *testing.T, cluster string) engine.Engine {
				settings := engine.Settings{Docker: engine.DockerSettings{ControllerImage: acctest.AgentImage}}
				return opened{cluster: cluster, endpoint: bed.Nodes[0].Host(), settings: settings}.open(t)
			},
			Driver: func(t *testing.T, e engine.Engine) enginetest.Driver {
				return acctest.NewNodeDriver(t, bed.Nodes[1].Client(), known(t, e).cluster)
			},
			Another: func(t *testing.T, e engine.Engine) engine.Engine { return known(t, e).again(t) },
			Process: func(t *testing.T, e engine.Engine, member string) int {
				return processOf(t, bed.Nodes[1], known(t, e).cluster, member)
			},
			Stranger: 1,
		},
		Traffic: func(member string) string { return member },
	})
}

// foreign creates somebody else's service, and returns a function that fails if it was changed.
func foreign(t *testing.T, bed *testbed.Bed) func() error {
	t.Helper()
	docker := bed.Nodes[0].Client()
	one := uint64(1)
	spec := dockerswarm.ServiceSpec{
		Annotations: dockerswarm.Annotations{Name: "stranger"},
		TaskTemplate: dockerswarm.TaskSpec{
			ContainerSpec: &dockerswarm.ContainerSpec{Image: memberImage, Args: []string{"wait"}},
		},
		Mode: dockerswarm.ServiceMode{Replicated: &dockerswarm.ReplicatedService{Replicas: &one}},
	}
	created, err := docker.ServiceCreate(t.Context(), spec, dockerswarm.ServiceCreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := docker.ServiceRemove(context.WithoutCancel(t.Context()), created.ID); err != nil &&
			!cerrdefs.IsNotFound(err) {
			t.Error(err)
		}
	})
	before, _, err := docker.ServiceInspectWithRaw(t.Context(), created.ID, dockerswarm.ServiceInspectOptions{})
	must(t, err)
	return func() error {
		after, _, err := docker.ServiceInspectWithRaw(t.Context(), created.ID, dockerswarm.ServiceInspectOptions{})
		if err == nil && after.Version != before.Version {
			err = fmt.Errorf("a service of somebody else's was changed: %+v", after.Spec)
		}
		return err
	}
}

// alive counts the processes in the containers of a group's members.
func alive(t *testing.T, bed *testbed.Bed, e engine.Engine, group string) int {
	t.Helper()
	o, n := known(t, e), 0
	for _, node := range bed.Nodes {
		containers, err := node.Client().ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(
			filters.Arg("label", "trainyard.cluster="+o.cluster), filters.Arg("label", "trainyard.group="+group),
		)})
		must(t, err)
		for _, c := range containers {
			top, err := node.Client().ContainerTop(t.Context(), c.ID, nil)
			if err == nil {
				n += len(top.Processes)
			}
		}
	}
	return n
}

// processOf returns the ID of the first process of a member's container, as seen on its node.
func processOf(t *testing.T, node *testbed.Node, cluster, member string) int {
	t.Helper()
	containers, err := node.Client().ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", "trainyard.cluster="+cluster), filters.Arg("label", "trainyard.member="+member),
	)})
	must(t, err)
	if len(containers) != 1 {
		t.Fatalf("%s has %d containers on %s", member, len(containers), node.Name)
	}
	found, err := node.Client().ContainerInspect(t.Context(), containers[0].ID)
	must(t, err)
	return found.State.Pid
}
