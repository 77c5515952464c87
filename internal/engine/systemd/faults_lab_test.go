//go:build linux

package systemd_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// startsFile is where members record their starts before they become processes of their own, on their host.
const startsFile = "/var/tmp/starts"

// beds limits how many beds are up at the same time. Each takes about twenty of the 128 inotify instances that a user
// has on a machine, and root runs other tests too.
var beds = make(chan struct{}, 3)

// faulty is a cluster on three hosts of its own, with its store on the first.
type faulty struct {
	*testing.T
	lab
	member string
	tally  *tally
}

// newFaulty creates the cluster "lab", with its controller and agents.
func newFaulty(t *testing.T) faulty {
	t.Helper()
	f := newHosts(t)
	f.form(f.spec)
	return f
}

// newHosts is newFaulty without a cluster.
func newHosts(t *testing.T) faulty {
	t.Helper()
	return newHostsOf(t, 3)
}

// newHostsOf is newHosts with another number of hosts.
func newHostsOf(t *testing.T, hosts int) faulty {
	t.Helper()
	if testing.Short() {
		t.Skip("this runs hosts with systemd, which takes time: run make test-systemd")
	}
	t.Parallel()
	provider, member := acctest.Build(t, acctest.Provider), acctest.Build(t, acctest.Member)
	beds <- struct{}{}
	t.Cleanup(func() { <-beds })
	bed := testbed.NewHosts(t, testbed.HostOptions{Hosts: hosts, Mounts: []string{shared}})
	f := faulty{
		t, lab{bed: bed, spec: specOn(bed, "lab"), provider: provider}, member, &tally{faults: map[string]int{}},
	}
	f.Engine = f.open(0, provider)
	t.Cleanup(func() {
		t.Log(f.tally)
		if !t.Failed() {
			return
		}
		for _, h := range bed.Hosts {
			output, err := h.Run(context.Background(), "tail -n 30 "+layout.Clusters+"/*/logs/trainyard-*.log; "+
				"journalctl --no-pager --boot --lines 60 --unit 'trainyard*'")
			t.Logf("%s: %s (%v)", h.Name, output, err)
		}
	})
	return f
}

// open opens the cluster at one of its hosts, as a provider does that knows all of them, with connections of its own.
func (f faulty) open(at int, program string) *systemd.Engine {
	f.Helper()
	ref := f.spec.Ref()
	ref.Endpoint = f.spec.Hosts[f.host(at).Name].Address
	settings := engine.Settings{Hosts: f.spec.Hosts, SSH: engine.SSHCredentials{
		IdentityFiles: []string{f.bed.KeyFile}, KnownHosts: []string{f.bed.KnownHosts},
	}}
	e, err := systemd.Open(ref, settings, systemd.Program{File: program})
	f.must(err)
	return e
}

// form turns the hosts into the cluster, as an apply does.
func (f faulty) form(spec domain.Cluster) {
	f.Helper()
	f.must(formed(f.bounded(), f.Engine, spec))
}

func formed(ctx context.Context, e engine.Engine, spec domain.Cluster) error {
	spec, problems, err := e.Complete(ctx, spec)
	if err == nil {
		err = problems.Err()
	}
	if err != nil {
		return err
	}
	document, err := engine.Cluster(ctx, e)
	if err != nil && document.Revision > 0 {
		return err
	}
	if document.Spec, err = e.Form(ctx, spec); err != nil {
		return err
	}
	if _, err := engine.Put(ctx, e, document); err != nil {
		return err
	}
	if err := e.StartController(ctx); err != nil {
		return err
	}
	_, err = reconcile.Reconciler{Engine: e}.AwaitResidents(ctx)
	return err
}

func (f faulty) host(i int) *testbed.Host { return f.bed.Hosts[i] }

func (f faulty) bounded() context.Context {
	f.Helper()
	return acctest.Bounded(f.T)
}

func (f faulty) must(err error) {
	f.Helper()
	must(f.T, err)
}

func (f faulty) eventually(what string, holds func() bool) {
	f.Helper()
	acctest.Eventually(f.T, what, holds)
}

// runs runs the command of our program that an error suggests, as a user whose SSH configuration has the hosts, and
// returns its output.
func (f faulty) runs(hint error, name string) string {
	f.Helper()
	_, line, found := strings.Cut(fmt.Sprint(hint), "terraform-provider-trainyard "+name+" ")
	if !found {
		f.Fatalf("no command %s in: %v", name, hint)
	}
	line, _, _ = strings.Cut(line, "\n")
	command := exec.CommandContext(f.bounded(), f.provider, append([]string{name}, strings.Fields(line)...)...)
	command.Env = append(os.Environ(), "HOME="+f.bed.Home(f.T), "SSH_AUTH_SOCK=")
	output, err := command.CombinedOutput()
	if err != nil {
		f.Fatalf("%v: %v\n%s", command.Args, err, output)
	}
	return string(output)
}

// sh runs a command on a host, as root.
func (f faulty) sh(host int, command string) string {
	f.Helper()
	out, err := f.host(host).Run(f.bounded(), command)
	f.must(err)
	return out
}

// group returns a group with a member on each of some hosts, which records its start and then runs the steps.
func (f faulty) group(name string, hosts []int, steps ...string) domain.Group {
	g := domain.Group{
		Cluster: f.spec.Name, Name: name, Framework: "none", RestartScope: domain.ScopeMember,
		WaitFor: domain.WaitRunning,
		Template: domain.Template{Command: []string{
			"/bin/sh", "-c", `echo "$TRAINYARD_MEMBER" >> ` + startsFile + `; member=$1; shift; exec "$member" "$@"`,
			"sh", f.member,
		}, Args: steps},
		Roles: map[string]domain.Role{},
	}
	for _, i := range hosts {
		one := 1
		at := domain.Placement{Hosts: []string{f.host(i).Name}}
		g.Roles[fmt.Sprint("on", i+1)] = domain.Role{Replicas: &one, Placement: at}
	}
	return g
}

var everyHost = []int{0, 1, 2}

// update applies a group by the test's engine.
func (f faulty) update(g domain.Group) {
	f.Helper()
	f.must(reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), g))
}

// observed returns the members of a group by name.
func (f faulty) observed(e engine.Engine, group string) map[string]domain.Observed {
	f.Helper()
	observed, err := e.Observe(f.bounded(), group)
	f.must(err)
	members := map[string]domain.Observed{}
	for _, o := range observed {
		members[o.Name] = o
	}
	return members
}

// processes returns the hosts on which processes of each member of a group run, once per process.
func (f faulty) processes(group string) map[string][]string {
	f.Helper()
	script := testbed.FoldersOf(f.member) + "; true"
	found := map[string][]string{}
	for i, h := range f.bed.Hosts {
		for line := range strings.Lines(f.sh(i, script)) {
			member := strings.TrimSpace(line)
			if dir := f.dir().WorkDir(""); strings.HasPrefix(member, dir) &&
				strings.HasPrefix(filepath.Base(member), group+"-on") {
				found[filepath.Base(member)] = append(found[filepath.Base(member)], h.Name)
			}
		}
	}
	return found
}

// running returns the processes of a group once this number of members have any.
func (f faulty) running(group string, members int) (found map[string][]string) {
	f.Helper()
	acctest.AtLeast(f.T, members, "members with processes", func() int {
		found = f.processes(group)
		return len(found)
	})
	return found
}

// starts returns how often each member of a group was started, on all hosts together.
func (f faulty) starts(group string) map[string]int {
	f.Helper()
	starts := map[string]int{}
	for i := range f.bed.Hosts {
		for line := range strings.Lines(f.sh(i, "cat "+startsFile+" 2>/dev/null; true")) {
			if name := strings.TrimSpace(line); strings.HasPrefix(name, group+"-on") {
				starts[name]++
			}
		}
	}
	return starts
}

// startedOnce fails unless the members of a group run, in one process each, and were started no more than once.
func (f faulty) startedOnce(g domain.Group) {
	f.Helper()
	f.started(g, 1)
}

// started fails unless the members of a group run, in one process each, and were started this many times.
func (f faulty) started(g domain.Group, times int) {
	f.Helper()
	members := f.observed(f.Engine, g.Name)
	processes, starts := f.running(g.Name, len(members)), f.starts(g.Name)
	if len(members) != len(g.Roles) || len(processes) != len(members) || len(starts) != len(members) {
		f.Errorf("%d roles have the members %v, the processes %v, the starts %v", len(g.Roles), members, processes,
			starts)
	}
	for range len(g.Roles) - len(members) {
		f.tally.look(nil, 0, times)
	}
	for name, o := range members {
		f.tally.look(processes[name], starts[name], times)
		if o.State != domain.StateRunning || !slices.Equal(processes[name], []string{o.Host}) || starts[name] != times {
			f.Errorf("%s is %s on %s, runs on %v, and was started %d times, not %d", name, o.State, o.Host,
				processes[name], starts[name], times)
		}
	}
}

// destroy destroys a group, and checks that nothing of it is left.
func (f faulty) destroy(group string) {
	f.Helper()
	f.must(reconcile.Reconciler{Engine: f.Engine}.Destroy(f.bounded(), group))
	f.gone(group)
}

// gone fails if anything of a group is left.
func (f faulty) gone(group string) {
	f.Helper()
	f.eventually("group "+group+" to be gone",
		func() bool { return len(f.processes(group)) == 0 && len(f.observed(f.Engine, group)) == 0 })
	f.eventually("the services of group "+group+" to be gone", func() bool {
		pattern := "trainyard-lab-" + strings.ReplaceAll(group, "-", `\\x2d`) + "*.service"
		return f.anywhere("systemctl list-units --all --plain --no-legend '"+pattern+"'") == ""
	})
}

// anywhere returns what a command prints on the hosts; empty if it prints nothing on any.
func (f faulty) anywhere(command string) string {
	f.Helper()
	var lines []string
	for i, h := range f.bed.Hosts {
		if out := f.sh(i, command); out != "" {
			lines = append(lines, h.Name+": "+out)
		}
	}
	return strings.Join(lines, "\n")
}

// finish destroys the cluster with everything in it, and checks that nothing is left.
func (f faulty) finish() {
	f.Helper()
	e := f.open(0, f.provider)
	groups, err := engine.List[domain.GroupDocument](f.bounded(), e)
	f.must(err)
	for _, g := range groups {
		f.must(reconcile.Reconciler{Engine: e}.Destroy(f.bounded(), g.Spec.Name))
	}
	f.must(e.Dissolve(f.bounded()))
	f.nothingLeft(f.spec.Name)
}

// nothingLeft fails if a host has anything of a cluster.
func (f faulty) nothingLeft(cluster string) {
	f.Helper()
	left := map[string]string{
		"units": fmt.Sprintf("systemctl list-units --all --plain --no-legend 'trainyard-%s*' 'trainyard@%s*'",
			cluster, cluster),
		"files": fmt.Sprintf(
			"ls -d %s/%s /etc/systemd/system/*trainyard@%s* /etc/systemd/system/*/trainyard@%s* 2>/dev/null; true",
			layout.Clusters, cluster, cluster, cluster,
		),
		"keys": fmt.Sprintf(
			"grep -h ' trainyard cluster %s$' /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys; true", cluster,
		),
		"processes": fmt.Sprintf("pgrep -af -- '--cluster %s( |$)'; true", cluster),
		"members": fmt.Sprintf(
			`find /proc/[0-9]* -maxdepth 1 -name cwd -lname '%s/%s/*' -printf '%%l\n' 2>/dev/null; true`,
			layout.Clusters, cluster),
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		remaining := ""
		f.eventually(what+" of the cluster to be gone", func() bool { // once systemd has noticed all ends
			before := remaining
			if remaining = f.anywhere(left[what]); remaining != before && remaining != "" {
				f.Logf("%s of cluster %s that are there:\n%s", what, cluster, remaining)
			}
			return remaining == ""
		})
	}
}
