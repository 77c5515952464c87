//go:build linux

package swarm

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/daemons"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// probe is the path of the members' program in the images of [TestAgentRights].
const probe = "/probe"

// loadPrograms loads an image with programs of this module, by their paths in it, onto all nodes until the end of the
// test.
func loadPrograms(t *testing.T, bed *testbed.Bed, name string, config v1.Config, programs map[string]string) {
	t.Helper()
	var files []image.File
	for in, pkg := range programs {
		program, err := image.FromDisk(in, acctest.Build(t, pkg))
		must(t, err)
		files = append(files, program)
	}
	img, err := image.Build(config, files...)
	must(t, err)
	var archive bytes.Buffer
	must(t, image.Write(&archive, name, img))
	must(t, bed.Load(t.Context(), name, archive.Bytes()))
	t.Cleanup(func() {
		for _, node := range bed.Nodes {
			_, err := node.Client().ImageRemove(context.WithoutCancel(t.Context()), name,
				dockerimage.RemoveOptions{Force: true})
			must(t, err)
		}
	})
}

// running returns the task of a kind of residents that runs on a node, and its container.
func (s *standing) running(node *testbed.Node, kind string) (swarm.Task, container.InspectResponse) {
	s.Helper()
	info, err := node.Client().Info(s.Context())
	must(s.T, err)
	tasks, err := dockerapi.Live(s.open(node.Host()).Connection).Tasks(s.Context())
	must(s.T, err)
	i := slices.IndexFunc(tasks, func(t swarm.Task) bool {
		return t.Spec.ContainerSpec.Labels[spec.LabelCluster] == s.name &&
			t.Spec.ContainerSpec.Labels[spec.LabelKind] == kind &&
			t.NodeID == info.Swarm.NodeID && t.Status.State == swarm.TaskStateRunning &&
			t.DesiredState == swarm.TaskStateRunning
	})
	if i < 0 {
		s.Fatalf("no %s runs on %s: %+v", kind, node.Name, tasks)
	}
	inspected, err := node.Client().ContainerInspect(s.Context(), tasks[i].Status.ContainerStatus.ContainerID)
	must(s.T, err)
	return tasks[i], inspected
}

// does runs a step of the members' program in a container, and returns its output.
func (s *standing) does(node *testbed.Node, id, step string) (out, complaint string) {
	s.Helper()
	run := container.ExecOptions{Cmd: []string{probe, step}, AttachStdout: true, AttachStderr: true}
	created, err := node.Client().ContainerExecCreate(s.Context(), id, run)
	must(s.T, err)
	attached, err := node.Client().ContainerExecAttach(s.Context(), created.ID, container.ExecAttachOptions{})
	must(s.T, err)
	defer attached.Close()
	var written, complained bytes.Buffer
	must(s.T, dockerapi.Demultiplex(&written, &complained, attached.Reader))
	return written.String(), complained.String()
}

// TestAgentRights: an agent has no capabilities, can't write anywhere, and can't access other processes through its
// host's process table, yet measures everything that it should. One of an earlier version gets the same rights, once.
func TestAgentRights(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testAgentRights)
}

func testAgentRights(t *testing.T, engineName string) {
	t.Parallel()
	const agents, members = "rights/agent:1", "rights/member:1"
	bed := swarmtest.ThreeOf(t, engineName)
	loadPrograms(t, bed, agents, v1.Config{Entrypoint: []string{daemons.ProgramPath}}, map[string]string{
		daemons.ProgramPath: acctest.Provider, probe: acctest.Member,
	})
	loadPrograms(t, bed, members, v1.Config{Entrypoint: []string{probe}, User: "65534:65534"}, map[string]string{
		probe: acctest.Member,
	})
	s := newStanding(t, bed, "rights")
	manager := bed.Nodes[0]

	// As an earlier version ran them.
	e := s.open(manager.Host())
	s.change(spec.KindAgent, func(spec *swarm.ServiceSpec) {
		runs := spec.TaskTemplate.ContainerSpec
		runs.CapabilityDrop, runs.ReadOnly = nil, false
		runs.Mounts = []mount.Mount{{Type: mount.TypeBind, Source: "/proc", Target: daemons.HostProc, ReadOnly: true}}
	})
	document, err := engine.Cluster(t.Context(), e)
	must(t, err)
	document.Spec.Agent.Image = agents
	_, err = engine.Put(t.Context(), e, document)
	must(t, err)
	must(t, e.StartController(acctest.Bounded(t)))
	r := reconcile.Reconciler{Engine: e}
	_, err = r.AwaitResidents(acctest.Bounded(t))
	must(t, err)
	before := s.residents()[spec.KindAgent].Spec
	must(t, e.StartController(acctest.Bounded(t)))
	if diff := cmp.Diff(before, s.residents()[spec.KindAgent].Spec); diff != "" {
		t.Errorf("another start changed the agents' service:\n%s", diff)
	}

	group, _ := s.group("rightless")
	member := domain.MemberName(group.Name, "worker", 0)
	group.Template = domain.Template{Image: members, Args: []string{"wait"}}
	group.Roles = map[string]domain.Role{
		"worker": {Replicas: new(1), Placement: domain.Placement{Hosts: []string{manager.Name}}},
	}
	must(t, r.Update(acctest.Bounded(t), group))
	t.Cleanup(func() { must(t, r.Destroy(acctest.Bounded(t), group.Name)) })

	task, agent := s.running(manager, spec.KindAgent)
	given := agent.HostConfig
	if !slices.Equal(given.CapDrop, []string{"ALL"}) || len(given.CapAdd) > 0 || given.Privileged {
		t.Errorf("its container drops %v, adds %v, is privileged: %v", given.CapDrop, given.CapAdd, given.Privileged)
	}
	if i := slices.IndexFunc(given.Mounts, func(m mount.Mount) bool { return m.Target == daemons.HostProc }); i < 0 ||
		!given.Mounts[i].ReadOnly || given.Mounts[i].BindOptions == nil || !given.Mounts[i].BindOptions.NonRecursive ||
		!given.ReadonlyRootfs {
		t.Errorf("its mounts are %+v, on a root that is read-only: %v", given.Mounts, given.ReadonlyRootfs)
	}
	status, complaint := s.does(manager, agent.ID, "file:/proc/1/status")
	const none = `:\t0000000000000000\n`
	for _, want := range []string{"CapInh" +
		none, "CapPrm" + none, "CapEff" + none, "CapBnd" + none, `NoNewPrivs:\t1\n`} {
		if !strings.Contains(status, want) {
			t.Errorf("its status has no %s: %s %s", want, status, complaint)
		}
	}
	if _, complaint := s.does(manager, agent.ID, "once:/new"); !strings.Contains(complaint, "read-only file system") {
		t.Errorf("it can write to its file system: %q", complaint)
	}

	_, controller := s.running(manager, spec.KindController)
	its := fmt.Sprintf("file:%s/%d/", daemons.HostProc, controller.State.Pid)
	if out, complaint := s.does(manager, agent.ID, its+"cmdline"); !strings.Contains(out, "controller") {
		t.Fatalf("it doesn't find the controller: %s %s", out, complaint)
	}
	for _, what := range []string{"root/etc/hostname", "cwd/etc/hostname", "environ", "maps", "exe"} {
		if out, complaint := s.does(manager, agent.ID, its+what); !strings.Contains(complaint, "permission denied") {
			t.Errorf("it reads %s of the controller: %.100s %s", what, out, complaint)
		}
	}

	if u := s.usage(e, manager).Members[member]; u.CPUs.Last == nil || u.MemoryMiB.Last == nil ||
		*u.MemoryMiB.Last <= 0 {
		t.Errorf("of a member that isn't root: %+v", u)
	}
	observed, err := e.Observe(t.Context(), group.Name)
	must(t, err)
	id := observed[0].Instance
	address, _, _ := strings.Cut(task.NetworksAttachments[0].Addresses[0], "/")
	const used, whose = "\ntrainyard_member_memory_bytes{id=%q,node=%q} ",
		"\ntrainyard_member_info{cluster=%q,group=%q,id=%q,member=%q,role=\"worker\"} 1\n"
	for at, want := range map[string]string{
		fmt.Sprintf("%s:%d", address, telemetry.MetricsPort): fmt.Sprintf(used, id, manager.Name),
		fmt.Sprintf("%s:%d", spec.ResidentName(s.name, spec.KindController),
			telemetry.ControllerMetricsPort): fmt.Sprintf(
			whose, s.name, group.Name, id, member),
	} {
		acctest.Eventually(t, "the metrics to have"+want, func() bool {
			out, _ := s.does(manager, agent.ID, "get:http://"+at+"/metrics")
			return strings.Contains(out, want)
		})
	}
}
