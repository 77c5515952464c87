//go:build linux

package swarm_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	dockerswarm "github.com/docker/docker/api/types/swarm"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared, fakenvml.Remove) }

// The images of the members' program, which all nodes of the beds have.
const (
	memberImage = "trainyard/member:1"
	otherImage  = "trainyard/member:2"
)

// three is a bed of three nodes of which the first is the manager.
var three = testbed.Options{Nodes: 3, Managers: 1}

// slowHeartbeat is a testbed.Options.Heartbeat for tests that take nodes down, and none of whose other nodes may seem
// down, though the machine is busy: it takes half a minute to notice that a node is.
const slowHeartbeat = 8 * time.Second

// beds limits how many beds exist at the same time, since each runs several Docker Engines.
var beds = make(chan struct{}, 4)

// ownBed starts a bed that ends with the test.
func ownBed(t *testing.T, options testbed.Options) *testbed.Bed {
	t.Helper()
	beds <- struct{}{}
	t.Cleanup(func() { <-beds })
	bed := testbed.New(t, options)
	acctest.LoadMember(t, bed, memberImage)
	return bed
}

var (
	sharedBedMutex sync.Mutex
	sharedBeds     = map[string]bool{}
)

// sharedBed is the bed of the tests that leave its nodes intact.
func sharedBed(t *testing.T) *testbed.Bed {
	t.Helper()
	return sharedBedOf(t, "")
}

// sharedBedOf is the shared bed with an Engine.
func sharedBedOf(t *testing.T, engine string) *testbed.Bed {
	t.Helper()
	options := three
	options.Engine = engine
	options.Heartbeat = 15 * time.Second // no test waits for a node to be down, and a busy one must not seem so
	sharedBedMutex.Lock()
	defer sharedBedMutex.Unlock()
	if sharedBeds[engine] {
		return testbed.Shared(t, options)
	}
	beds <- struct{}{}
	bed := testbed.Shared(t, options)
	for _, name := range []string{memberImage, otherImage} {
		acctest.LoadMember(t, bed, name)
	}
	sharedBeds[engine] = true
	return bed
}

// onEngines runs an acceptance test that depends on the Engine on each of them.
func onEngines(t *testing.T, run func(t *testing.T, engine string)) {
	t.Helper()
	acceptance.Test(t)
	testbed.OnEngines(t, func(t *testing.T, engine string) {
		t.Parallel()
		run(t, engine)
	})
}

// onEnginesAtNight runs an acceptance test on this machine's Engine, and nightly on each: the engine's own tests run on
// each all the time.
func onEnginesAtNight(t *testing.T, run func(t *testing.T, engine string)) {
	t.Helper()
	if acctest.AllKills() {
		onEngines(t, run)
		return
	}
	acceptance.Test(t)
	run(t, "")
}

// swarmLab is what an acceptance test on a Swarm works with: a bed, and a cluster with a unique name, containing a
// group of that name, since service names are global in a Swarm.
type swarmLab struct {
	*testing.T
	bed *testbed.Bed
	// name is the name of the cluster and of its group.
	name string
	// subnet is the subnet of the cluster's network.
	subnet string
	// program is the provider's file, from which residents run.
	program string
	// seen are the members' tasks at the last check of changes.
	seen map[string]string
}

// nextSubnet numbers the subnets of clusters, so that clusters created at the same time have different ones. Up to 63
// of them are below the range of undeclared ones.
var nextSubnet atomic.Int32

// newSwarmLab returns the lab of a cluster on a bed. At the end of the test nothing of the cluster may be left.
func newSwarmLab(t *testing.T, bed *testbed.Bed, name string) *swarmLab {
	t.Helper()
	l := &swarmLab{
		T: t, bed: bed, name: name, subnet: fmt.Sprintf("10.%d.0.0/20", nextSubnet.Add(1)),
		program: acctest.Build(t, acctest.Provider),
	}
	t.Cleanup(l.expectNothing)
	return l
}

// providers returns the provider in this process, whose controllers run from the real one.
func (l *swarmLab) providers() map[string]func() (tfprotov6.ProviderServer, error) {
	engines := engine.Registry{
		process.Name: process.Driver(process.Program{File: l.program, Version: "dev"}),
		swarm.Name:   swarm.Driver(swarm.Program{File: l.program, Version: "dev"}),
	}
	return acceptance.Providers(engines)
}

// engine returns the engine of the cluster, bypassing the provider.
func (l *swarmLab) engine() engine.Engine {
	l.Helper()
	ref := domain.ClusterRef{Engine: swarm.Name, Name: l.name, Endpoint: l.bed.Nodes[0].Host()}
	e, err := swarm.Open(ref, engine.Settings{}, swarm.Program{File: l.program, Version: "dev"})
	l.must(err)
	return e
}

// test runs the steps, with the provider in this process.
func (l *swarmLab) test(steps ...resource.TestStep) {
	l.Helper()
	resource.Test(l.T, resource.TestCase{ProtoV6ProviderFactories: l.providers(), Steps: steps})
}

// config returns a configuration of these parts.
func (l *swarmLab) config(parts ...string) string {
	return fmt.Sprintf("provider \"trainyard\" {\n  state_dir = %q\n}\n", l.TempDir()) + strings.Join(parts, "\n")
}

// cluster returns the configuration of the cluster, which adopts the Swarm, with more attributes.
func (l *swarmLab) cluster(attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_cluster" "lab" {
  name     = %q
  engine   = "swarm"
  endpoint = %q
  network  = { subnet = %q }
  %s
}
`, l.name, l.bed.Nodes[0].Host(), l.subnet, attributes)
}

// formed returns the configuration of the cluster that the hosts form, each with more attributes, by name.
func (l *swarmLab) formed(hosts map[string]string) string {
	var lines []string
	for _, node := range l.bed.Nodes {
		if attributes, declared := hosts[node.Name]; declared {
			lines = append(lines, fmt.Sprintf("    %s = { address = %q, %s }", node.Name, node.Host(), attributes))
		}
	}
	return fmt.Sprintf(`
resource "trainyard_cluster" "lab" {
  name    = %q
  engine  = "swarm"
  network = { subnet = %q }
  hosts = {
%s
  }
}
`, l.name, l.subnet, strings.Join(lines, "\n"))
}

// group returns the configuration of the group with these attributes, which include the image.
func (l *swarmLab) group(attributes string) string {
	return l.named("job", l.name, attributes)
}

// named returns the configuration of a group with a name, and a resource name of its own.
func (l *swarmLab) named(address, name, attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_group" %q {
  cluster = trainyard_cluster.lab
  name    = %q
  %s
}
`, address, name, attributes)
}

// member returns the name of a member of the group.
func (l *swarmLab) member(role string, index int) string {
	return domain.MemberName(l.name, role, index)
}

func (l *swarmLab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// imageID returns the ID of an image on the first node.
func (l *swarmLab) imageID(name string) string {
	l.Helper()
	inspected, err := l.bed.Nodes[0].Client().ImageInspect(l.Context(), name)
	l.must(err)
	return inspected.ID
}

// tasks returns the running tasks of the cluster's members, by member; those that share a service are distinguished by
// slot, from 1.
func (l *swarmLab) tasks() map[string]string {
	l.Helper()
	docker := l.bed.Nodes[0].Client()
	tasks, err := docker.TaskList(l.Context(), dockerswarm.TaskListOptions{})
	l.must(err)
	slices.SortFunc(tasks, func(a, b dockerswarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	running := map[string]string{}
	for _, task := range tasks {
		labels := task.Spec.ContainerSpec.Labels
		if labels["trainyard.cluster"] != l.name || labels["trainyard.group"] == "" ||
			task.DesiredState != dockerswarm.TaskStateRunning || task.Status.State != dockerswarm.TaskStateRunning {
			continue
		}
		name := labels["trainyard.member"]
		if name == "" {
			name = labels["trainyard.group"] + "-" + labels["trainyard.role"] + "." + strconv.Itoa(task.Slot)
		}
		running[name] = task.ID
	}
	return running
}

// changes returns a check that exactly the tasks of these members were added (+), replaced (~) or removed (-) since the
// last one.
func (l *swarmLab) changes(want ...string) resource.TestCheckFunc {
	return acceptance.Changes(&l.seen, l.tasks, want)
}

// service returns the current state of a service.
func (l *swarmLab) service(name string) dockerswarm.Service {
	l.Helper()
	var service dockerswarm.Service
	l.patiently("service "+name, func() (err error) {
		service, _, err = l.bed.Nodes[0].Client().ServiceInspectWithRaw(l.Context(), name,
			dockerswarm.ServiceInspectOptions{})
		return err
	})
	return service
}

// orderAgain is how long tasks may differ from their service before an update is forced: a Swarm loses the removal of a
// task whose state changes at the same moment, and does not retry one that could not be started.
const orderAgain = 30 * time.Second

// updateService changes a service by hand, and waits until its tasks follow.
func (l *swarmLab) updateService(name string, change func(*dockerswarm.ServiceSpec)) {
	l.Helper()
	former := map[string]bool{}
	before := l.service(name)
	for _, task := range l.tasksOf(before.ID) {
		former[task.ID] = true
	}
	l.change(name, change)
	spec := l.service(name).Spec
	if reflect.DeepEqual(spec.TaskTemplate, before.Spec.TaskTemplate) {
		former = nil
	}
	again := time.Now().Add(orderAgain)
	acctest.Eventually(l, "the change of "+name, func() bool {
		if time.Now().After(again) {
			again = time.Now().Add(orderAgain)
			l.Logf("the tasks of %s have not followed its change, which is ordered anew", name)
			l.logMembers()
			l.change(name, func(s *dockerswarm.ServiceSpec) { s.TaskTemplate.ForceUpdate++ })
		}
		tasks := l.tasksOf(before.ID)
		return len(tasks) == int(*spec.Mode.Replicated.Replicas) &&
			!slices.ContainsFunc(tasks, func(task dockerswarm.Task) bool {
				return former[task.ID] || task.Status.State != dockerswarm.TaskStateRunning
			})
	})
}

// change changes a service by hand.
func (l *swarmLab) change(name string, change func(*dockerswarm.ServiceSpec)) {
	l.Helper()
	l.patiently("an update of "+name, func() error {
		service := l.service(name)
		change(&service.Spec)
		_, err := l.bed.Nodes[0].Client().ServiceUpdate(l.Context(), service.ID, service.Version, service.Spec,
			dockerswarm.ServiceUpdateOptions{})
		return err
	})
}

// patiently repeats a call, or a read and update, while the Swarm elects a leader, and until nobody, including the
// Swarm itself, has changed the object in between.
func (l *swarmLab) patiently(what string, do func() error) {
	l.Helper()
	acctest.Eventually(l, what, func() bool {
		err := do()
		if err != nil && (strings.Contains(err.Error(), "update out of sequence") ||
			strings.Contains(err.Error(), "does not have a leader")) {
			return false
		}
		l.must(err)
		return true
	})
}

// tasksOf returns the tasks of a service that have not ended.
func (l *swarmLab) tasksOf(service string) []dockerswarm.Task {
	l.Helper()
	tasks, err := l.bed.Nodes[0].Client().TaskList(l.Context(), dockerswarm.TaskListOptions{})
	l.must(err)
	return slices.DeleteFunc(tasks, func(task dockerswarm.Task) bool {
		switch task.Status.State {
		case dockerswarm.TaskStateComplete, dockerswarm.TaskStateFailed, dockerswarm.TaskStateRejected,
			dockerswarm.TaskStateShutdown, dockerswarm.TaskStateOrphaned:
			return true
		}
		return task.ServiceID != service
	})
}

// removeService removes a service by hand, and waits until nothing is left of it.
func (l *swarmLab) removeService(name string) {
	l.Helper()
	docker, id := l.bed.Nodes[0].Client(), l.service(name).ID
	l.must(docker.ServiceRemove(l.Context(), id))
	acctest.Eventually(l, "the tasks of "+name+" to be forgotten", func() bool {
		tasks, err := docker.TaskList(l.Context(), dockerswarm.TaskListOptions{})
		l.must(err)
		return !slices.ContainsFunc(tasks, func(task dockerswarm.Task) bool { return task.ServiceID == id })
	})
}

// strangers creates a service of somebody else.
func (l *swarmLab) strangers(name string, change func(*dockerswarm.ServiceSpec)) {
	l.Helper()
	spec := dockerswarm.ServiceSpec{
		Annotations: dockerswarm.Annotations{Name: name},
		TaskTemplate: dockerswarm.TaskSpec{
			ContainerSpec: &dockerswarm.ContainerSpec{Image: memberImage, Args: []string{"wait"}},
		},
	}
	if change != nil {
		change(&spec)
	}
	docker := l.bed.Nodes[0].Client()
	created, err := docker.ServiceCreate(l.Context(), spec, dockerswarm.ServiceCreateOptions{})
	l.must(err)
	l.Cleanup(func() {
		if err := docker.ServiceRemove(context.WithoutCancel(l.Context()), created.ID); err != nil &&
			!cerrdefs.IsNotFound(err) {
			l.Error(err)
		}
	})
}

// secret creates a secret of somebody else, and returns its ID.
func (l *swarmLab) secret(name, value string) (id string) {
	l.Helper()
	docker := l.bed.Nodes[0].Client()
	spec := dockerswarm.SecretSpec{Annotations: dockerswarm.Annotations{Name: name}, Data: []byte(value)}
	created, err := docker.SecretCreate(l.Context(), spec)
	l.must(err)
	l.Cleanup(func() {
		if err := docker.SecretRemove(context.WithoutCancel(l.Context()), created.ID); err != nil {
			l.Error(err)
		}
	})
	return created.ID
}

// hostOf returns the name of the host that runs a member.
func (l *swarmLab) hostOf(member string) string {
	l.Helper()
	tasks := l.tasksOf(l.service(member).ID)
	if len(tasks) != 1 {
		l.Fatalf("%s has %d tasks", member, len(tasks))
	}
	node, _, err := l.bed.Nodes[0].Client().NodeInspectWithRaw(l.Context(), tasks[0].NodeID)
	l.must(err)
	return node.Description.Hostname
}

// node returns a node as the Swarm sees it.
func (l *swarmLab) node(name string) dockerswarm.Node {
	l.Helper()
	var node dockerswarm.Node
	l.patiently("node "+name, func() (err error) {
		node, err = l.findNode(name)
		return err
	})
	return node
}

// findNode is node for a Swarm that may briefly have no leader.
func (l *swarmLab) findNode(name string) (dockerswarm.Node, error) {
	nodes, err := l.bed.Nodes[0].Client().NodeList(l.Context(), dockerswarm.NodeListOptions{})
	if err != nil {
		return dockerswarm.Node{}, err
	}
	i := slices.IndexFunc(nodes, func(node dockerswarm.Node) bool { return node.Description.Hostname == name })
	if i < 0 {
		return dockerswarm.Node{}, fmt.Errorf("the Swarm has no node %s", name)
	}
	return nodes[i], nil
}

// updateNode changes a node by hand.
func (l *swarmLab) updateNode(name string, change func(*dockerswarm.NodeSpec)) {
	l.Helper()
	l.patiently("an update of "+name, func() error {
		node := l.node(name)
		change(&node.Spec)
		return l.bed.Nodes[0].Client().NodeUpdate(l.Context(), node.ID, node.Version, node.Spec)
	})
}

// expectNothing fails unless everything created for the cluster is gone.
func (l *swarmLab) expectNothing() {
	if l.Failed() {
		return
	}
	ctx := context.WithoutCancel(l.Context())
	docker := l.bed.Nodes[0].Client()
	info, err := docker.Info(ctx)
	l.must(err)
	if !info.Swarm.ControlAvailable {
		return // gone with its Swarm
	}
	left, err := l.bed.Labelled(ctx, "trainyard.cluster="+l.name)
	l.must(err)
	nodes, err := docker.NodeList(ctx, dockerswarm.NodeListOptions{})
	l.must(err)
	for _, node := range nodes {
		if _, marked := node.Spec.Labels["trainyard."+l.name+".labels"]; marked {
			left = append(left, "labels of node "+node.Description.Hostname)
		}
	}
	if len(left) > 0 {
		l.Errorf("of cluster %s there is left: %s", l.name, strings.Join(left, ", "))
	}
}
