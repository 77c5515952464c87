//go:build linux

// Package suite is a table of the acceptance tests that every engine on plain hosts must pass: what a user of Terraform
// sees is the same, wherever members run.
package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/nvml/fakenvml"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// tests are the tests by name.
var tests = map[string]func(*Lab){
	"GroupCreate": groupCreate, "GroupUpdate": groupUpdate, "GroupGrowsWithoutRestart": groupGrowsWithoutRestart,
	"GroupDrift": groupDrift, "Disappears": disappears, "GroupCompletes": groupCompletes,
	"GroupMemberFails": groupMemberFails,
	"Import":           imports, "Files": files, "FilesDrift": filesDrift, "Policy": aPolicy,
	"PolicyFollowsLoad":  policyFollowsLoad,
	"PolicyFollowsModel": policyFollowsModel,
	"Logs":               groupLogs, "Sweep": aSweep, "GPUs": gpus, "GPUsShared": sharedGPUs,
}

// Run runs the tests, each in a lab of its own. open opens a site on an engine, with a control's GPUs, or none if
// control is nil.
func Run(t *testing.T, open func(t *testing.T, control *fakenvml.Control) Site) {
	acceptance.Test(t)
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &Lab{T: t}
			if strings.HasPrefix(name, "GPUs") {
				l.nvml, l.devices = fakenvml.New(t), fakenvml.V100s("dgx", 8)
				l.nvml.Set(l.devices...)
			}
			l.Site = open(t, l.nvml)
			tests[name](l)
		})
	}
}

// Site is where a test runs: a cluster of a single host that does not exist yet, for this test only.
type Site struct {
	// Ref refers to the cluster, and Engines contains its engine.
	Ref     domain.ClusterRef
	Engines engine.Registry
	// Provider and Cluster are the configurations of the provider, and of the cluster as trainyard_cluster.lab.
	Provider, Cluster string
	// ImportFrom is the prefix of import IDs, and Nowhere the error for a cluster that can't be found by name only.
	ImportFrom, Nowhere string
	// Host is the name of the host, Address the address of its members, and Port the first of 20 free ports there.
	Host, Address string
	Port          int
	// Open opens the cluster, bypassing the provider.
	Open func() engine.Engine
	// Dir is the cluster's state directory on the host, and Shell runs a command there.
	Dir   statedir.Dir
	Shell func(command string) (string, error)
	// PID returns the PID of a running member on its host.
	PID func(member string) int
	// Kill is the shell command that kills a member's command, given that PID as %[1]d.
	Kill string
	// Alive returns the number of processes of members.
	Alive func() int
	// CommandOutput returns the output of a command of the program about the cluster.
	CommandOutput func(command ...string) string
}

// Lab is the site of a test.
type Lab struct {
	*testing.T
	Site

	// seen are the instances of the members at the last check of changes.
	seen map[string]string
	// nvml controls the host's GPUs, which are devices.
	nvml    *fakenvml.Control
	devices []fakenvml.Device
}

// id returns the ID of something in the cluster.
func (l *Lab) id(names ...string) string {
	return strings.Join(append([]string{l.Ref.Name}, names...), "/")
}

// importID returns the import ID of something in the cluster.
func (l *Lab) importID(names ...string) string { return l.ImportFrom + l.id(names...) }

// test runs the steps, with the provider in this process.
func (l *Lab) test(steps ...resource.TestStep) {
	l.Helper()
	resource.Test(l.T, resource.TestCase{ProtoV6ProviderFactories: acceptance.Providers(l.Engines), Steps: steps})
}

// config returns a configuration of the cluster and these parts. It may refer to the program of members and the first
// port of the lab.
func (l *Lab) config(parts ...string) string {
	l.Helper()
	locals := fmt.Sprintf("\nlocals {\n  member = %q\n  port = %d\n}\n", acctest.Build(l, acctest.Member), l.Port)
	return l.Provider + locals + l.Cluster + strings.Join(parts, "\n")
}

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
func (l *Lab) job(attributes string) string {
	l.Helper()
	return l.config(group("job", attributes))
}

// waiting returns the attributes of a group of workers that wait.
func waiting(role string) string {
	return "command = [local.member, \"wait\"]\n  roles = { worker = { " + role + " } }"
}

// address returns the address of a member with the nth port of the lab.
func (l *Lab) address(n int) string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port+n)) }

func (l *Lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// shell runs a command on the host, and fails the test if that fails.
func (l *Lab) shell(format string, args ...any) string {
	l.Helper()
	output, err := l.Shell(fmt.Sprintf(format, args...))
	l.must(err)
	return output
}

// observed returns the members by name, as the engine sees them.
func (l *Lab) observed() map[string]domain.Observed {
	l.Helper()
	list, err := l.Open().Observe(context.WithoutCancel(l.Context()), "")
	l.must(err)
	members := map[string]domain.Observed{}
	for _, o := range list {
		members[o.Name] = o
	}
	return members
}

// instances returns the IDs of the last instances of all members.
func (l *Lab) instances() map[string]string {
	l.Helper()
	marks := map[string]string{}
	for name, o := range l.observed() {
		if o.StartedAt != nil {
			marks[name] = o.StartedAt.String()
		}
	}
	return marks
}

// changes returns a check that exactly these members were added (+), restarted (~) or removed (-) since the last one.
func (l *Lab) changes(want ...string) resource.TestCheckFunc {
	return acceptance.Changes(&l.seen, l.instances, want)
}

// state returns the host's record of a member.
func (l *Lab) state(member string) (state statedir.State) {
	l.Helper()
	l.must(json.Unmarshal([]byte(l.shell("cat %s", l.Dir.Document(statedir.States, member))), &state))
	return state
}

// kill kills a member's command and waits until that is recorded.
func (l *Lab) kill(member string) {
	l.Helper()
	before := l.state(member)
	acctest.Eventually(l, "the command of "+member, func() bool {
		_, err := l.Shell(fmt.Sprintf(l.Kill, l.PID(member)))
		return err == nil
	})
	acctest.Eventually(l, "the end of "+member, func() bool {
		after := l.state(member)
		return after.State != domain.StateRunning || after.Instance != before.Instance
	})
}

// expectAlive returns a check that this many processes of members run.
func (l *Lab) expectAlive(want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := acctest.AtLeast(l, want, "processes of members", l.Alive); got != want {
			return fmt.Errorf("%d members run, want %d", got, want)
		}
		return nil
	}
}

// expectStates returns a check that the members are in these states.
func (l *Lab) expectStates(want map[string]domain.State) resource.TestCheckFunc {
	return func(*terraform.State) error {
		got := map[string]domain.State{}
		for name, o := range l.observed() {
			got[name] = o.State
		}
		return acceptance.Differences(want, got)
	}
}

// edit changes a group's stored document by hand.
func (l *Lab) edit(name string, change func(*domain.GroupDocument)) {
	l.Helper()
	document, err := engine.Get[domain.GroupDocument](l.Context(), l.Open(), name)
	l.must(err)
	change(&document)
	_, err = engine.Put(l.Context(), l.Open(), document)
	l.must(err)
}

// lastLines returns the last lines of a member's log.
func (l *Lab) lastLines(member string, n int) []string {
	l.Helper()
	lines, err := l.Open().Logs(context.WithoutCancel(l.Context()), member, engine.LogOptions{Tail: n})
	l.must(err)
	return lines
}

// texts checks a list of strings in a state.
func texts(list ...string) knownvalue.Check {
	checks := make([]knownvalue.Check, len(list))
	for i, text := range list {
		checks[i] = knownvalue.StringExact(text)
	}
	return knownvalue.ListExact(checks)
}
