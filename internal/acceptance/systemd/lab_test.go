//go:build linux

package systemd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance/suite"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// shared is a folder of this machine that is mounted on all hosts: tests put into it what they build and create.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("/var/tmp", "trainyard-hosts-"); err == nil {
		err = os.Chmod(shared, 0o755) //nolint:gosec // members are not all root
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = os.Setenv("TMPDIR", shared)
	acctest.Main(m, testbed.CloseShared, fakenvml.Remove, func() error { return os.RemoveAll(shared) })
}

// lab is a cluster on hosts of a bed that all tests share. At the end of the test nothing of it may be left there.
type lab struct {
	*testing.T
	bed      *testbed.Hosts
	hosts    []*testbed.Host
	provider string
	name     string
	port     int
	open     func() engine.Engine
}

// labs counts the labs; portsALab is the number of ports that each has to itself.
var labs atomic.Int32

const portsALab = 20

// newLab returns a lab on these hosts of the bed, given their numbers, for a test that may run in parallel with others.
func newLab(t *testing.T, hosts ...int) *lab {
	t.Helper()
	acceptance.Test(t)
	return openLab(t, sharedBed(t), acctest.Build(t, acctest.Provider), hosts...)
}

// sharedBed is the bed that tests leave as they found it.
func sharedBed(t *testing.T) *testbed.Hosts {
	t.Helper()
	return testbed.SharedHosts(t, testbed.HostOptions{Hosts: 3, Mounts: []string{shared}})
}

// openLab is newLab for a test that already runs in parallel, with a bed and a provider.
func openLab(t *testing.T, bed *testbed.Hosts, provider string, hosts ...int) *lab {
	t.Helper()
	number := int(labs.Add(1))
	l := &lab{T: t, bed: bed, provider: provider, name: fmt.Sprintf("lab%d", number), port: 30_000 + portsALab*number}
	for _, n := range hosts {
		l.hosts = append(l.hosts, l.bed.Hosts[n])
	}
	l.open = sync.OnceValue(func() engine.Engine {
		e, err := systemd.Open(l.ref(), engine.Settings{
			SSH: engine.SSHCredentials{IdentityFiles: []string{l.bed.KeyFile}, KnownHosts: []string{l.bed.KnownHosts}},
		}, systemd.Program{File: provider})
		l.must(err)
		return e
	})
	t.Cleanup(func() {
		for _, host := range l.bed.Hosts {
			l.expectNothingOn(host)
		}
	})
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// ref refers to the cluster.
func (l *lab) ref() domain.ClusterRef {
	return domain.ClusterRef{Engine: systemd.Name, Name: l.name, Endpoint: address(l.hosts[0])}
}

// address returns the address of a host.
func address(host *testbed.Host) string { return "ssh://ops@" + host.SSH }

func (l *lab) engines() engine.Registry {
	return engine.Registry{systemd.Name: systemd.Driver(systemd.Program{File: l.provider})}
}

// test runs the steps, with the provider in this process.
func (l *lab) test(steps ...resource.TestStep) {
	l.Helper()
	resource.Test(l.T, resource.TestCase{ProtoV6ProviderFactories: acceptance.Providers(l.engines()), Steps: steps})
}

// providerBlock returns the configuration of the provider.
func (l *lab) providerBlock() string { return providerWith(l.bed.KeyFile, l.bed.KnownHosts) }

func providerWith(key, known string) string {
	return fmt.Sprintf("\nprovider \"trainyard\" {\n  ssh = { identity_files = [%q], known_hosts_files = [%q] }\n}\n",
		key, known)
}

// cluster returns the configuration of the cluster with these hosts of the lab; the first one is the manager.
func (l *lab) cluster(hosts ...*testbed.Host) string {
	var list strings.Builder
	for i, host := range hosts {
		role := ""
		if i == 0 {
			role = ", role = \"manager\""
		}
		fmt.Fprintf(&list, "    %s = { address = %q, advertise_address = %q%s }\n", host.Name, address(host),
			host.Address.String()+":22", role)
	}
	return l.clusterOf(list.String())
}

// clusterOf returns the configuration of the cluster with these hosts.
func (l *lab) clusterOf(hosts string) string {
	return fmt.Sprintf(
		"\nresource \"trainyard_cluster\" \"lab\" {\n  name   = %q\n  engine = \"systemd\"\n  hosts = {\n%s  }\n}\n",
		l.name, hosts,
	)
}

// config returns a configuration of these parts.
func (l *lab) config(parts ...string) string {
	l.Helper()
	locals := fmt.Sprintf("\nlocals {\n  member = %q\n  port = %d\n}\n", acctest.Build(l, acctest.Member), l.port)
	return l.providerBlock() + locals + strings.Join(parts, "\n")
}

// job returns the configuration of the group "job" with these attributes.
func job(attributes string) string {
	return fmt.Sprintf(
		"\nresource \"trainyard_group\" \"job\" {\n  cluster = trainyard_cluster.lab\n  name    = \"job\"\n  %s\n}\n",
		attributes,
	)
}

// waiting returns the group "job" of this many workers that print hello, and wait.
func waiting(workers int) string {
	return job(fmt.Sprintf("command = [local.member, \"print:hello from {{ .Name }}\", \"wait\"]\n"+
		"  roles = { worker = { replicas = %d, port = local.port, restart = { condition = \"always\" } } }", workers))
}

// dir is the state directory of the cluster on each host.
func (l *lab) dir() statedir.Dir { return statedir.Dir{Root: layout.Clusters, Cluster: l.name} }

// on runs a command on a host, and fails the test if that fails.
func (l *lab) on(host *testbed.Host, format string, args ...any) string {
	l.Helper()
	output, err := host.Run(context.WithoutCancel(l.Context()), fmt.Sprintf(format, args...))
	l.must(err)
	return output
}

// unitOf returns the unit of a member on a host, quoted for its shell.
func (l *lab) unitOf(host *testbed.Host, member string) string {
	l.Helper()
	var state statedir.State
	l.must(json.Unmarshal([]byte(l.on(host, "cat %s", l.dir().Document(statedir.States, member))), &state))
	return "'" + units.Name(l.name, member, state.Instance) + "'"
}

// members returns how many processes of members run on a host.
func (l *lab) members(host *testbed.Host) int {
	l.Helper()
	output := l.on(host, "%s | grep -c '^%s/'; true", testbed.FoldersOf(acctest.Build(l, acctest.Member)),
		l.dir().Path())
	count, err := strconv.Atoi(strings.TrimSpace(output))
	l.must(err)
	return count
}

// awaitLines waits until a member has printed this many lines.
func (l *lab) awaitLines(member string, want int) {
	l.Helper()
	acctest.AtLeast(l, want, "lines of "+member, func() int {
		lines, err := l.open().Logs(context.WithoutCancel(l.Context()), member, engine.LogOptions{})
		l.must(err)
		return len(lines)
	})
}

// running returns how many members run on some hosts together, once there are at least this many.
func (l *lab) running(want int, hosts ...*testbed.Host) int {
	l.Helper()
	return acctest.AtLeast(l, want, "processes of members", func() (n int) {
		for _, host := range hosts {
			n += l.members(host)
		}
		return n
	})
}

// expectMembers returns a check that these numbers of members run on the hosts of the bed.
func (l *lab) expectMembers(want ...int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got := make([]int, len(want))
		for i := range want {
			got[i] = l.running(want[i], l.bed.Hosts[i])
		}
		return acceptance.Differences(want, got)
	}
}

// expectNothingOn fails unless nothing of the cluster is left on a host.
func (l *lab) expectNothingOn(host *testbed.Host) {
	l.Helper()
	var found string
	defer func() {
		if l.Failed() {
			l.Logf("%s has of cluster %s: %s", host.Name, l.name, found)
		}
	}()
	acctest.Eventually(l, "nothing of the cluster to be left on "+host.Name, func() bool {
		found = strings.TrimSpace(l.on(host, "%s", acceptance.LeftOnHost(l.name)))
		return found == ""
	})
}

// TestAcc runs what all engines on plain hosts have in common, each test on one host of the bed.
func TestAcc(t *testing.T) {
	suite.Run(t, func(t *testing.T, control *fakenvml.Control) suite.Site {
		t.Helper()
		provider := acctest.Build(t, acctest.Provider)
		if control != nil {
			provider = acctest.ProviderWithGPUs(t, control)
		}
		l := openLab(t, sharedBed(t), provider, int(labs.Load())%3)
		host := l.hosts[0]
		return suite.Site{
			Ref: l.ref(), Engines: l.engines(), Provider: l.providerBlock(), Cluster: l.cluster(host),
			ImportFrom: address(host) + "/", Nowhere: "start the ID with the address of a host",
			Host: host.Name, Address: host.Address.String(), Port: l.port,
			Open: l.open, Dir: l.dir(),
			Shell: func(command string) (string, error) {
				return host.Run(context.WithoutCancel(t.Context()), command)
			},
			PID: func(member string) int {
				pid, err := strconv.Atoi(l.on(host, "systemctl show --property MainPID --value -- %s",
					l.unitOf(host, member)))
				l.must(err)
				return pid
			},
			Kill:          "kill -KILL %[1]d",
			Alive:         func() int { return l.members(host) },
			CommandOutput: l.runProgram,
		}
	})
}
