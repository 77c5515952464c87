//go:build linux

package swarm

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/prometheus/procfs"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/images"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// residentHosts returns the hosts on which services of the cluster's residents run from an image, by kind of service.
func (s *standing) residentHosts(image string) map[string][]string {
	s.Helper()
	docker := s.bed.Nodes[0].Client()
	tasks, err := docker.TaskList(s.Context(), swarm.TaskListOptions{})
	must(s.T, err)
	nodes, err := docker.NodeList(s.Context(), swarm.NodeListOptions{})
	must(s.T, err)
	view := dockerapi.NewNodes(nodes)
	hosts := map[string][]string{}
	for _, task := range tasks {
		labels := task.Spec.ContainerSpec.Labels
		kind := labels[spec.LabelKind]
		if labels[spec.LabelCluster] == s.name && task.Spec.ContainerSpec.Image == image &&
			task.Status.State == swarm.TaskStateRunning {
			hosts[kind] = append(hosts[kind], view.Host(task.NodeID, nil))
			slices.Sort(hosts[kind])
		}
	}
	return hosts
}

// residents returns the services of the cluster's residents.
func (s *standing) residents() map[string]swarm.Service {
	s.Helper()
	services, err := s.open(s.bed.Nodes[0].Host()).Services(s.Context())
	must(s.T, err)
	found := map[string]swarm.Service{}
	for _, kind := range []string{spec.KindController, spec.KindAgent} {
		found[kind] = services[spec.ResidentName(s.name, kind)]
	}
	return found
}

// bySwarm ignores what the Swarm itself records on a service while it updates the tasks.
var bySwarm = cmpopts.IgnoreFields(swarm.Service{}, "Meta", "UpdateStatus")

// change changes the service of a kind of residents by hand.
func (s *standing) change(kind string, change func(*swarm.ServiceSpec)) {
	s.Helper()
	acctest.Eventually(s, "the change of the "+kind, func() bool {
		service := s.residents()[kind]
		change(&service.Spec)
		_, err := s.bed.Nodes[0].Client().ServiceUpdate(s.Context(), service.ID, service.Version, service.Spec,
			swarm.ServiceUpdateOptions{})
		if !dockerapi.OutOfSequence(err) {
			must(s.T, err)
		}
		return err == nil
	})
}

// TestResidentsFromARegistry: the controller and the agents run from an image of a registry that requires a login. All
// hosts get it, including those that the provider can't reach.
func TestResidentsFromARegistry(t *testing.T) {
	t.Parallel()
	s := newStanding(t, testbed.Shared(t, swarmtest.Three), "published")
	program := daemons.Program{File: acctest.Build(t, acctest.Provider)}
	img, err := program.Image()
	must(t, err)
	config, err := img.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.Config.Env = append(config.Config.Env, "MOVED=1")
	moved, err := mutate.ConfigFile(img, config)
	must(t, err)
	registry, host := openShop(t, s.bed, "hunter2")
	registry.stock(t, "1", img)
	name := host + "/trainyard:1"
	first, next := name+"@"+digestOf(t, img), name+"@"+digestOf(t, moved)
	start := func(image, password string) error {
		settings := engine.Settings{Docker: engine.DockerSettings{
			ControllerImage: image, Registries: map[string]engine.RegistryCredentials{
				host: {Username: "ops", Password: engine.Secret(password)},
			},
		}}
		e, err := Open(domain.ClusterRef{Engine: Name, Name: s.name, Endpoint: s.bed.Nodes[0].Host()}, settings,
			daemons.Program{File: "/no/program"})
		must(t, err)
		return e.StartController(acctest.Bounded(t))
	}
	before := s.residents()
	for what, err := range map[string]error{
		"an image that is not there": start(host+"/trainyard:nothing", "hunter2"),
		"the wrong password":         start(name, "guess"),
	} {
		if err == nil ||
			!strings.Contains(err.Error(), "(controller_image) is not on the manager and can't be pulled") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if diff := cmp.Diff(before, s.residents(), bySwarm); diff != "" {
		t.Errorf("a start that failed changed the services:\n%s", diff)
	}

	must(t, start(name, "hunter2"))
	t.Cleanup(func() {
		for _, node := range s.bed.Nodes {
			for _, image := range []string{first, next} {
				_, err := node.Client().ImageRemove(context.WithoutCancel(t.Context()), image,
					dockerimage.RemoveOptions{Force: true})
				if err != nil && !cerrdefs.IsNotFound(err) {
					t.Error(err)
				}
			}
		}
	})
	want := map[string][]string{spec.KindController: {"node1"}, spec.KindAgent: {"node1", "node2", "node3"}}
	acctest.Eventually(t, "the residents to run from the image of the registry", func() bool {
		return cmp.Equal(s.residentHosts(first), want)
	})
	// One agent queries the others, as the other hosts' addresses are not known here. A single read waits for agents
	// that have just been started, but not for those that are too busy to answer in time.
	e := s.open(s.bed.Nodes[0].Host())
	usage, err := e.Usage(t.Context(), time.Minute)
	must(t, err)
	for _, node := range s.bed.Nodes {
		u := usage.Hosts[node.Name]
		if strings.Contains(u.Reason, "Client.Timeout") {
			u = s.usage(e, node).Hosts[node.Name]
		}
		if u.Reason != "" || u.MemoryMiB.P95 == nil {
			t.Errorf("host %s right after the start of its agent: %q, memory %+v", node.Name, u.Reason, u.MemoryMiB)
		}
	}
	running := s.residents()
	for kind, service := range running {
		if strings.Contains(strings.Join(service.Spec.TaskTemplate.Placement.Constraints, " "), "node.id") {
			t.Errorf("the %s keeps off nodes: %v", kind, service.Spec.TaskTemplate.Placement.Constraints)
		}
	}
	must(t, start(name, "hunter2"))
	if diff := cmp.Diff(running, s.residents(), bySwarm); diff != "" {
		t.Errorf("another start changed the services:\n%s", diff)
	}

	// After the tag has moved, residents follow at the next start at which the registry answers.
	registry.stock(t, "1", moved)
	must(t, start(name, "guess"))
	if diff := cmp.Diff(running, s.residents(), bySwarm); diff != "" {
		t.Errorf("a start without an answer changed the services:\n%s", diff)
	}
	must(t, start(name, "hunter2"))
	acctest.Eventually(t, "the residents to run the image that the tag moved to", func() bool {
		return cmp.Equal(s.residentHosts(next), want)
	})

	// Without a configured image, it is this program's again.
	must(t, s.open(s.bed.Nodes[0].Host()).StartController(acctest.Bounded(t)))
	own := s.residents()[spec.KindController].Spec.TaskTemplate.ContainerSpec.Image
	acctest.Eventually(t, "the residents to run from the image of this program", func() bool {
		return !strings.HasPrefix(own, host) &&
			cmp.Equal(s.residentHosts(own),
				map[string][]string{spec.KindController: {"node1"}, spec.KindAgent: {"node1"}})
	})

	// A node without the image rejects the agent, as one that has just joined: there is no second attempt.
	before = s.residents()
	s.change(spec.KindAgent, func(spec *swarm.ServiceSpec) { spec.TaskTemplate.Placement = &swarm.Placement{} })
	acctest.Eventually(t, "the agents to keep off the nodes without the image", func() bool {
		now := s.residents()[spec.KindAgent].Spec.TaskTemplate.Placement
		return now != nil &&
			cmp.Equal(now.Constraints, before[spec.KindAgent].Spec.TaskTemplate.Placement.Constraints) &&
			cmp.Equal(s.residentHosts(own),
				map[string][]string{spec.KindController: {"node1"}, spec.KindAgent: {"node1"}})
	})

	// A cluster may do without agents.
	document, err := engine.Cluster(t.Context(), e)
	must(t, err)
	document.Spec.Agent.Disabled = true
	_, err = engine.Put(t.Context(), e, document)
	must(t, err)
	must(t, e.StartController(acctest.Bounded(t)))
	if left := s.residents(); left[spec.KindAgent].ID != "" || left[spec.KindController].ID == "" {
		t.Errorf("without agents there are %+v", left)
	}
	usage, err = e.Usage(t.Context(), time.Second)
	must(t, err)
	if why := usage.Hosts["node1"].Reason; !strings.Contains(why, "agent.enabled is false") {
		t.Errorf("without agents: %s", why)
	}
}

// TestResidentImageLoadedAtOnce: several clusters load Trainyard's image onto the same host concurrently.
func TestResidentImageLoadedAtOnce(t *testing.T) {
	t.Parallel()
	bed := testbed.Shared(t, swarmtest.Mixed)
	for round := range 5 {
		img, err := image.Build(v1.Config{}, image.FromBytes("/program", 0o755, fmt.Appendf(nil, "at once %d", round)))
		must(t, err)
		digest, err := image.ID(img)
		must(t, err)
		name := images.LocalName(images.ProgramRepository+"/at-once", digest)
		var archive bytes.Buffer
		must(t, image.Write(&archive, name, img))
		var all sync.WaitGroup
		for _, node := range bed.Nodes {
			for range 4 {
				all.Go(func() {
					if err := images.LoadOnce(t.Context(), node.Client(), name, func() ([]byte, error) {
						return archive.Bytes(), nil
					}); err != nil {
						t.Errorf("%s: %v", node.Name, err)
					}
				})
			}
		}
		all.Wait()
		for _, node := range bed.Nodes {
			must(t, images.Untag(t.Context(), node.Client(), name))
		}
	}
}

// network returns the cluster's network.
func (s *standing) network() network.Summary {
	s.Helper()
	networks, err := s.bed.Nodes[0].Client().NetworkList(s.Context(), network.ListOptions{})
	must(s.T, err)
	own, found := dockerapi.OwnNetwork(networks, s.name)
	if !found {
		s.Fatal("the cluster has no network")
	}
	return own
}

// controllerOn reports whether the controller runs on the given network and no other.
func (s *standing) controllerOn(network string) bool {
	s.Helper()
	tasks, err := s.bed.Nodes[0].Client().TaskList(s.Context(), swarm.TaskListOptions{
		Filters: filters.NewArgs(filters.Arg("service", spec.ResidentName(s.name, spec.KindController)),
			filters.Arg("desired-state", "running")),
	})
	must(s.T, err)
	return len(tasks) == 1 && tasks[0].Status.State == swarm.TaskStateRunning &&
		len(tasks[0].NetworksAttachments) == 1 &&
		tasks[0].NetworksAttachments[0].Network.ID == network && len(tasks[0].NetworksAttachments[0].Addresses) == 1
}

// metricsOn returns the ports at which residents with this subnet serve metrics in their containers, by the addresses
// of the sockets.
func metricsOn(t *testing.T, subnet string) map[string]uint64 {
	t.Helper()
	processes, err := procfs.AllProcs()
	must(t, err)
	found := map[string]uint64{}
	for _, p := range processes {
		line, err := p.CmdLine()
		if err != nil ||
			!slices.ContainsFunc(line, func(arg string) bool { return strings.HasPrefix(arg, subnet+":") }) {
			continue
		}
		of, err := procfs.NewFS(fmt.Sprintf("/proc/%d", p.PID))
		if err != nil {
			continue // it has ended
		}
		for _, table := range []func() (procfs.NetTCP, error){of.NetTCP, of.NetTCP6} { //nolint:staticcheck // its replacement supports only the process's own namespace
			sockets, _ := table()
			for _, s := range sockets {
				const listening = 10
				if s.St == listening &&
					(s.LocalPort == telemetry.MetricsPort || s.LocalPort == telemetry.ControllerMetricsPort) {
					found[s.LocalAddr.String()] = s.LocalPort
				}
			}
		}
	}
	return found
}

// TestControllerOnTheNetwork: the controller is on the cluster's network with or without agents, joins it if an earlier
// version did not, and moves to a network that replaces it.
func TestControllerOnTheNetwork(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testControllerOnTheNetwork)
}

func testControllerOnTheNetwork(t *testing.T, engineName string) {
	t.Parallel()
	s := newStanding(t, swarmtest.ThreeOf(t, engineName), "attached")
	e := s.open(s.bed.Nodes[0].Host())
	network := s.network()
	acctest.Eventually(t, "the controller to run on the network", func() bool { return s.controllerOn(network.ID) })
	var metrics map[string]uint64
	acctest.Eventually(t, "the controller and the agent to serve metrics", func() bool {
		metrics = metricsOn(t, s.subnet+".0.0/20")
		return len(metrics) == 2
	})
	for address := range metrics {
		if !strings.HasPrefix(address, s.subnet+".") {
			t.Errorf("they serve metrics at %v, and not on the cluster's network alone", metrics)
		}
	}
	before := s.residents()[spec.KindController]
	if mode := before.Spec.EndpointSpec.Mode; mode != swarm.ResolutionModeDNSRR {
		t.Errorf("the name of the controller stands for a %q", mode)
	}

	// As an earlier version had created it.
	s.change(spec.KindController, func(spec *swarm.ServiceSpec) {
		spec.TaskTemplate.Networks, spec.EndpointSpec = nil, nil
		spec.TaskTemplate.ContainerSpec.Args = spec.TaskTemplate.ContainerSpec.Args[:5]
	})
	document, err := engine.Cluster(t.Context(), e)
	must(t, err)
	document.Spec.Agent.Disabled = true
	document, err = engine.Put(t.Context(), e, document)
	must(t, err)
	must(t, e.StartController(acctest.Bounded(t)))
	after := s.residents()
	if diff := cmp.Diff(before.Spec, after[spec.KindController].Spec); diff != "" ||
		after[spec.KindController].ID != before.ID || after[spec.KindAgent].ID != "" {
		t.Errorf("the controller, and agents %+v, after another start (-before +after):\n%s", after[spec.KindAgent],
			diff)
	}
	acctest.Eventually(t, "the controller to run on the network again",
		func() bool { return s.controllerOn(network.ID) })

	anew := document.Spec
	anew.Network = &domain.Network{Subnet: s.subnet + ".0.0/20", Attachable: true}
	document.Spec, err = e.Form(acctest.Bounded(t), anew)
	must(t, err)
	_, err = engine.Put(t.Context(), e, document)
	must(t, err)
	must(t, e.StartController(acctest.Bounded(t)))
	next := s.network()
	if next.ID == network.ID {
		t.Error("the network is the former one")
	}
	acctest.Eventually(t, "the controller to run on the new network", func() bool { return s.controllerOn(next.ID) })
}

// TestImageDroppedMeanwhile: residents get the image that they are about to run from, though another cluster that used
// it before removes it as unused.
func TestImageDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	bed := testbed.New(t, testbed.Options{Nodes: 1, Managers: 1, Heartbeat: testbed.Steady})
	proxy := testbed.NewProxy(t, bed.Nodes[0])
	s := &standing{t, bed, "dropped", swarmtest.OwnSubnet()}
	e := s.open(proxy.Host())
	t.Cleanup(func() { must(t, e.Dissolve(acctest.Bounded(t))) })
	cluster, problems, err := e.Complete(t.Context(), domain.Cluster{
		Name: s.name, Engine: Name, Endpoint: proxy.Host(), Network: &domain.Network{Subnet: s.subnet + ".0.0/20"},
	})
	must(t, err)
	must(t, problems.Err())
	cluster, err = e.Form(acctest.Bounded(t), cluster)
	must(t, err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: cluster})
	must(t, err)

	docker := bed.Nodes[0].Client()
	dropped := 0
	proxy.On(testbed.Fault{Match: testbed.Matching(http.MethodPost, "/services/create"), Nth: 1,
		Do: swarmtest.Before(func() {
			found, err := docker.ImageList(t.Context(),
				dockerimage.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", images.ProgramRepository))})
			must(t, err)
			for _, image := range found {
				_, err := docker.ImageRemove(t.Context(), image.ID, dockerimage.RemoveOptions{Force: true})
				must(t, err)
				dropped++
			}
		})})
	must(t, e.StartController(acctest.Bounded(t)))
	if dropped != 1 {
		t.Fatalf("%d images were dropped, want that of the program", dropped)
	}
	_, err = reconcile.Reconciler{Engine: e}.AwaitResidents(acctest.Bounded(t))
	must(t, err)
}
