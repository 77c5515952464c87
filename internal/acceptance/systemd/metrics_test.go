//go:build linux

package systemd_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
)

// metricsPort is the port at which the lab's agents answer Prometheus, above the ports of its members.
func (l *lab) metricsPort() int { return l.port + portsALab/2 }

// answering returns the configuration of a cluster whose agents answer Prometheus.
func (l *lab) answering(cluster string) string {
	return strings.Replace(cluster, "  hosts =",
		fmt.Sprintf("  agent  = { metrics_port = %d }\n  hosts =", l.metricsPort()), 1)
}

// metricsAt returns the address of a port of a host.
func metricsAt(host *testbed.Host, port int) string { return fmt.Sprintf("%s:%d", host.Address, port) }

// scrape returns what an address answers to a request from a host, as to Prometheus; "" if nobody answers.
func (l *lab) scrape(from *testbed.Host, address string) string {
	l.Helper()
	return l.on(from,
		`python3 -c 'import urllib.request as r; print(r.urlopen("http://%s/metrics", timeout=10).read().decode())' 2>/dev/null || :`,
		address)
}

// instanceOf returns the ID of a member's instance from a controller's metrics; "" if they don't have it.
func instanceOf(controller, cluster, member string) string {
	line := regexp.MustCompile(`(?m)^trainyard_member_info\{cluster="` + cluster +
		`",group="job",id="([^"]+)",member="` + member + `",role="worker"\} 1$`)
	if found := line.FindStringSubmatch(controller); found != nil {
		return found[1]
	}
	return ""
}

// expectMetrics returns a check of the metrics, as scraped from the last host: each agent reports what the member on
// its host uses, with the host's name, and the controller, on the first host, maps instances to members.
func (l *lab) expectMetrics(hosts ...*testbed.Host) resource.TestCheckFunc {
	return func(*terraform.State) error {
		from := hosts[len(hosts)-1]
		for i, host := range hosts {
			member := fmt.Sprintf("job-worker-%d", i)
			var controller, agent string
			acctest.Eventually(l, "what "+member+" uses to be reported by "+host.Name, func() bool {
				controller = l.scrape(from, metricsAt(hosts[0], l.metricsPort()+1))
				agent = l.scrape(from, metricsAt(host, l.metricsPort()))
				id := instanceOf(controller, l.name, member)
				return id != "" &&
					strings.Contains(agent, fmt.Sprintf("trainyard_member_memory_bytes{id=%q,node=%q} ", id, host.Name))
			})
		}
		return nil
	}
}

// expectSilence returns a check that nobody listens for Prometheus on hosts.
func (l *lab) expectSilence(hosts ...*testbed.Host) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, host := range hosts {
			acctest.Eventually(l, host.Name+" to be silent", func() bool {
				return !l.listens(host, l.metricsPort()) && !l.listens(host, l.metricsPort()+1)
			})
		}
		return nil
	}
}

// If a host can't answer Prometheus, the plan says so, and also that members can't have these ports.
func TestAccMetricsRefused(t *testing.T) {
	l := newLab(t, 0)
	host := l.hosts[0]
	at := func(advertised string) string {
		return l.answering(l.clusterOf(fmt.Sprintf("    %s = { address = %q, role = \"manager\", advertise_address = %q }\n",
			host.Name, address(host), advertised)))
	}
	squatter := "squatter-" + l.name
	l.on(host, "systemd-run --quiet --unit %s python3 -m http.server --bind 127.0.0.1 %d", squatter, l.metricsPort()+4)
	t.Cleanup(func() { l.on(host, "systemctl stop %s", squatter) })
	acctest.Eventually(l, "somebody else to listen", func() bool { return l.listens(host, l.metricsPort()+4) })
	own := l.cluster(host)
	var steps []resource.TestStep
	for config, phrases := range map[string][]string{
		at("203.0.113.7"): {
			`hosts["host1"].advertise_address`, "can't answer Prometheus at 203.0.113.7, which is not one of its own",
			host.Address.String(),
		},
		at("localhost"): {
			`hosts["host1"].advertise_address`, "can't answer Prometheus at localhost, which resolves to",
			"Set advertise_address",
		},
		at("nowhere.invalid"): {"which resolves to none there"},
		strings.Replace(l.answering(own), "metrics_port = ", "metrics_port = 3 + ", 1): {
			"agent.metrics_port", fmt.Sprintf("port %d is already in use, but the controller", l.metricsPort()+4),
		},
		l.answering(own) + job(fmt.Sprintf(
			"command = [local.member, \"wait\"]\n  roles = { worker = { replicas = 1, port = %d } }", l.metricsPort()+1,
		)): {
			`roles["worker"].port`, fmt.Sprint(l.metricsPort() + 1),
		},
	} {
		steps = append(steps,
			resource.TestStep{Config: l.config(config), PlanOnly: true, ExpectError: acceptance.Says(phrases...)})
	}
	l.test(steps...)
}

// listens reports whether anything listens on a port of a host.
func (l *lab) listens(host *testbed.Host, port int) bool {
	l.Helper()
	return l.on(host, "grep -hiE ':%04X [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6 || :", port) != ""
}

// expectTop returns a check that the program shows members on hosts, when it logs in as ssh would.
func (l *lab) expectTop(hosts ...*testbed.Host) resource.TestCheckFunc {
	return func(*terraform.State) error {
		shown := l.runProgram("top", "--once")
		for i, host := range hosts {
			for _, want := range []string{l.name +
				"  systemd  ", "\n" + host.Name + " ", fmt.Sprintf(" job-worker-%d ", i)} {
				if !strings.Contains(shown, want) {
					return fmt.Errorf("%q is not in what top shows:\n%s", want, shown)
				}
			}
		}
		return nil
	}
}
