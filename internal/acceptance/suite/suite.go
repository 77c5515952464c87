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

// tests are the tests, by their names.
var tests = map[string]func(*Lab){
	"GroupCreate": groupCreate, "GroupUpdate": groupUpdate, "GroupGrowsWithoutRestart": groupGrowsWithoutRestart,
	"GroupDrift": groupDrift, "Disappears": disappears, "GroupCompletes": groupCompletes, "GroupMemberFails": groupMemberFails,
	"Import": imports, "Files": files, "FilesDrift": filesDrift, "Policy": aPolicy, "PolicyFollowsLoad": policyFollowsLoad,
	"PolicyFollowsModel": policyFollowsModel,
	"Logs":               groupLogs, "Sweep": aSweep, "GPUs": gpus, "GPUsShared": sharedGPUs,
}

// Run runs the tests, each in a lab of its own. An engine opens one with the GPUs of a control, which is nil for none.
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

// Site is where a test runs: a cluster of one host that is not there yet, and that nobody else has.
type Site struct {
	// Ref reaches the cluster, and Engines has its engine.
	Ref     domain.ClusterRef
	Engines engine.Registry
	// Provider and Cluster are the configuration of the provider, and that of the cluster as trainyard_cluster.lab.
	Provider, Cluster string
	// ImportFrom begins import IDs, and Nowhere is what is said of a cluster that is not found by its name alone.
	ImportFrom, Nowhere string
	// Host is the name of the host, Address where its members are reached, and Port the first of 20 free ports there.
	Host, Address string
	Port          int
	// Open opens the cluster, past the provider.
	Open func() engine.Engine
	// Dir is the state directory of the cluster on the host, and Shell runs a command there.
	Dir   statedir.Dir
	Shell func(command string) (string, error)
	// PID returns the ID of the process of a member that runs, on its host.
	PID func(member string) int
	// Kill is the shell command that kills the command of a member, by that ID as %[1]d.
	Kill string
	// Alive counts the processes of members.
	Alive func() int
	// Told returns what a command of the program says about the cluster.
	Told func(command ...string) string
}

// Lab is a site on which a test works.
type Lab struct {
	*testing.T
	Site

	// seen are the instances of the members as of the last check of changes.
	seen map[string]string
	// nvml drives the GPUs of the host, which are devices.
	nvml    *fakenvml.Control
	devices []fakenvml.Device
}

// id is how something in the cluster is called.
func (l *Lab) id(names ...string) string {
	return strings.Join(append([]string{l.Ref.Name}, names...), "/")
}

// importID is what something in the cluster is imported by.
func (l *Lab) importID(names ...string) string { return l.ImportFrom + l.id(names...) }

// test takes the steps, with the provider in this process.
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

// waiting are the attributes of a group of workers that wait.
func waiting(role string) string {
	return "command = [local.member, \"wait\"]\n  roles = { worker = { " + role + " } }"
}

// address returns where a member with the nth port of the lab is reached.
func (l *Lab) address(n int) string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port+n)) }

func (l *Lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// shell runs a command on the host, which has to succeed.
func (l *Lab) shell(format string, args ...any) string {
	l.Helper()
	output, err := l.Shell(fmt.Sprintf(format, args...))
	l.must(err)
	return output
}

// observed returns the members as the engine sees them, by name.
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

// instances returns marks of the last instances of all members.
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

// changes returns a check that since the last one these members came (+), were started anew (~), or went (-), and no
// others.
func (l *Lab) changes(want ...string) resource.TestCheckFunc {
	return acceptance.Changes(&l.seen, l.instances, want)
}

// state returns what the host has noted of a member.
func (l *Lab) state(member string) (state statedir.State) {
	l.Helper()
	l.must(json.Unmarshal([]byte(l.shell("cat %s", l.Dir.Document(statedir.States, member))), &state))
	return state
}

// kill kills the command of a member and returns when that was noted.
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

// expectAlive returns a check that so many processes run for members.
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

// edit changes the stored document of a group by hand.
func (l *Lab) edit(name string, change func(*domain.GroupDocument)) {
	l.Helper()
	document, err := engine.Get[domain.GroupDocument](l.Context(), l.Open(), name)
	l.must(err)
	change(&document)
	_, err = engine.Put(l.Context(), l.Open(), document)
	l.must(err)
}

// lastLines returns the last lines that a member wrote.
func (l *Lab) lastLines(member string, n int) []string {
	l.Helper()
	lines, err := l.Open().Logs(context.WithoutCancel(l.Context()), member, engine.LogOptions{Tail: n})
	l.must(err)
	return lines
}

// texts is a list of strings in a state.
func texts(list ...string) knownvalue.Check {
	checks := make([]knownvalue.Check, len(list))
	for i, text := range list {
		checks[i] = knownvalue.StringExact(text)
	}
	return knownvalue.ListExact(checks)
}
