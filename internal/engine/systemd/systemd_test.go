//go:build linux

package systemd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/enginetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// shared is a folder of this machine that all hosts have too, with everything that tests build and create.
var shared string

func TestMain(m *testing.M) {
	var err error
	shared, err = os.MkdirTemp("/var/tmp", "trainyard-hosts-")
	if err == nil {
		err = os.Chmod(shared, 0o755)
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = os.Setenv("TMPDIR", shared)
	acctest.Main(m, testbed.CloseShared, fakenvml.Remove, func() error { return os.RemoveAll(shared) })
}

// lab is a cluster on the hosts of a bed.
type lab struct {
	*systemd.Engine
	bed  *testbed.Hosts
	spec domain.Cluster
	// provider is the file of the provider, and nvml the driver of the hosts' GPUs, if they have any.
	provider string
	nvml     *fakenvml.Control
}

// bedOf returns a bed of hosts that have the programs of these tests.
func bedOf(t *testing.T, hosts int) *testbed.Hosts {
	t.Helper()
	if testing.Short() {
		t.Skip("this runs hosts with systemd, which takes time: run make test-systemd")
	}
	return testbed.SharedHosts(t, testbed.HostOptions{Hosts: hosts, Mounts: []string{shared}})
}

// specOn returns the specification of a cluster on a bed; its first host is the store host.
func specOn(bed *testbed.Hosts, name string) domain.Cluster {
	spec := domain.Cluster{Name: name, Engine: systemd.Name, Hosts: map[string]domain.Host{}}
	for i, h := range bed.Hosts {
		host := domain.Host{Address: "ssh://ops@" + h.SSH, AdvertiseAddress: h.Address.String() + ":22"}
		if i == 0 {
			host.Role = domain.HostManager
			spec.Endpoint = host.Address
		}
		spec.Hosts[h.Name] = host
	}
	return spec
}

// openOn opens a cluster on a bed, which ends with the test.
func openOn(t *testing.T, bed *testbed.Hosts, name string) lab {
	t.Helper()
	return lab{bed: bed, spec: specOn(bed, name), provider: acctest.Build(t, acctest.Provider)}.open(t)
}

// open opens the cluster, which ends with the test.
func (l lab) open(t *testing.T) lab {
	t.Helper()
	l = l.again(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.on(t,
				fmt.Sprintf("cat %[1]s/logs/trainyard-*.log; journalctl --no-pager | grep -F -e %[2]s -e %[3]s | grep -v -e 'Start' -e 'Deactivated' | tail -n 200; grep -ho '\"last_error[^,]*' %[1]s/states/*; true",
					l.dir().Path(), layout.SupervisorUnit(l.spec.Name), "trainyard-"+l.spec.Name)))
		}
		acctest.EndCluster(t, l)
	})
	return l
}

// again opens the cluster a second time.
func (l lab) again(t *testing.T) lab {
	t.Helper()
	e, err := systemd.Open(l.spec.Ref(), engine.Settings{
		SSH: engine.SSHCredentials{IdentityFiles: []string{l.bed.KeyFile}, KnownHosts: []string{l.bed.KnownHosts}},
	},
		systemd.Program{File: l.provider})
	must(t, err)
	l.Engine = e
	return l
}

// on runs a command on the hosts, as root, and returns the output of all of them, in the order of the hosts.
func (l lab) on(t *testing.T, command string) string {
	t.Helper()
	var all []string
	for _, h := range l.bed.Hosts {
		out, err := h.Run(acctest.Bounded(t), command)
		if err != nil {
			t.Fatalf("%s: %s: %v %s", h.Name, command, err, out)
		}
		all = append(all, out)
	}
	return strings.Join(all, "\n")
}

func (l lab) dir() statedir.Dir { return statedir.Dir{Root: layout.Clusters, Cluster: l.spec.Name} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func known(t *testing.T, e engine.Store) lab {
	t.Helper()
	l, ok := e.(lab)
	if !ok {
		t.Fatalf("%T is not of these tests", e)
	}
	return l
}

func TestConformance(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, harness(t, bedOf(t, 2)))
}

func harness(t *testing.T, bed *testbed.Hosts) enginetest.Harness {
	t.Helper()
	program := acctest.Build(t, acctest.Member)
	return enginetest.Harness{
		Open: func(t *testing.T, cluster string) engine.Engine {
			t.Helper()
			return openOn(t, bed, cluster)
		},
		Store: storetest.Harness{
			Open: func(t *testing.T, cluster string) engine.Store {
				t.Helper()
				l := openOn(t, bed, cluster)
				_, err := l.Form(acctest.Bounded(t), l.spec)
				must(t, err)
				// nothing runs there, and the stored data may be anything
				t.Cleanup(func() { l.on(t, "rm -r "+l.dir().Path()) })
				return l
			},
			Watch: func(t *testing.T, s engine.Store) <-chan struct{} {
				t.Helper()
				events, err := known(t, s).Watch(t.Context())
				must(t, err)
				return events
			},
			Corrupt: func(t *testing.T, s engine.Store, key engine.Key) string {
				t.Helper()
				l := known(t, s)
				file := l.dir().Item(key)
				l.on(t, fmt.Sprintf("printf 'theirs\\n{}' > %s", file))
				return file
			},
		},
		Cluster:      func(name string) domain.Cluster { return specOn(bed, name) },
		Host:         bed.Hosts[1].Name,
		StartsWithin: 20 * time.Second,
		Template: func(steps ...string) domain.Template {
			return domain.Template{Command: append([]string{program}, steps...)}
		},
		Scratch: func(t *testing.T) string {
			return "/var/tmp/" + strings.NewReplacer("/", "-", " ",
				"-").Replace(t.Name()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
		},
		Foreign: func(t *testing.T, e engine.Engine, group string) func() error {
			t.Helper()
			l, member := known(t, e), domain.MemberName(group, "worker", 0)
			note := filepath.Join(l.dir().WorkDir(member), "result.txt")
			l.on(t, fmt.Sprintf(
				"mkdir -p %s && echo result > %s && TRAINYARD_MEMBER=%s setsid %s wait >/dev/null 2>&1 </dev/null & echo $!",
				filepath.Dir(note), note, member, program,
			))
			return func() error {
				for _, h := range l.bed.Hosts {
					if out, err := h.Run(context.Background(),
						fmt.Sprintf("grep -qx result %s && pgrep -f '^%s wait' >/dev/null", note,
							program)); err != nil {
						return fmt.Errorf("%s: %w %s", h.Name, err, out)
					}
				}
				return nil
			}
		},
		Alive: func(t *testing.T, e engine.Engine, group string) int {
			t.Helper()
			alive := 0
			script := fmt.Sprintf("%s | grep -c '^%s'; true", testbed.FoldersOf(program),
				known(t, e).dir().WorkDir(group+"-"))
			for line := range strings.Lines(known(t, e).on(t, script)) {
				number, err := strconv.Atoi(strings.TrimSpace(line))
				must(t, err)
				alive += number
			}
			return alive
		},
		Show: func(t *testing.T, e engine.Engine, group string) string {
			t.Helper()
			return known(t, e).on(t,
				fmt.Sprintf(`cd %[1]s; ps -eo pid,ppid,state,lstart,args | grep -v 'ps -eo'; for p in /proc/[0-9]*; do echo $p $(readlink $p/exe $p/cwd); done | grep %[2]s
				systemctl --no-pager list-units --all '*%[2]s*'; tail -n 50 states/%[2]s* logs/%[2]s*; journalctl --no-pager | grep -F %[2]s; true`,
					known(t, e).dir().Path(), group))
		},
		GPUs: enginetest.GPUs{
			Open: func(t *testing.T, cluster string) engine.Engine {
				t.Helper()
				control := fakenvml.New(t)
				if out, err := bed.Hosts[0].Run(acctest.Bounded(t),
					"mount -t tmpfs none "+filepath.Dir(control.Path())); err != nil { // it has no GPUs
					t.Fatal(err, out)
				}
				return lab{
					bed: bed, spec: specOn(bed, cluster),
					provider: acctest.ProviderWithGPUs(t, control, enginetest.Lacking), nvml: control,
				}.open(t)
			},
			Driver:  func(t *testing.T, e engine.Engine) enginetest.Driver { t.Helper(); return known(t, e).nvml },
			Another: func(t *testing.T, e engine.Engine) engine.Engine { t.Helper(); return known(t, e).again(t) },
			Process: func(t *testing.T, e engine.Engine, member string) int {
				t.Helper()
				out, err := bed.Hosts[1].Run(acctest.Bounded(t),
					"cat "+known(t, e).dir().Document(statedir.States, member))
				must(t, err)
				var state statedir.State
				must(t, json.Unmarshal([]byte(out), &state))
				out, err = bed.Hosts[1].Run(acctest.Bounded(t), fmt.Sprintf(
					`for p in /proc/[0-9]*; do grep -qz '^%s=%s$' $p/environ 2>/dev/null && basename $p && break; done`,
					proctree.InstanceVariable, state.Instance,
				))
				must(t, err)
				pid, err := strconv.Atoi(out)
				must(t, err)
				return pid
			},
			Stranger: 1,
		},
		Traffic: counting(t, bed),
	}
}

// counting returns where members reach each other on a host; nil if its systemd has no cgroup v2 hierarchy, and so
// counts no traffic.
func counting(t *testing.T, bed *testbed.Hosts) func(string) string {
	t.Helper()
	out, err := bed.Hosts[1].Run(acctest.Bounded(t),
		"cd /sys/fs/cgroup; ls cgroup.controllers unified/cgroup.controllers 2>/dev/null | wc -l")
	must(t, err)
	if strings.TrimSpace(out) == "0" {
		t.Log("the hosts have control groups of version 1 alone: that nothing is known of traffic is tested")
		return nil
	}
	return func(string) string { return "127.0.0.1" }
}
