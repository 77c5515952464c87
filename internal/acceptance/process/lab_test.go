//go:build linux

package process_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestMain(m *testing.M) { acctest.Main(m, fakenvml.Remove) }

// lab is what an acceptance test works with: a state directory with the cluster "lab", and ports of its own. At the end
// of the test nothing may be left in it.
type lab struct {
	*testing.T
	files statedir.Dir
	port  int
	// provider is the provider's program, if not the usual one.
	provider string
	// seen are the instances of the members at the last check of changes.
	seen map[string]string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	acceptance.Test(t)
	return openLab(t)
}

// openLab is newLab for a test that already runs in parallel.
func openLab(t *testing.T) *lab {
	t.Helper()
	dir, port := t.TempDir(), freePorts(t)
	t.Cleanup(func() { acctest.ExpectNobody(t, dir, "at the end") })
	return &lab{T: t, files: statedir.Dir{Root: dir, Cluster: "lab"}, port: port}
}

// portsALab is the number of ports that a lab has to itself.
const portsALab = 20

// ports are the labs' ports: above those that Trainyard assigns to members, and below those of outgoing connections.
var ports = struct {
	sync.Mutex
	// blocks says whether a lab has a block of portsALab ports, and next is the one that has been free for longest.
	blocks [(32_768 - firstPort) / portsALab]bool
	next   int
}{}

const firstPort = 30_000

// freePorts returns the first of a lab's ports, on all of which nobody listens. They are free again after the test.
func freePorts(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range ports.blocks {
		block := ports.next
		ports.next = (ports.next + 1) % len(ports.blocks)
		first := firstPort + block*portsALab
		free := !ports.blocks[block]
		for port := first; port < first+portsALab && free; port++ {
			listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
			free = err == nil && listener.Close() == nil
		}
		if free {
			ports.blocks[block] = true
			t.Cleanup(func() {
				ports.Lock()
				defer ports.Unlock()
				ports.blocks[block] = false
			})
			return first
		}
	}
	t.Fatal("there are no free ports left")
	return 0
}

// TestFreePorts: the ports of a test are free again after it.
func TestFreePorts(t *testing.T) {
	for range 2 * len(ports.blocks) {
		t.Run("", func(t *testing.T) { freePorts(t) })
	}
}

// test runs the steps, with the provider in this process.
func (l *lab) test(steps ...resource.TestStep) {
	l.Helper()
	resource.Test(l.T, resource.TestCase{ProtoV6ProviderFactories: l.providers(), Steps: steps})
}

func (l *lab) providers() map[string]func() (tfprotov6.ProviderServer, error) {
	engines := engine.Registry{process.Name: process.Driver(l.program())}
	return acceptance.Providers(engines)
}

// program is the program that supervisors and controllers run from.
func (l *lab) program() process.Program {
	l.Helper()
	return process.Program{File: cmp.Or(l.provider, acctest.Build(l, acctest.Provider)), Version: "dev"}
}

// config returns a configuration of these parts. It may refer to the program of members and the first port of the lab.
func (l *lab) config(parts ...string) string {
	l.Helper()
	return l.providerBlock() + fmt.Sprintf(`
locals {
  member = %q
  port   = %d
}
`, acctest.Build(l, acctest.Member), l.port) + strings.Join(parts, "\n")
}

// providerBlock returns the configuration of the provider.
func (l *lab) providerBlock() string {
	return fmt.Sprintf("\nprovider \"trainyard\" {\n  state_dir = %q\n}\n", l.files.Root)
}

// theCluster is this machine as a cluster.
const theCluster = `
resource "trainyard_cluster" "lab" {
  name = "lab"
}
`

// group returns the configuration of a group with these attributes.
func group(name, attributes string) string {
	return fmt.Sprintf(`
resource "trainyard_group" %[1]q {
  cluster = trainyard_cluster.lab
  name    = %[1]q
  %[2]s
}
`, name, attributes)
}

// job returns the configuration of the cluster with the group "job".
func (l *lab) job(attributes string) string {
	l.Helper()
	return l.config(theCluster, group("job", attributes))
}

// address returns the address of a member with the nth port of the lab.
func (l *lab) address(n int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port+n)) }

// engine returns the engine of the cluster, bypassing the provider.
func (l *lab) engine() engine.Engine {
	l.Helper()
	e, err := process.Open(domain.ClusterRef{Name: l.files.Cluster}, engine.Settings{StateDir: l.files.Root},
		l.program())
	l.must(err)
	return e
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// state returns the recorded state of a member.
func (l *lab) state(member string) statedir.State {
	l.Helper()
	state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, member))
	l.must(err)
	return state
}

// instances returns the IDs of the last instances of all members.
func (l *lab) instances() map[string]string {
	l.Helper()
	names, err := l.files.List(statedir.States)
	l.must(err)
	instances := map[string]string{}
	for name := range names {
		state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, name))
		if errors.Is(err, engine.ErrNotFound) {
			continue // removed in the meantime
		}
		l.must(err)
		if state.Group != "" {
			instances[name] = state.Instance
		}
	}
	return instances
}

// changes returns a check that exactly these members were added (+), restarted (~) or removed (-) since the last one.
func (l *lab) changes(want ...string) resource.TestCheckFunc {
	return acceptance.Changes(&l.seen, l.instances, want)
}

// kill kills a member's command and waits until that is recorded. Somebody else may be restarting it at the same time.
func (l *lab) kill(member string) {
	l.Helper()
	var before statedir.State
	acctest.Eventually(l, "the command of "+member, func() bool {
		before = l.state(member)
		pid := l.command(before)
		return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
	})
	acctest.Eventually(l, "the end of "+member, func() bool {
		after := l.state(member)
		return after.State != domain.StateRunning || after.Instance != before.Instance
	})
}

// command returns the process of a member's command; 0 if there is none.
func (l *lab) command(of statedir.State) int {
	l.Helper()
	table, err := proctree.Scan()
	l.must(err)
	for _, p := range table[of.Instance] {
		if p.Parent == of.PID {
			return p.PID
		}
	}
	return 0
}

// alive returns how many processes of members run, once there are at least this many.
func (l *lab) alive(want int) int {
	l.Helper()
	return acctest.AtLeast(l, want, "processes of members", func() int {
		return acctest.Alive(l, l.files.Root, acctest.Build(l, acctest.Member))
	})
}

// expectAlive returns a check that this many processes of members run.
func (l *lab) expectAlive(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := l.alive(want); got != want {
			return fmt.Errorf("%d members run, want %d", got, want)
		}
		return nil
	}
}

// create creates a group without Terraform, from its specification as stored; PORT stands for the first port of the
// lab, and MEMBER for the program of members.
func (l *lab) create(specification string) error {
	l.Helper()
	specification = strings.NewReplacer("PORT", strconv.Itoa(l.port), "MEMBER",
		acctest.Build(l, acctest.Member)).Replace(specification)
	var spec domain.Group
	l.must(json.Unmarshal([]byte(specification), &spec))
	_, err := reconcile.Reconciler{Engine: l.engine()}.Create(context.Background(), spec)
	return err
}

// expectStates returns a check that the members are in these states.
func (l *lab) expectStates(want map[string]domain.State) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got := map[string]domain.State{}
		for name := range want {
			got[name] = l.state(name).State
		}
		return acceptance.Differences(want, got)
	}
}

// logs returns the lines that members wrote.
func (l *lab) logs(members ...string) map[string][]string {
	l.Helper()
	lines := map[string][]string{}
	for _, member := range members {
		read, err := l.engine().Logs(context.Background(), member, engine.LogOptions{})
		l.must(err)
		lines[member] = read
	}
	return lines
}

// sorted returns the keys of a map, sorted.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
