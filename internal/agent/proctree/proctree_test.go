//go:build linux

package proctree

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// exitMainThread makes this test binary a process whose first thread exits while the others live on.
const exitMainThread = "PROCTREE_TEST_EXIT_MAIN_THREAD"

func init() {
	if os.Getenv(exitMainThread) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(exitMainThread) == "" {
		os.Exit(m.Run())
	}
	go func() {
		for {
			proc, err := procfs.NewProc(os.Getpid())
			if err != nil {
				os.Exit(1)
			}
			if stat, err := proc.Stat(); err != nil || stat.State == "Z" {
				break
			}
		}
		fmt.Println("survivor", os.Getpid())
		select {}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// start runs a script as the leader of its own session, for an instance. The script prints lines "<name> <pid>"; start
// returns once it has all names, with the shell itself as "leader".
func start(t testing.TB, instance, script string, names ...string) (*exec.Cmd, map[string]int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), InstanceVariable+"="+instance)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Nothing is ever written to stdin: a script that reads from it waits.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{"leader": cmd.Process.Pid}
	t.Cleanup(func() {
		for _, pid := range pids {
			if p, err := Lookup(pid); err == nil {
				_ = Signal(p, unix.SIGKILL)
			}
		}
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); len(pids) <= len(names); {
		if !lines.Scan() {
			t.Fatalf("the script ended after it had printed %v", pids)
		}
		name, text, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(names, name) {
			t.Fatalf("the script said %q", lines.Text())
		}
		pids[name] = pid
	}
	return cmd, pids
}

// kill kills the leader that start returned, and reaps it.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

func lookup(t *testing.T, pid int) Process {
	t.Helper()
	p, err := Lookup(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func watch(t *testing.T, p Process) *Watcher {
	t.Helper()
	w, err := Watch(p.PID, p.StartTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// found returns the names of the processes that Scan finds for an instance.
func found(t *testing.T, instance string, pids map[string]int) []string {
	t.Helper()
	instances, err := Scan()
	if err != nil {
		t.Fatal(err)
	}
	byPID := map[int]string{}
	for name, pid := range pids {
		byPID[pid] = name
	}
	var names []string
	for _, p := range instances[instance] {
		name, ok := byPID[p.PID]
		if !ok {
			t.Errorf("instance %s holds process %d, which the script did not name", instance, p.PID)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestScanFindsTheProcessesOfAnInstance(t *testing.T) {
	// Each process prints its ID once it is what its name says. The orphan's subshell has exited when the leader prints
	// its own ID.
	cmd, pids := start(t, t.Name(), `
		sleep 1000 & echo child $!
		setsid sh -c 'echo own-session $$; exec sleep 1000' &
		env -i sh -c 'echo cleared $$; exec sleep 1000' &
		env -i setsid sh -c 'echo cleared-own-session $$; exec sleep 1000' &
		(env -i sh -c 'echo cleared-orphan $$; exec sleep 1000' &)
		echo main $$
		read never`,
		"child", "own-session", "cleared", "cleared-own-session", "cleared-orphan", "main")
	delete(pids, "main")

	all := slices.Sorted(maps.Keys(pids))
	if diff := cmp.Diff(all, found(t, t.Name(), pids)); diff != "" {
		t.Errorf("processes of the instance (-want +got):\n%s", diff)
	}

	kill(t, cmd)
	// Nothing links a process to its instance once it has cleared its environment, left the session and lost its
	// parent.
	left := []string{"child", "cleared", "cleared-orphan", "own-session"}
	if diff := cmp.Diff(left, found(t, t.Name(), pids)); diff != "" {
		t.Errorf("processes of the instance without its leader (-want +got):\n%s", diff)
	}
}

func TestScanKeepsInstancesApart(t *testing.T) {
	_, a := start(t, t.Name()+"-a", "echo main $$; read never", "main")
	_, b := start(t, t.Name()+"-b", "sleep 1000 & echo child $!; read never", "child")
	if diff := cmp.Diff([]string{"child", "leader"}, found(t, t.Name()+"-b", b)); diff != "" {
		t.Errorf("processes of b (-want +got):\n%s", diff)
	}
	delete(a, "main")
	if diff := cmp.Diff([]string{"leader"}, found(t, t.Name()+"-a", a)); diff != "" {
		t.Errorf("processes of a (-want +got):\n%s", diff)
	}
}

func TestScanLeavesOutZombies(t *testing.T) {
	// The program that replaces the shell never waits for the shell's child.
	_, pids := start(t, t.Name(), "sleep 1000 & echo zombie $!; exec tail -f /dev/null", "zombie")
	zombie := lookup(t, pids["zombie"])
	w := watch(t, zombie)
	if err := Signal(zombie, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-w.Done()
	// In the middle of its exec, the leader has no environment to be found by.
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 5000 {
		if len(found(t, t.Name(), pids)) > 0 {
			break
		}
		<-look.C
	}
	if diff := cmp.Diff([]string{"leader"}, found(t, t.Name(), pids)); diff != "" {
		t.Errorf("processes of the instance (-want +got):\n%s", diff)
	}
	if err := Signal(zombie, unix.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("a signal to a zombie: %v, want ErrGone", err)
	}
}

func TestProcessOutlivesItsFirstThread(t *testing.T) {
	t.Setenv(exitMainThread, "1")
	_, pids := start(t, t.Name(), exe(t)+` & read never`, "survivor")
	if diff := cmp.Diff([]string{"leader", "survivor"}, found(t, t.Name(), pids)); diff != "" {
		t.Errorf("processes of the instance (-want +got):\n%s", diff)
	}
	survivor := lookup(t, pids["survivor"])
	w := watch(t, survivor)
	select {
	case <-w.Done():
		t.Error("reported as exited while threads are left")
	default:
	}
	if err := Signal(survivor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-w.Done()
}

func TestLookup(t *testing.T) {
	_, pids := start(t, t.Name(), "sleep 1000 & echo child $!; read never", "child")
	child := lookup(t, pids["child"])
	if child.Parent != pids["leader"] || child.Session != pids["leader"] {
		t.Errorf("parent %d and session %d, want %d for both", child.Parent, child.Session, pids["leader"])
	}
	leader := lookup(t, pids["leader"])
	if leader.ResidentBytes <= 0 {
		t.Errorf("resident memory of %d bytes", leader.ResidentBytes)
	}
	if leader.StartTime > child.StartTime {
		t.Errorf("the leader started at tick %d, after its child at %d", leader.StartTime, child.StartTime)
	}
}

func TestCPU(t *testing.T) {
	// Each shell computes until the process table shows 30 ms of CPU time.
	_, pids := start(t, t.Name(), `
		compute='while read -r stat < /proc/$$/stat; set -- $stat; [ "${14}" -lt 3 ]; do :; done'
		sh -c "$compute"
		eval "$compute"
		echo main $$
		read never`, "main")
	p := lookup(t, pids["main"])
	if p.CPU < 3*ClockTick {
		t.Errorf("processor time %s, want at least 30ms", p.CPU)
	}
	if p.WaitedCPU < 3*ClockTick {
		t.Errorf("processor time of children %s, want at least 30ms", p.WaitedCPU)
	}
}

// TestLoading: a process is assigned to its instance from the moment that Start returns, even while it still loads its
// program.
func TestLoading(t *testing.T) {
	for range 500 {
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.Env = []string{InstanceVariable + "=a"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		proc, err := procfs.NewProc(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		e, err := readEntry(proc)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || e.named != "a" {
			t.Fatalf("just started: %+v, %v", e, err)
		}
	}
}

// exe returns the path of this test binary.
func exe(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func BenchmarkScan(b *testing.B) {
	for range 300 {
		start(b, b.Name(), "echo main $$; read never", "main")
	}
	instances, err := Scan()
	if err != nil || len(instances[b.Name()]) != 300 {
		b.Fatalf("%d processes, %v", len(instances[b.Name()]), err)
	}
	for b.Loop() {
		if _, err := Scan(); err != nil {
			b.Fatal(err)
		}
	}
}
