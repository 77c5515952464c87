//go:build linux

package systemd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// required is the beginning of a workspace's configuration.
const required = "terraform {\n  required_providers {\n    trainyard = { source = \"trainyard/trainyard\" }\n  }\n}\n"

// Problems with hosts are reported at plan time, for all hosts at once, and with the fix.
func TestAccBadHosts(t *testing.T) {
	l := newLab(t, 0, 1, 2)
	one, two, three := l.hosts[0], l.hosts[1], l.hosts[2]
	l.on(two,
		"id guest 2>/dev/null || useradd --create-home guest; mkdir -p /home/guest/.ssh && cp /root/.ssh/authorized_keys /home/guest/.ssh/ && chown -R guest: /home/guest")
	locally := func(host *testbed.Host) string { return strings.Replace(host.SSH, "127.0.0.1", "localhost", 1) }
	known := filepath.Join(t.TempDir(), "known_hosts")
	lines := keyLine(t, l, one,
		one.SSH) + keyLine(t, l, one, locally(one)) + keyLine(t, l, two, two.SSH) + keyLine(t, l, one, three.SSH)
	l.must(os.WriteFile(known, []byte(lines), 0o600))

	var hosts strings.Builder
	for name, login := range map[string]string{
		"twin": "ops@" + locally(one), "guest": "guest@" + two.SSH, "stranger": "nobody-here@" + two.SSH,
		"unknown": "ops@" + locally(two), "changed": "ops@" + three.SSH, "away": "ops@127.0.0.1:1",
	} {
		fmt.Fprintf(&hosts, "    %s = { address = \"ssh://%s\" }\n", name, login)
	}
	fmt.Fprintf(&hosts, "    good = { address = %q, role = \"manager\" }\n", address(one))
	w := acctest.NewWorkspace(t, l.provider)
	w.Write("main.tf", required+providerWith(l.bed.KeyFile, known)+l.clusterOf(hosts.String()))
	output, err := w.Run("plan")
	if err == nil {
		t.Fatalf("hosts that can't be used are planned:\n%s", output)
	}
	acceptance.ExpectSaid(t, output,
		`"good" (ops@`+one.SSH+`) and "twin" (ops@`+locally(one)+`) are the same machine`,
		`host "guest" (guest@`+two.SSH+`) does not allow guest`, `guest ALL=(ALL) NOPASSWD: ALL`,
		`hosts["stranger"].address`, `hosts["unknown"].address`, `known_hosts`, `hosts["changed"].address`,
		`hosts["away"].address`, `127.0.0.1:1 refuses connections`,
	)
	if strings.Contains(output, `hosts["good"]`) {
		t.Errorf("a host is blamed with which nothing is wrong:\n%s", output)
	}
}

// keyLine returns the line of known_hosts with the key of a host under another address.
func keyLine(t *testing.T, l *lab, host *testbed.Host, at string) string {
	t.Helper()
	content, err := os.ReadFile(l.bed.KnownHosts)
	l.must(err)
	name, port, _ := strings.Cut(host.SSH, ":")
	for line := range strings.Lines(string(content)) {
		names, key, _ := strings.Cut(line, " ")
		if strings.Contains(names, "["+name+"]:"+port) {
			name, port, _ = strings.Cut(at, ":")
			return "[" + name + "]:" + port + " " + key
		}
	}
	t.Fatalf("the key of %s is not known", host.Name)
	return ""
}

// What this engine doesn't support, or requires, is reported at plan time.
func TestAccInvalid(t *testing.T) {
	l := newLab(t, 0, 1)
	host := func(n int, attributes string) string {
		return fmt.Sprintf("    %s = { address = %q, %s }\n", l.hosts[n].Name, address(l.hosts[n]), attributes)
	}
	manager := host(0, `role = "manager"`)
	var steps []resource.TestStep
	for config, phrases := range map[string][]string{
		l.clusterOf(host(0, "") + host(1, "")): {
			"No single store host", `set role = "manager" on one host, not on 0`,
		},
		l.clusterOf(manager + host(1, `role = "manager"`)): {
			"No single store host", "not on 2",
		},
		l.clusterOf(manager + host(1, `availability = "drain"`)): {
			`hosts["host2"].availability`, `does not support availability = "drain"`,
		},
		l.clusterOf(manager + host(1, `socket = "/run/docker.sock"`)): {
			`hosts["host2"].socket`, `does not support socket`,
		},
		l.clusterOf(manager + "    b = {}\n"): {
			`hosts["b"].address`, `logs in to host "b": give its address`,
		},
		l.clusterOf(manager + "    b = { address = \"tcp://gpu2\" }\n"): {
			`hosts["b"].address`, `"tcp://gpu2" is not a valid host address`,
		},
		strings.Replace(l.clusterOf(manager), "hosts", "network = {}\n  hosts", 1): {
			"network", "does not support network",
		},
		"resource \"trainyard_cluster\" \"lab\" {\n  name   = \"lab\"\n  engine = \"systemd\"\n}\n": {
			"needs hosts that it can log in to",
		},
		l.clusterOf(manager) + job(`image = "trainer:1"
  roles = { worker = {} }`): {`role "worker" needs one for its image "trainer:1"`, "no /run/docker.sock"},
		l.clusterOf(manager) + job("roles = { worker = {} }"): {
			`neither role "worker" nor its group has a command or an image`,
		},
		l.clusterOf(manager) + job(`image = "trainer:1"
  roles = { worker = { container = { ports = { a = { target = 80, published = 8080 } } } } }`): {
			`roles["worker"].container.ports["a"].published`, "set target = 8080",
		},
		l.clusterOf(manager) +
			"resource \"trainyard_image\" \"a\" {\n  cluster = trainyard_cluster.lab\n  name = \"trainer:1\"\n}\n": {
			"does not copy images to its hosts", "push it to a registry that they can reach", "docker load",
		},
		l.clusterOf(manager) + job(`command = ["/no/such/program"]
  roles = { worker = {} }`): {`/no/such/program`},
	} {
		steps = append(steps,
			resource.TestStep{Config: l.config(config), PlanOnly: true, ExpectError: acceptance.Says(phrases...)})
	}
	steps = append(steps, resource.TestStep{
		Config: l.withBinary("/etc/hostname") + l.clusterOf(manager), PlanOnly: true,
		ExpectError: acceptance.Says(`hosts["host1"].address`, "/etc/hostname is not a Linux program"),
	})
	l.test(steps...)
}

// withBinary returns the configuration of a provider that installs this program on hosts.
func (l *lab) withBinary(file string) string {
	return strings.Replace(l.providerBlock(), "ssh =",
		fmt.Sprintf("agent_binaries = { %s = %q }\n  ssh =", runtime.GOARCH, file), 1)
}

// Hosts run the program that the provider's configuration names.
func TestAccAgentBinaries(t *testing.T) {
	l := newLab(t, 2)
	agent := acctest.BuildAgent(t)
	l.test(resource.TestStep{
		Config: l.withBinary(agent) + l.cluster(l.hosts...),
		Check: func(*terraform.State) error {
			l.on(l.hosts[0], "cmp %s %s", l.dir().Path("program"), agent)
			return nil
		},
	})
}
