//go:build linux

package systemd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
)

// trainer is the image of the members' program, which is on all hosts of the bed with Docker Engines.
const trainer = "trainer:1"

// loaded ensures that the image is loaded once: later, a test may have stopped a host's Engine.
var loaded sync.Once

// dockerBed are hosts with a Docker Engine each, which have the image.
func dockerBed(t *testing.T) *testbed.Hosts {
	t.Helper()
	bed := testbed.SharedHosts(t, testbed.HostOptions{Hosts: 3, Docker: true, Mounts: []string{shared}})
	loaded.Do(func() { acctest.LoadMember(t, bed, trainer) })
	return bed
}

// container returns the ID of a member's container on a host; empty for none.
func (l *lab) container(host *testbed.Host, member string) string {
	l.Helper()
	return strings.TrimSpace(l.on(host,
		"docker ps --quiet --filter label=trainyard.cluster=%s --filter label=trainyard.member=%s", l.name, member))
}

// containers returns the IDs of members' containers on their hosts, each of which has one.
func (l *lab) containers(on map[string]*testbed.Host) map[string]string {
	l.Helper()
	ids := map[string]string{}
	for member, host := range on {
		if ids[member] = l.container(host, member); ids[member] == "" || strings.Contains(ids[member], "\n") {
			l.Errorf("on %s, the containers of %s are %q", host.Name, member, ids[member])
		}
	}
	return ids
}

// Members with an image run as containers on their hosts, beside plain programs, and are supervised in the same way.
func TestAccContainers(t *testing.T) {
	acceptance.Test(t)
	bed := dockerBed(t)
	l := openLab(t, bed, acctest.Build(t, acctest.Provider), 0, 1)
	one, two := l.hosts[0], l.hosts[1]
	config := func(image, worker string) string {
		return l.config(l.cluster(one, two), job(fmt.Sprintf(`
  roles = {
    worker = {
      image    = %q
      replicas = 2
      port     = local.port
      args     = ["print:hello from {{ .Name }} at {{ .Address }}", "file:/etc/settings", "file:/run/secrets/token", "wait"]
      restart  = { condition = "always", delay = "10ms" }
      %s
    }
    plain = { replicas = 1, command = [local.member, "print:plain", "wait"] }
  }`, image, worker)))
	}
	with := func(settings string) string {
		return fmt.Sprintf(`container = {
        pull_policy = "never"
        configs     = { settings = { content = "rate = 0.1", target = "/etc/settings" } }
        secrets     = { token = { value = "hunter2", version = "1" } }
        ports       = { board = { target = local.port + 10, published = local.port + 10 } }
        %s
      }`, settings)
	}
	on := map[string]*testbed.Host{"job-worker-0": one, "job-worker-1": two}
	var seen map[string]string
	changed := func(want ...string) resource.TestCheckFunc {
		return acceptance.Changes(&seen, func() map[string]string { return l.containers(on) }, want)
	}
	logs := "data.trainyard_logs.job"
	l.test(
		resource.TestStep{
			Config: config(trainer, `container = { ports = { board = { target = 80, published = local.port } } }`),
			ExpectError: acceptance.Says(`roles["worker"].container.ports["board"].published`,
				`can't publish port 80 as `+fmt.Sprint(l.port), fmt.Sprintf("set target = %d", l.port)),
		},
		resource.TestStep{
			Config: config(trainer, with("")),
			Check: resource.ComposeTestCheckFunc(
				changed("+job-worker-0", "+job-worker-1"),
				resource.TestCheckResourceAttr(acceptance.TheJob, "members.job-worker-1",
					fmt.Sprintf("%s:%d", two.Address, l.port)),
				func(*terraform.State) error {
					return acceptance.Differences(1, l.running(1, one, two)) // the plain one
				},
			),
		},
		resource.TestStep{
			PreConfig:        func() { l.awaitLines("job-worker-1", 3) },
			Config:           config(trainer, with("")) + readLog,
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			Check: resource.ComposeTestCheckFunc(
				changed(),
				resource.TestCheckResourceAttr(logs, "lines.0",
					fmt.Sprintf("hello from job-worker-1 at %s:%d", two.Address, l.port)),
				resource.TestCheckResourceAttr(logs, "lines.1", `/etc/settings 444 "rate = 0.1"`),
				resource.TestCheckResourceAttr(logs, "lines.2", `/run/secrets/token 400 "hunter2"`),
			),
		},
		resource.TestStep{
			Config:           config(trainer, with(`shm_size_mib = 128`)),
			ConfigPlanChecks: acceptance.Action(plancheck.ResourceActionUpdate),
			Check: resource.ComposeTestCheckFunc(changed("~job-worker-0",
				"~job-worker-1"), func(*terraform.State) error {
				shm := l.on(two, "docker inspect --format '{{.HostConfig.ShmSize}}' %s",
					l.container(two, "job-worker-1"))
				return acceptance.Differences("134217728", strings.TrimSpace(shm))
			}),
		},
		resource.TestStep{
			PreConfig: func() {
				before := l.container(one, "job-worker-0")
				l.on(one, "docker rm --force %s", before)
				acctest.Eventually(l, "another container of job-worker-0", func() bool {
					now := l.container(one, "job-worker-0")
					return now != "" && now != before
				})
			},
			Config:           config(trainer, with(`shm_size_mib = 128`)),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()),
			Check:            changed("~job-worker-0"),
		},
		resource.TestStep{
			Config: config("trainer:2", with("")),
			ExpectError: acceptance.Says(`roles["worker"].image`, `host "`+one.Name+`" can't run role "worker"`,
				`image "trainer:2" not found`, `host "`+two.Name+`" can't run role "worker"`, "docker load"),
		},
		resource.TestStep{
			Config:           config(trainer, with(`shm_size_mib = 128`)),
			ConfigPlanChecks: acceptance.Planned(plancheck.ExpectEmptyPlan()), Check: changed(),
		},
	)
}

// Containers have the files resource, the configs of runs and folders for results, and what they leave there can be
// downloaded.
func TestAccContainerFiles(t *testing.T) {
	acceptance.Test(t)
	l := openLab(t, dockerBed(t), acctest.Build(t, acctest.Provider), 1, 0)
	w := acctest.NewWorkspace(t, l.provider)
	l.must(os.Mkdir(filepath.Join(w.Dir, "code"), 0o755)) //nolint:gosec // members are not all root
	w.Write("code/rate", "0.1\n")
	const mounted = "/var/tmp/trainyard-mounted"
	sweep := func(name, path, mounts string) string {
		return fmt.Sprintf(`
resource "trainyard_sweep" %[1]q {
  cluster  = trainyard_cluster.lab
  name     = %[1]q
  image    = %[2]q
  args     = ["file:${trainyard_files.code.path}/rate", "config", "results:{{ .Role }} leaves this"]
  wait_for = "completed"
  runs     = { a = {}, b = {} }
  config   = { a = "first", b = "second" }
  results  = { path = %[3]q, on_destroy = "delete" }
  mounts   = [%[4]s]
  container = { user = "1000" }
}
data "trainyard_logs" %[1]q {
  cluster    = trainyard_cluster.lab
  member     = "%[1]s-b-0"
  depends_on = [trainyard_sweep.%[1]s]
}
output %[1]q { value = data.trainyard_logs.%[1]s.lines }
`, name, trainer, path, mounts)
	}
	for _, host := range l.hosts {
		l.on(host, "mkdir -p %[1]s && chown 1000 %[1]s", mounted)
		t.Cleanup(func() { l.on(host, "rm -r %s", mounted) })
	}
	w.Write("main.tf", required+l.config(l.cluster(l.hosts...), `
resource "trainyard_files" "code" {
  cluster = trainyard_cluster.lab
  name    = "code"
  source  = "${path.module}/code"
}
`, sweep("own", "results",
		""), sweep("shared", "/data/out", fmt.Sprintf(`{ source = %q, target = "/data" }`, mounted))))
	w.Must("apply", "-auto-approve")
	w.ExpectNoChange("once the runs have ended")
	for _, name := range []string{"own", "shared"} {
		output := w.Must("output", "-json", name)
		acceptance.ExpectSaid(t, output, `/rate 444 \"0.1\\n\"`, `"second"`)
		left := map[string]string{"a/lines": "a leaves this\n", "b/lines": "b leaves this\n"}
		got := l.fetched("sweep", "results", name)
		for _, config := range []string{"a/config", "b/config"} { // beside the results
			delete(got, config)
		}
		l.must(acceptance.Differences(left, got))
	}
	w.Must("destroy", "-auto-approve")
	for _, host := range l.hosts {
		if left := l.on(host, "find %s -type f", mounted); left != "" {
			t.Errorf("%s has what was to be deleted: %s", host.Name, left)
		}
	}
}

// What a host lacks for containers is reported at plan time, for a new cluster and for an existing one: a Docker
// Engine, and NVIDIA's container toolkit, which brings GPUs into containers.
func TestAccContainersLack(t *testing.T) {
	acceptance.Test(t)
	bed, control := dockerBed(t), fakenvml.New(t)
	devices := fakenvml.V100s("dgx", 4)
	control.Set(devices...)
	l := openLab(t, bed, acctest.ProviderWithGPUs(t, control), 2)
	host, uuids := l.hosts[0], []string{devices[0].UUID, devices[1].UUID}
	pool := acceptance.Pool("p", fmt.Sprintf("devices = { %s = %s }", host.Name, acceptance.List(uuids...)))
	group := func(worker string) string {
		return job(fmt.Sprintf("image = %q\n  args = [\"wait\"]\n  roles = {\n    ps = { replicas = 1 }\n    %s\n  }",
			trainer, worker))
	}
	onGPUs := group(`worker = { replicas = 2, gpus = { pool = trainyard_gpu_pool.p.name }, args = ["file:` +
		testbed.VisibleDevices + `", "wait"] }`)
	noEngine := acceptance.Says(`roles["ps"].image`,
		`host "`+host.Name+`" has no running Docker Engine, and role "ps" needs one for its image "`+trainer+`"`,

		"sudo apt-get install -y docker.io", "sudo systemctl enable --now docker")

	l.on(host, "systemctl disable --now --quiet docker.socket docker.service")
	t.Cleanup(func() {
		l.on(host,
			"rm -f /usr/bin/nvidia-container-runtime-hook && systemctl enable --quiet docker.socket docker.service && systemctl restart docker")
	})
	l.test(
		resource.TestStep{Config: l.config(l.cluster(host), group("")), PlanOnly: true, ExpectError: noEngine},
		resource.TestStep{Config: l.config(l.cluster(host), pool)},
		resource.TestStep{Config: l.config(l.cluster(host), pool, group("")), PlanOnly: true, ExpectError: noEngine},
		resource.TestStep{
			// The socket starts the Engine on demand, which on a busy machine takes longer than a plan waits.
			PreConfig: func() { l.on(host, "systemctl start docker.socket && docker version") },
			Config:    l.config(l.cluster(host), pool, onGPUs),
			ExpectError: acceptance.Says(`roles["worker"].gpus`,
				`host "`+host.Name+`" lacks NVIDIA's container toolkit, and role "worker" needs it for GPUs`,

				"sudo apt-get install -y nvidia-container-toolkit", "sudo systemctl restart docker"),
		},
		resource.TestStep{
			PreConfig: func() { l.must(host.InstallNVIDIA(t.Context(), uuids...)) },
			Config:    l.config(l.cluster(host), pool, onGPUs),
			Check: func(*terraform.State) error {
				var given []string
				for _, member := range []string{"job-worker-0", "job-worker-1"} {
					acctest.Eventually(t, member+" to print which GPUs it has", func() bool {
						output := l.on(host, "docker logs %s 2>&1", l.container(host, member))
						i := slices.IndexFunc(uuids,
							func(uuid string) bool { return strings.Contains(output, fmt.Sprintf("%q", uuid+"\n")) })
						if i >= 0 {
							given = append(given, uuids[i])
						}
						return i >= 0
					})
				}
				slices.Sort(given)
				none := strings.TrimSpace(l.on(host, "docker inspect --format '{{len .HostConfig.DeviceRequests}}' %s",
					l.container(host, "job-ps-0")))
				return acceptance.Differences(append(slices.Sorted(slices.Values(uuids)), "0"), append(given, none))
			},
		},
		resource.TestStep{
			Config: l.config(l.cluster(host), pool, job(`image = "localhost:1/trainer:1"
  roles = { ps = { replicas = 1, restart = { condition = "never" } } }`)),
			ExpectError: acceptance.Says(`image "localhost:1/trainer:1" can't be pulled`,
				"if localhost:1 wants credentials, there are none", "docker.registries",
				"sudo docker login localhost:1"),
		},
	)
}
