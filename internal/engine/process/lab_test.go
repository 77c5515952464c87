//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// lab is a cluster with a group "job" of a parameter server and a worker, both waiting.
type lab struct {
	*testing.T
	opened
	reconcile.Reconciler
	files statedir.Dir
}

func newLab(t *testing.T) lab {
	t.Helper()
	return newLabIn(t, t.TempDir())
}

func newLabIn(t *testing.T, dir string) lab {
	t.Helper()
	return labOf(t, openIn(t, dir))
}

// labOf returns the lab of an engine that was just opened.
func labOf(t *testing.T, e opened) lab {
	t.Helper()
	l := lab{t, e, reconcile.Reconciler{Engine: e}, e.files()}
	spec, _, err := e.Complete(t.Context(), domain.Cluster{Name: "lab", Engine: "process"})
	l.must(err)
	_, err = engine.Put(t.Context(), e, domain.ClusterDocument{Spec: spec})
	l.must(err)
	l.must(e.StartController(t.Context()))
	return l
}

func (l lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// ready is the line that members write once they can handle a stop signal, and a child process of the tests once it can
// begin.
const ready = "ready"

// job returns the group: its chief runs the steps, and its parameter server waits.
func (l lab) job(steps ...string) domain.Group {
	one, delay := 1, domain.Duration(time.Millisecond)
	member := acctest.Build(l, acctest.Member)
	role := func(steps ...string) domain.Role {
		return domain.Role{
			Replicas: &one, Restart: domain.Restart{Delay: &delay},
			Template: domain.Template{Command: append([]string{member, "print:" + ready}, steps...)},
		}
	}
	return domain.Group{
		Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember, WaitFor: domain.WaitRunning,
		Roles:      map[string]domain.Role{"chief": role(steps...), "ps": role("wait")},
		Completion: domain.Completion{When: domain.WhenChief},
	}
}

// state returns the supervisor's record of a member.
func (l lab) state(member string) statedir.State {
	l.Helper()
	state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, member))
	l.must(err)
	return state
}

// alive returns the number of processes that run for members, once it is the wanted one.
func (l lab) alive(want int) int {
	l.Helper()
	return acctest.AtLeast(l, want, "processes of members", func() int {
		return acctest.Alive(l, l.dir, acctest.Build(l, acctest.Member))
	})
}

// command returns the process ID of a member's command, the child of its shell, once it can handle a stop signal.
func (l lab) command(member string) (pid int) {
	l.Helper()
	l.eventually("the command of "+member, func() bool {
		state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, member))
		if errors.Is(err, engine.ErrNotFound) {
			return false // its start has yet to be recorded
		}
		l.must(err)
		lines := 0
		log, err := l.Logs(l.Context(), member, engine.LogOptions{})
		l.must(err)
		for _, line := range log {
			if line == ready {
				lines++
			}
		}
		pid = l.child(state)
		return pid != 0 && lines > state.Restarts
	})
	return pid
}

// child returns the process ID of the child of an instance's shell, once it has executed another program; 0 if there is
// none.
func (l lab) child(state statedir.State) int {
	l.Helper()
	table, err := proctree.Scan()
	l.must(err)
	shell, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", state.PID))
	for _, p := range table[state.Instance] {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		if p.Parent == state.PID && err == nil && program != shell {
			return p.PID
		}
	}
	return 0
}

// supervisor returns the process ID of the supervisor in charge, other than the given one.
func (l lab) supervisor(other int) (pid int) {
	l.Helper()
	l.eventually("a supervisor", func() bool {
		holder, held, err := l.files.Holder(statedir.SupervisorLock)
		l.must(err)
		pid = holder.Process
		return held && pid != 0 && pid != other
	})
	return pid
}

// controller returns the process ID of the running controller, other than the given one.
func (l lab) controller(other int) (pid int) {
	l.Helper()
	l.eventually("a controller", func() bool {
		state, err := statedir.Read[statedir.State](l.files.Document(statedir.States, "trainyard-controller"))
		if err != nil || state.State != domain.StateRunning {
			return false
		}
		pid = l.child(state)
		return pid != 0 && pid != other
	})
	return pid
}

func (l lab) kill(pid int) {
	l.Helper()
	l.must(unix.Kill(pid, unix.SIGKILL))
}

// halt stops a process, and returns once none of its threads runs on, as they may on a busy machine.
func (l lab) halt(pid int) {
	l.Helper()
	l.must(unix.Kill(pid, unix.SIGSTOP))
	l.eventually("a process to stop", func() bool {
		threads, err := procfs.AllThreads(pid)
		l.must(err)
		return !slices.ContainsFunc(threads, func(thread procfs.Proc) bool {
			stat, err := thread.Stat()
			return err == nil && stat.State != "T"
		})
	})
}

func (l lab) eventually(what string, holds func() bool) {
	l.Helper()
	acctest.Eventually(l, what, holds)
}

// member returns what is observed of a member.
func (l lab) member(name string) domain.Observed {
	l.Helper()
	observed, err := l.Observe(l.Context(), "job")
	l.must(err)
	for _, o := range observed {
		if o.Name == name {
			return o
		}
	}
	l.Fatalf("there is no member %s among %v", name, observed)
	return domain.Observed{}
}

func (l lab) awaitState(member string, state domain.State) domain.Observed {
	l.Helper()
	var o domain.Observed
	l.eventually(member+" to be "+string(state), func() bool {
		o = l.member(member)
		return o.State == state
	})
	return o
}
