//go:build linux

package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/filestore"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/units"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/filesource"
)

func TestMain(m *testing.M) { acctest.Main(m, testbed.CloseShared) }

const (
	// program is the provider's path on the host, and stateDir the folder of its clusters.
	program  = "/usr/local/bin/trainyard"
	stateDir = "/var/lib/trainyard"
)

// hostLab is a cluster on a host with systemd, whose supervisor runs in its own unit and is restarted when it ends.
type hostLab struct {
	*testing.T
	host    *testbed.Host
	cluster string
	// unit is that of the supervisor.
	unit string
	runs int
}

// newHostLab starts a supervisor for a cluster of this name, on the host that the tests share.
func newHostLab(t *testing.T, cluster string) *hostLab {
	t.Helper()
	return newHostLabOn(t, testbed.SharedHosts(t, testbed.HostOptions{Hosts: 1}).Hosts[0], cluster)
}

// installing is held while the program is copied to a host.
var installing sync.Mutex

// newHostLabOn starts a supervisor for a cluster of this name on a host.
func newHostLabOn(t *testing.T, host *testbed.Host, cluster string) *hostLab {
	t.Helper()
	l := &hostLab{T: t, host: host, cluster: cluster, unit: "supervisor-of-" + cluster + ".service"}
	installing.Lock()
	if _, err := os.Stat(l.path(program)); errors.Is(err, os.ErrNotExist) {
		l.must(acctest.CopyProgram(acctest.Build(t, acctest.Provider), l.path(program)))
	}
	installing.Unlock()
	l.must(os.MkdirAll(l.path(stateDir), 0o700))
	l.must(l.files().Create())
	l.must(os.WriteFile(l.files().Item(engine.Key{Kind: domain.ClusterKind}), []byte("{}"), 0o600))
	l.must(os.WriteFile(l.path("/etc/systemd/system/"+l.unit), fmt.Appendf(nil, `[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=%s supervise --units --state-dir %s --cluster %s
Environment=HOME=/root
Restart=always
RestartSec=10ms
[Install]
WantedBy=multi-user.target
`, program, stateDir, cluster), 0o644))
	l.sh("systemctl enable --now --quiet " + l.unit)
	t.Cleanup(l.end)
	return l
}

// end ends the supervisor and the members, and fails the test if a process is left.
func (l *hostLab) end() {
	if l.Failed() {
		l.Log(l.out("journalctl --no-pager --lines 40 --unit " + l.unit))
		l.Log(l.out("systemctl list-units --no-pager --all 'trainyard-*'"))
	}
	names, err := l.files().List(statedir.Specs)
	if err != nil {
		l.Error(err)
	}
	for name := range names {
		if err := os.Remove(l.files().Document(statedir.Specs, name)); err != nil {
			l.Error(err)
		}
	}
	l.eventually("all members to be forgotten", func() bool {
		states, err := l.files().List(statedir.States)
		return err == nil && len(states) == 0
	})
	// What a Docker Engine can't remove, for example while it restarts, is swept later.
	l.eventually("what is left of instances to go", func() bool {
		left, err := filepath.Glob(l.files().Exit("[a-z]*", "*"))
		return err == nil && len(left) == 0
	})
	l.awaitNoUnits("")
	l.out("systemctl disable --now --quiet " + l.unit)
	if err := os.RemoveAll(l.files().Path()); err != nil {
		l.Error(err)
	}
}

// path returns this machine's path for a path of the host.
func (l *hostLab) path(onHost string) string { return filepath.Join(l.host.Root(), onHost) }

// files is the cluster's state directory, as seen from this machine.
func (l *hostLab) files() statedir.Dir {
	return statedir.Dir{Root: l.path(stateDir), Cluster: l.cluster}
}

func (l *hostLab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// sh runs a command on the host.
func (l *hostLab) sh(command string) string {
	l.Helper()
	output, err := l.host.Run(l.Context(), command)
	l.must(err)
	return output
}

// out runs a command on the host that may fail, even after the test has ended.
func (l *hostLab) out(command string) string {
	output, err := l.host.Run(testContext, command)
	if err != nil {
		return output + err.Error()
	}
	return output
}

func (l *hostLab) eventually(what string, holds func() bool) {
	l.Helper()
	acctest.Eventually(l, what, holds)
}

// member returns the specification of a member that runs a command.
func (l *hostLab) member(name string, command ...string) domain.MemberSpec {
	l.runs++
	return domain.MemberSpec{
		Cluster: l.cluster, Group: "job", Role: "worker", Name: name, Hash: fmt.Sprint(l.runs), Run: l.runs,
		Command:     command,
		Env:         map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"},
		Restart:     domain.RestartRule{Condition: domain.RestartNever},
		GracePeriod: domain.Duration(time.Minute),
	}
}

// bring brings a file to the host, as trainyard_files does, and returns its path there.
func (l *hostLab) bring(name, content string) string {
	l.Helper()
	source := l.TempDir()
	l.must(os.WriteFile(filepath.Join(source, name), []byte(content), 0o700)) //nolint:gosec // it may be a program
	brought, err := filesource.Source{Path: source}.Read(l.Context())
	l.must(err)
	l.must(filestore.Store{Dir: l.files().Path(statedir.Content)}.Provide(l.Context(), brought.Tree, brought.Tar))
	onHost := filestore.Store{Dir: statedir.Dir{Root: stateDir, Cluster: l.cluster}.Path(statedir.Content)}
	return filepath.Join(onHost.Path(brought.Tree.Digest()), name)
}

// script returns the specification of a member that runs a shell script.
func (l *hostLab) script(name, script string) domain.MemberSpec {
	return l.member(name, "sh", "-c", script)
}

// start puts a specification in force.
func (l *hostLab) start(spec domain.MemberSpec) {
	l.Helper()
	l.must(statedir.Write(l.files().Document(statedir.Specs, spec.Name), spec, statedir.Volatile))
}

// stop asks the supervisor to stop a member.
func (l *hostLab) stop(spec domain.MemberSpec) {
	l.Helper()
	stop := statedir.Stop{Run: spec.Run, Reason: "test"}
	l.must(statedir.Write(l.files().Document(statedir.Stops, spec.Name), stop, statedir.Volatile))
}

// state returns the supervisor's record of a member, if that is about this run.
func (l *hostLab) state(spec domain.MemberSpec) statedir.State {
	l.Helper()
	state, err := statedir.Read[statedir.State](l.files().Document(statedir.States, spec.Name))
	if errors.Is(err, engine.ErrNotFound) || err == nil && state.Run != spec.Run {
		return statedir.State{}
	}
	l.must(err)
	return state
}

// await waits until a member is in a state.
func (l *hostLab) await(spec domain.MemberSpec, state domain.State) statedir.State {
	l.Helper()
	var last statedir.State
	defer func() {
		if last.State != state {
			l.Logf("%s: %+v", spec.Name, last)
		}
	}()
	l.eventually(spec.Name+" to be "+string(state), func() bool {
		last = l.state(spec)
		return last.State == state
	})
	return last
}

// ended runs a member to its end.
func (l *hostLab) ended(spec domain.MemberSpec) statedir.State {
	l.Helper()
	l.start(spec)
	var last statedir.State
	l.eventually(spec.Name+" to end", func() bool {
		last = l.state(spec)
		return last.State.Ended()
	})
	return last
}

// log returns what a member has written so far.
func (l *hostLab) log(spec domain.MemberSpec) string {
	l.Helper()
	content, err := os.ReadFile(l.files().Log(spec.Name))
	if !errors.Is(err, os.ErrNotExist) {
		l.must(err)
	}
	return string(content)
}

// says waits until a member has written something.
func (l *hostLab) says(spec domain.MemberSpec, text string) {
	l.Helper()
	l.eventually(fmt.Sprintf("%s to write %q", spec.Name, text),
		func() bool { return strings.Contains(l.log(spec), text) })
}

// units returns the names of the units of the cluster's members whose names begin with member.
func (l *hostLab) units(member string) string {
	first := strings.TrimSuffix(units.Name(l.cluster, member, ""), "-.service")
	return l.out("systemctl list-units --no-legend --plain --all --full | grep -F '" + first +
		"' | grep -o '^[^ ]*[.]service' || true")
}

// awaitNoUnits waits until no unit is left whose member's name begins so: one is there a moment longer than the member
// runs, as it records its end itself.
func (l *hostLab) awaitNoUnits(member string) {
	l.Helper()
	l.eventually("the units to be gone", func() bool { return l.units(member) == "" })
}

// unitOf returns the unit of a member that runs.
func (l *hostLab) unitOf(spec domain.MemberSpec) string {
	return units.Name(l.cluster, spec.Name, l.state(spec).Instance)
}

// kill kills the supervisor, which systemd then restarts.
func (l *hostLab) kill() {
	l.Helper()
	l.sh("systemctl kill --signal KILL " + l.unit)
}

// processes counts the host's processes with this text in their command line.
func (l *hostLab) processes(text string) string {
	l.Helper()
	// The brackets keep the pattern from matching itself.
	return l.sh("pgrep --count --full -- '[" + text[:1] + "]" + text[1:] + "' || true")
}

// succeed kills the supervisor, and waits until the next one that systemd starts is running.
func (l *hostLab) succeed() {
	l.Helper()
	before, _, err := l.files().Holder(statedir.SupervisorLock)
	l.must(err)
	l.kill()
	l.eventually("the next supervisor", func() bool {
		holder, held, err := l.files().Holder(statedir.SupervisorLock)
		l.must(err)
		return held && holder.Process != before.Process &&
			l.out("systemctl show --value --property MainPID "+l.unit) == fmt.Sprint(holder.Process)
	})
}
