//go:build linux

package proctree

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

func TestWatchReportsExit(t *testing.T) {
	cmd, pids := start(t, t.Name(), "sleep 1000 & echo grandchild $!; read never", "grandchild")
	child, grandchild := watch(t, lookup(t, pids["leader"])), watch(t, lookup(t, pids["grandchild"]))

	p := lookup(t, pids["grandchild"])
	if err := Signal(p, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-grandchild.Done()
	select {
	case <-child.Done():
		t.Error("the exit of the grandchild was reported for the child")
	default:
	}
	kill(t, cmd)
	<-child.Done()
}

func TestGone(t *testing.T) {
	// The ID of a reaped leader stays in use as its session's ID.
	cmd, pids := start(t, t.Name(), "sleep 1000 & echo child $!; read never", "child")
	leader := lookup(t, pids["leader"])
	kill(t, cmd)
	if child := lookup(t, pids["child"]); child.Session != leader.PID {
		t.Fatalf("the child is in session %d, want %d", child.Session, leader.PID)
	}
	reaped, _ := start(t, t.Name(), "read never")
	kill(t, reaped)

	other := lookup(t, pids["child"])
	other.StartTime++
	for name, p := range map[string]Process{
		"exited, and its session is left":     leader,
		"exited":                              {PID: reaped.Process.Pid},
		"another process that has got the id": other,
	} {
		t.Run(name, func(t *testing.T) {
			if err := Signal(p, unix.SIGKILL); !errors.Is(err, ErrGone) {
				t.Errorf("Signal: %v, want ErrGone", err)
			}
			if _, err := Watch(p.PID, p.StartTime); !errors.Is(err, ErrGone) {
				t.Errorf("Watch: %v, want ErrGone", err)
			}
		})
	}
	if _, err := Lookup(pids["child"]); err != nil {
		t.Errorf("a signal meant for another process reached the child: %v", err)
	}
}

func TestNoProcessID(t *testing.T) {
	for _, pid := range []int{0, -1} {
		if err := Signal(Process{PID: pid}, 0); err == nil || errors.Is(err, ErrGone) ||
			!strings.Contains(err.Error(), "must be positive") {
			t.Errorf("a signal to process id %d: %v", pid, err)
		}
	}
}

func TestCloseEndsTheWatch(t *testing.T) {
	cmd, pids := start(t, t.Name(), "read never")
	leader := lookup(t, pids["leader"])
	closed, open := watch(t, leader), watch(t, leader)
	closed.Close()
	closed.Close()
	kill(t, cmd)
	<-open.Done()
	select {
	case <-closed.Done():
		t.Error("a closed watch reported the exit")
	default:
	}
}

// TestWatchHoldsNoThread: two hundred waiting goroutines must not take two hundred threads.
func TestWatchHoldsNoThread(t *testing.T) {
	const processes = 200
	threads := func() int {
		self, err := procfs.NewProc(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		stat, err := self.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return stat.NumThreads
	}
	cmds := make([]func(), processes)
	watchers := make([]*Watcher, processes)
	for i := range processes {
		cmd, pids := start(t, t.Name(), "exec sleep 1000")
		watchers[i] = watch(t, lookup(t, pids["leader"]))
		cmds[i] = func() { kill(t, cmd) }
	}
	if n := threads(); n > processes/4 {
		t.Errorf("%d threads while %d processes are watched", n, processes)
	}
	for i, end := range cmds {
		end()
		<-watchers[i].Done()
	}
	if n := threads(); n > processes/4 {
		t.Errorf("%d threads after the exit of %d processes", n, processes)
	}
}
