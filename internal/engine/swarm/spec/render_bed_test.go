//go:build linux

package spec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/image"
)

// onBed is a Swarm of one real node, on which services are rendered.
type onBed struct {
	*testing.T
	docker *client.Client
	in     Target
	known  Lookup
}

// newOnBed creates what these specifications need in a new Swarm with this Engine.
func newOnBed(t *testing.T, engine string, specs ...domain.MemberSpec) *onBed {
	t.Helper()
	bed := testbed.New(t, testbed.Options{Nodes: 1, Managers: 1, Heartbeat: testbed.Steady, Engine: engine})
	b := &onBed{T: t, docker: bed.Nodes[0].Client()}
	program, err := image.FromDisk("/member", acctest.Build(t, acctest.Member))
	b.must(err)
	img, err := image.Build(v1.Config{Entrypoint: []string{"/member"}}, program)
	b.must(err)
	var archive bytes.Buffer
	b.must(image.Write(&archive, "trainer:1", img))
	b.must(bed.Load(t.Context(), "trainer:1", archive.Bytes()))
	held, err := b.docker.ImageInspect(t.Context(), "trainer:1")
	b.must(err)
	overlay, err := b.docker.NetworkCreate(t.Context(), "trainyard-lab", network.CreateOptions{Driver: "overlay"})
	b.must(err)
	nodes, err := b.docker.NodeList(t.Context(), swarm.NodeListOptions{})
	b.must(err)
	b.in = Target{
		Network: overlay.ID, Nodes: map[string]string{"h1": nodes[0].ID},
		Images:  map[string]References{"trainer:1": {Shared: held.ID}},
		Configs: map[string]string{}, Secrets: map[string]string{},
	}
	b.known = Lookup{Configs: map[string]swarm.Config{}, Hosts: map[string]string{nodes[0].ID: "h1"}}
	for _, config := range Configs(specs) {
		created, err := b.docker.ConfigCreate(t.Context(), config)
		b.must(err)
		b.in.Configs[config.Name] = created.ID
		b.known.Configs[created.ID] = swarm.Config{ID: created.ID, Spec: config}
	}
	for _, secret := range Secrets(specs) {
		secret.Object.Data = []byte("hush")
		created, err := b.docker.SecretCreate(t.Context(), secret.Object)
		b.must(err)
		b.in.Secrets[secret.Object.Name] = created.ID
	}
	return b
}

func (b *onBed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// create creates the service of a specification, and returns it as the Swarm has it.
func (b *onBed) create(spec domain.MemberSpec, n int) swarm.Service {
	b.Helper()
	want, err := Render(spec, b.in, n)
	b.must(err)
	created, err := b.docker.ServiceCreate(b.Context(), want, swarm.ServiceCreateOptions{})
	b.must(err)
	if len(created.Warnings) > 0 {
		b.Errorf("the Swarm warns: %q", created.Warnings)
	}
	return b.service(created.ID)
}

// service returns a service as listed.
func (b *onBed) service(id string) swarm.Service {
	b.Helper()
	services, err := b.docker.ServiceList(b.Context(),
		swarm.ServiceListOptions{Filters: filters.NewArgs(filters.Arg("id", id))})
	b.must(err)
	if len(services) != 1 {
		b.Fatalf("there are %d services with the ID %s", len(services), id)
	}
	return services[0]
}

// update updates a service with the result of next, even if that is no change.
func (b *onBed) update(service swarm.Service, next func(live swarm.ServiceSpec) swarm.ServiceSpec) swarm.Service {
	b.Helper()
	service = b.service(service.ID)
	_, err := b.docker.ServiceUpdate(b.Context(), service.ID, service.Version, next(service.Spec),
		swarm.ServiceUpdateOptions{})
	b.must(err)
	return b.service(service.ID)
}

// overlay merges a specification into its service.
func (b *onBed) overlay(service swarm.Service, spec domain.MemberSpec, n int) swarm.Service {
	b.Helper()
	want, err := Render(spec, b.in, n)
	b.must(err)
	return b.update(service, func(live swarm.ServiceSpec) swarm.ServiceSpec { return Overlay(live, want) })
}

// tasks returns all tasks that a service ever had, oldest first.
func (b *onBed) tasks(service swarm.Service) []swarm.Task {
	b.Helper()
	tasks, err := b.docker.TaskList(b.Context(),
		swarm.TaskListOptions{Filters: filters.NewArgs(filters.Arg("service", service.ID))})
	b.must(err)
	slices.SortFunc(tasks, func(a, b swarm.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return tasks
}

// await waits until a service has had total tasks and the newest n of them run, and returns these.
func (b *onBed) await(service swarm.Service, total, n int) (newest []swarm.Task) {
	b.Helper()
	defer func() {
		if b.Failed() {
			for _, task := range b.tasks(service) {
				b.Logf("task %s: %s, %s %s", task.ID, task.Status.State, task.Status.Message, task.Status.Err)
			}
		}
	}()
	acctest.Eventually(b, fmt.Sprintf("%d of %d tasks of %s to run", n, total, service.Spec.Name), func() bool {
		tasks := b.tasks(service)
		if len(tasks) < total {
			return false
		}
		newest = tasks[len(tasks)-n:]
		return !slices.ContainsFunc(newest, func(task swarm.Task) bool {
			if task.Status.State == swarm.TaskStateRejected || task.Status.State == swarm.TaskStateFailed {
				b.Fatalf("task of %s: %s: %s", service.Spec.Name, task.Status.State, task.Status.Err)
			}
			return task.Status.State != swarm.TaskStateRunning
		})
	})
	return newest
}

// container returns the container of a task.
func (b *onBed) container(task swarm.Task) container.InspectResponse {
	b.Helper()
	inspected, err := b.docker.ContainerInspect(b.Context(), task.Status.ContainerStatus.ContainerID)
	b.must(err)
	return inspected
}

// log returns what a container has written once it has this number of lines.
func (b *onBed) log(c container.InspectResponse, lines int) string {
	b.Helper()
	reader, err := b.docker.ContainerLogs(b.Context(), c.ID,
		container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	b.must(err)
	defer reader.Close()
	text, written := io.Pipe()
	go func() {
		_, err := stdcopy.StdCopy(written, written, reader)
		written.CloseWithError(err)
	}()
	defer text.Close()
	scanner := bufio.NewScanner(text)
	var log []string
	for len(log) < lines && scanner.Scan() {
		log = append(log, scanner.Text())
	}
	b.must(scanner.Err())
	return strings.Join(log, "\n")
}

// onNode is the rich specification, adapted to run on a node of a test bed.
func onNode() domain.MemberSpec {
	spec := rich()
	spec.Command, spec.Args = []string{"/member"}, []string{
		"print:{{3}}", "file:/run/trainyard/hostfile", "file:/etc/train.yaml", "file:/run/secrets/token", "wait",
	}
	spec.Mounts[0].Source = "/etc"
	spec.Container.User = "0:0" // root owns the files of secrets
	spec.WorkingDir, spec.GracePeriod = "/scratch", domain.Duration(time.Second)
	// Swarm counts a task as running only once it is healthy.
	spec.Container.HealthCheck = &domain.HealthCheck{
		Command: []string{"/member", "exit:0"}, Interval: new(domain.Duration(50 * time.Millisecond)), Retries: 5,
	}
	// Raising a limit requires a privilege that a node may lack.
	spec.Container.Ulimits = map[string]domain.Ulimit{"nofile": {Soft: 512, Hard: 1024}, "core": {Soft: 0, Hard: 0}}
	all := make([]string, 300)
	for i := range all {
		all[i] = fmt.Sprintf("mnist-worker-%d:9000", i)
	}
	spec.Env["TRAINYARD_CLUSTER_SPEC"] = encode(map[string][]string{"ps": {"mnist-ps-0:8000"}, "worker": all})
	spec.Env["BRACES"] = `}} {{{ {{"{{"}} {{/* no comment */}} {{- 3 -}}`
	return spec
}

// TestRenderedOnSwarm runs the richest specification on a real Swarm: it arrives in the container as given, reads back
// as given, and only a change of it creates another task.
func TestRenderedOnSwarm(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testRenderedOnSwarm)
}

func testRenderedOnSwarm(t *testing.T, engine string) {
	t.Parallel()
	spec := onNode()
	b := newOnBed(t, engine, spec)
	service := b.create(spec, 1)
	readsAs := func(want domain.MemberSpec) {
		t.Helper()
		if diff := cmp.Diff(want.Normal(), read(service.Spec, b.known)); diff != "" {
			t.Errorf("it is not read back as it was (-want +got):\n%s", diff)
		}
		if live := Drift(service, b.known); live != nil {
			t.Errorf("it reads as changed: %+v", live)
		}
	}
	readsAs(spec)
	first := b.await(service, 1, 1)[0]
	b.checkContainer(spec, b.container(first))

	// Changes that need no restart create no task.
	undisturbed := map[string]func(s *swarm.ServiceSpec){
		"the same":        func(*swarm.ServiceSpec) {},
		"a service label": func(s *swarm.ServiceSpec) { s.Labels["team"] = "vision" },
		"our label":       func(s *swarm.ServiceSpec) { delete(s.Labels, LabelGroup) },
		"an update config": func(s *swarm.ServiceSpec) {
			s.UpdateConfig = &swarm.UpdateConfig{
				Parallelism: 3, Order: swarm.UpdateOrderStopFirst, FailureAction: swarm.UpdateFailureActionContinue,
			}
		},
		"a constraint that is met": func(s *swarm.ServiceSpec) {
			s.TaskTemplate.Placement.Constraints = append(s.TaskTemplate.Placement.Constraints, "node.role==manager")
		},
	}
	for _, name := range slices.Sorted(maps.Keys(undisturbed)) {
		service = b.update(service, func(live swarm.ServiceSpec) swarm.ServiceSpec {
			undisturbed[name](&live)
			return live
		})
		service = b.overlay(service, spec, 1)
		readsAs(spec)
	}
	if service.Spec.Labels["team"] != "vision" || service.Spec.UpdateConfig.Parallelism != 3 {
		t.Errorf("what others set is lost: %+v", service.Spec)
	}
	// Swarm processes services in order: once another one runs, it has finished with this one.
	other := onNode()
	other.Name, other.Index, other.Mounts, other.Container.Ports = "mnist-worker-4", 4, nil, nil
	other.WorkingDir = ""
	b.await(b.create(other, 1), 1, 1)
	if tasks := b.tasks(service); len(tasks) != 1 {
		t.Errorf("there are %d tasks of a service that did not change", len(tasks))
	}

	// A change does.
	next := onNode()
	next.Env["EMPTY"], next.Hash = "no longer", "another"
	service = b.overlay(service, next, 1)
	readsAs(next)
	second := b.await(service, 2, 1)[0]
	if second.ID == first.ID || !slices.Contains(b.container(second).Config.Env, "EMPTY=no longer") {
		t.Error("the change has not arrived")
	}
	if tasks := b.tasks(service); len(tasks) != 2 {
		t.Errorf("after one change there are %d tasks", len(tasks))
	}
}

// checkContainer checks that a container matches a specification.
func (b *onBed) checkContainer(spec domain.MemberSpec, c container.InspectResponse) {
	b.Helper()
	check := func(what string, got, want any) {
		b.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for name, value := range spec.Env {
		if !slices.Contains(c.Config.Env, name+"="+value) {
			b.Errorf("%s=%s is not in the environment: %q", name, value, c.Config.Env)
		}
	}
	check("entrypoint", []string(c.Config.Entrypoint), spec.Command)
	check("arguments", []string(c.Config.Cmd), spec.Args)
	check("host name", c.Config.Hostname, spec.Name)
	check("working directory", c.Config.WorkingDir, spec.WorkingDir)
	check("user", c.Config.User, spec.Container.User)
	check("stop signal", c.Config.StopSignal, spec.Container.StopSignal)
	check("health check", c.Config.Healthcheck.Test, []string{"CMD", "/member", "exit:0"})
	check("image", c.Image, b.in.Images[spec.Image].Shared)
	check("init", *c.HostConfig.Init, true)
	check("memory", c.HostConfig.Memory, spec.Resources.Limits.MemoryMiB*MiB)
	check("CPUs", c.HostConfig.NanoCPUs, nano(spec.Resources.Limits.CPUs))
	check("log driver", c.HostConfig.LogConfig,
		container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}})
	check("ports", c.HostConfig.PortBindings["6006/tcp"][0].HostPort, "16006")
	limits := map[string]domain.Ulimit{}
	for _, limit := range c.HostConfig.Ulimits {
		limits[limit.Name] = domain.Ulimit{Soft: limit.Soft, Hard: limit.Hard}
	}
	check("ulimits", limits, spec.Container.Ulimits)
	check("a label", c.Config.Labels[LabelMember], spec.Name)

	mounted := map[string]string{}
	for _, m := range c.HostConfig.Mounts {
		line := fmt.Sprintf("%s %s", m.Type, m.Source)
		if m.Type == mount.TypeVolume && m.VolumeOptions != nil && m.VolumeOptions.DriverConfig != nil {
			line += fmt.Sprint(" of ", m.VolumeOptions.DriverConfig.Options)
		}
		if m.Type == mount.TypeTmpfs {
			line = fmt.Sprintf("%s %d MiB", m.Type, m.TmpfsOptions.SizeBytes/MiB)
		}
		mounted[m.Target] = strings.TrimSpace(line)
	}
	mounts := map[string]string{
		"/data": "bind /etc", "/results": "volume results of map[device:{{memory}} o:size=1m type:tmpfs]",
		"/scratch": "tmpfs 64 MiB", "/dev/shm": "tmpfs 32 MiB",
	}
	if spec.Kept != "" {
		mounts[spec.Kept] = "volume " + KeptVolume(spec.Cluster, spec.Name)
	}
	check("mounts", mounted, mounts)

	check("what it finds", b.log(c, 4), strings.Join([]string{
		"{{3}}",
		`/run/trainyard/hostfile 444 "mnist-worker-3 slots=1\n"`,
		`/etc/train.yaml 440 "epochs: 3\n"`,
		`/run/secrets/token 400 "hush"`,
	}, "\n"))
}

// TestPoolOnSwarm runs two members of an interchangeable role, which learn their location from the Swarm.
func TestPoolOnSwarm(t *testing.T) {
	t.Parallel()
	testbed.OnEngines(t, testPoolOnSwarm)
}

func testPoolOnSwarm(t *testing.T, engine string) {
	t.Parallel()
	spec := Individual(onNode(), 0)
	share(&spec, "mnist-worker:9000")
	spec.Env[variableAddress] = spec.Address
	spec.Args = append([]string{"resolve:" + variableAddress}, spec.Args...)
	spec.Update = domain.Update{Parallelism: 1}
	spec.Placement = domain.Placement{Hosts: []string{"h1"}}
	spec.Container.Ports = nil
	b := newOnBed(t, engine, spec)
	service := b.create(spec, 2)
	shared := read(service.Spec, b.known)
	if diff := cmp.Diff(spec.Normal(), Individual(shared, 0).Normal()); diff != "" {
		t.Errorf("it is not read back as it was (-want +got):\n%s", diff)
	}
	if live := Drift(service, b.known); live != nil {
		t.Errorf("it reads as changed: %+v", live)
	}
	for _, task := range b.await(service, 2, 2) {
		c := b.container(task)
		want := []string{
			"TRAINYARD_HOST=node1", "TRAINYARD_ADDRESS=" + strings.TrimPrefix(c.Name, "/") + ".trainyard-lab:9000",
		}
		for _, variable := range want {
			if !slices.Contains(c.Config.Env, variable) {
				t.Errorf("%s is not in the environment: %q", variable, c.Config.Env)
			}
		}
		if at, found := c.NetworkSettings.Networks["trainyard-lab"].IPAddress, b.log(c, 1); found != at {
			t.Errorf("its address is %q, but TRAINYARD_ADDRESS resolves to %q", at, found)
		}
		if slices.ContainsFunc(c.Config.Env, func(v string) bool {
			return strings.HasPrefix(v, variableIndex) || strings.HasPrefix(v, variableMember)
		}) {
			t.Errorf("its environment has an identity: %q", c.Config.Env)
		}
	}
	// Changing the count leaves running members alone.
	service = b.overlay(service, Individual(spec, 2), 3)
	b.await(service, 3, 3)
	if tasks := b.tasks(service); len(tasks) != 3 {
		t.Errorf("there are %d tasks of three members", len(tasks))
	}
	if live := Drift(service, b.known); live != nil {
		t.Errorf("with another count it reads as changed: %+v", live)
	}
}
