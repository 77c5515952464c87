package doctor

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

func TestText(t *testing.T) {
	sick := good()
	sick.Hostname, sick.Systemd, sick.Details.NFS.Client = "gpu2", 245, false
	sick.Docker, sick.Details.Docker, sick.NVIDIA, sick.Details.Devices = facts.Docker{}, Docker{}, facts.NVIDIA{}, nil
	sick.Ports, sick.Details.UDP, sick.Details.Listeners = nil, nil, nil
	sick.Lacks = sick.Judge([]string{"amd64"})
	r := sum(Engines, []HostReport{
		reportOf("ssh://ops@gpu1", good(), nil), reportOf("", sick, nil),
		reportOf("ssh://gpu3", Host{}, errors.New("gpu3: no answer within 30s")),
	})
	var out bytes.Buffer
	must(t, r.writeText(&out))
	const want = `gpu1 (ssh://ops@gpu1): Ubuntu 24.04.1 LTS
  ok       sudo          lets ops use sudo without a password
  ok       systemd       runs systemd 255 as the first process
  ok       architecture  is amd64 (x86_64), with Linux 6.8.0-60-generic
  ok       glibc         has glibc 2.39; trainyard-agent needs 2.31
  ok       commands      has gzip, mktemp and sha256sum
  ok       machine-id    has a machine ID of its own
  ok       clock         agrees with this machine's clock, and NTP keeps it in sync
  ok       cgroups       has cgroup v2 with CPU and memory
  ok       disk          has 200.0 GiB free in /var/lib, mounted at /
  ok       nfs           has an NFS client for /data
  ok       driver        has driver 570.86.15, and 2 GPUs: NVIDIA A40
  ok       docker        has Docker Engine 26.1.3, which ops may use
  ok       docker-disk   has 100.0 GiB free for Docker's data, in /var/lib/docker
  ok       toolkit       has the toolkit, and its runtime is Docker's default
  ok       swarm         is a manager of a Swarm
  ok       swarm-ports   has the ports that its Swarm needs
  ready for swarm and systemd

gpu2 (this machine): Ubuntu 24.04.1 LTS
  ok       sudo          lets ops use sudo without a password
  problem  systemd       for systemd: has systemd 245 (Ubuntu 24.04.1 LTS); Trainyard needs systemd 247 or newer as PID 1, as in Debian 11, Ubuntu 22.04, RHEL 9 and later
                         fix: sudo do-release-upgrade
  ok       architecture  is amd64 (x86_64), with Linux 6.8.0-60-generic
  ok       glibc         has glibc 2.39; trainyard-agent needs 2.31 to read GPUs
  ok       commands      has gzip, mktemp and sha256sum
  ok       machine-id    has a machine ID of its own
  ok       clock         agrees with this machine's clock, and NTP keeps it in sync
  ok       cgroups       has cgroup v2 with CPU and memory
  ok       disk          has 200.0 GiB free in /var/lib, mounted at /
  warning  nfs           has no NFS client to mount /data
                         fix: sudo apt-get install -y nfs-common
  n/a      driver        has no NVIDIA GPU
  problem  docker        for swarm: has no Docker Engine, which a Swarm and roles with an image need
                         fix: sudo apt-get install -y docker.io && sudo systemctl enable --now docker
  n/a      docker-disk   has no running Docker Engine
  n/a      toolkit       has no NVIDIA GPU
  n/a      swarm         has no running Docker Engine
  ok       swarm-ports   has all ports free that a Swarm needs: 2377/tcp, 7946/tcp, 7946/udp, 4789/udp
  not ready for swarm or systemd

ssh://gpu3
  gpu3: no answer within 30s

3 hosts, 2 problems, 1 warning, 1 could not be examined
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDocumented: the guide has a row for each check, in their order.
func TestDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../templates/guides/checking-hosts.md")
	must(t, err)
	_, table, _ := strings.Cut(string(guide), "## The checks")
	table, _, _ = strings.Cut(table, "\n## ")
	var documented, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	for _, c := range checks {
		want = append(want, c.name)
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	report := HostReport{Address: "ssh://gpu1", Hostname: "gpu1", System: "Ubuntu 24.04.1 LTS",
		Ready: map[string]bool{"swarm": false}, Checks: []Finding{
			{
				Check: "docker", Result: Problem, Found: "has no Docker Engine", Fix: "a && b",
				Engines: []string{"swarm"},
			},
			{Check: "nfs", Result: NotApplicable, Found: "mounts no NFS"},
		}}
	var out bytes.Buffer
	must(t, sum([]string{"swarm"}, []HostReport{report, {Address: "ssh://gpu2", Error: "no answer"}}).writeJSON(&out))
	const want = `{
  "engines": [
    "swarm"
  ],
  "hosts": [
    {
      "address": "ssh://gpu1",
      "hostname": "gpu1",
      "system": "Ubuntu 24.04.1 LTS",
      "ready": {
        "swarm": false
      },
      "checks": [
        {
          "check": "docker",
          "result": "problem",
          "found": "has no Docker Engine",
          "fix": "a && b",
          "engines": [
            "swarm"
          ]
        },
        {
          "check": "nfs",
          "result": "not_applicable",
          "found": "mounts no NFS"
        }
      ]
    },
    {
      "address": "ssh://gpu2",
      "error": "no answer"
    }
  ],
  "problems": 1,
  "warnings": 0,
  "unreachable": 1
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing that a host reports can command the terminal that shows it.
func TestReportIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hostile := func(what string) string { return acctest.Hostile().Draw(t, what) }
		h := good()
		h.Hostname, h.OS.Name, h.User, h.Kernel = hostile("host name"), hostile("system"), hostile("user"),
			hostile("kernel")
		h.Details.Models, h.Details.Docker.Swarm = []string{hostile("model")}, hostile("state")
		h.Details.Docker.Access, h.Root, h.Refusal = false, false, hostile("refusal")
		h.Lacks = h.Judge(nil)
		r := sum(Engines,
			[]HostReport{reportOf(hostile("address"), h, nil), reportOf("gpu2", Host{}, errors.New(hostile("error")))})
		for _, write := range []func(*bytes.Buffer) error{
			func(out *bytes.Buffer) error { return r.writeText(out) },
			func(out *bytes.Buffer) error { return r.writeJSON(out) },
		} {
			var out bytes.Buffer
			if err := write(&out); err != nil || printable.Text(out.String()) != out.String() {
				t.Fatalf("it writes %q, %v", out.String(), err)
			}
		}
	})
}
