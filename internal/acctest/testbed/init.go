//go:build linux

package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"net"
	"net/rpc"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initName is the program name under which this program becomes a node's init.
const initName = "trainyard-testbed-node"

// init turns this program, whichever it is, into a node's init if a bed started it as such. Its arguments are the
// node's hostname, its folder and its system's folder; standard input is the connection to the bed.
func init() {
	if len(os.Args) != 4 || os.Args[0] != initName {
		return
	}
	if err := serveInit(&nodeInit{hostname: os.Args[1], folder: os.Args[2], system: os.Args[3]}); err != nil {
		log.Fatal(err)
	}
	os.Exit(0)
}

// serveInit serves the bed's calls until the bed is gone. When this process ends, the kernel ends all others on the
// node.
func serveInit(node *nodeInit) error {
	connection, err := net.FileConn(os.Stdin)
	if err != nil {
		return err
	}
	go node.reap()
	server := rpc.NewServer()
	if err := server.RegisterName("Node", node); err != nil {
		return err
	}
	server.ServeConn(connection)
	return nil
}

// nodeInit is the first process of a node. The bed calls its exported methods through net/rpc.
type nodeInit struct {
	hostname, folder string
	// system is the folder whose /usr and /etc the node mounts; "" for this machine's.
	system string

	mu      sync.Mutex
	dockerd int           // PID of the last dockerd started
	ended   chan struct{} // closed when that ended; nil if none was started
}

// Boot gives the node what each host has of its own: a name, and a /proc, /run and /etc.
func (n *nodeInit) Boot(_ struct{}, _ *struct{}) error {
	upper, work := filepath.Join(n.folder, "etc"), filepath.Join(n.folder, "etc.work")
	type mount struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}
	mounts := []mount{
		// From here on, mounts are visible only on the node.
		{target: "/", flags: unix.MS_SLAVE | unix.MS_REC},
		{source: "proc", target: "/proc", kind: "proc", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{source: "tmpfs", target: "/run", kind: "tmpfs", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=0755"},
		{
			source: "overlay", target: "/etc", kind: "overlay",
			data: "lowerdir=" + n.system + "/etc,upperdir=" + upper + ",workdir=" + work,
		},
	}
	if n.system != "" {
		// Everything else, such as the folders of tests, is this machine's.
		mounts = append(mounts, mount{source: n.system + "/usr", target: "/usr", flags: unix.MS_BIND})
	}
	docker := filepath.Join(upper, "docker")
	for _, folder := range []string{docker, work} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may read /etc
			return err
		}
	}
	// This machine's /etc/docker stays hidden: it may hold the identity of its engine.
	if err := unix.Setxattr(docker, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("%s: %w", docker, err)
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return unix.Sethostname([]byte(n.hostname))
}

// Start starts dockerd with this command, without waiting until it answers.
func (n *nodeInit) Start(command []string, _ *struct{}) error {
	output, err := os.OpenFile(filepath.Join(n.folder, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	// Under the lock, so that reap knows the process when it ends.
	n.mu.Lock()
	defer n.mu.Unlock()
	program, err := lookPath(command[0]) // among the node's programs
	if err != nil {
		return err
	}
	process, err := os.StartProcess(program, command, &os.ProcAttr{Dir: "/", Files: []*os.File{nil, output, output}})
	if err != nil {
		return err
	}
	n.dockerd, n.ended = process.Pid, make(chan struct{})
	return process.Release()
}

// Running reports whether dockerd runs.
func (n *nodeInit) Running(_ struct{}, running *bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	*running = n.runs()
	return nil
}

// runs reports whether dockerd runs. The caller holds the lock.
func (n *nodeInit) runs() bool {
	if n.ended == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// End sends dockerd a signal and waits until it has ended.
func (n *nodeInit) End(signal syscall.Signal, _ *struct{}) error {
	n.mu.Lock()
	if !n.runs() {
		n.mu.Unlock()
		return nil
	}
	err := errors.Join(unix.Kill(n.dockerd, signal), signalEngine(unix.SIGCONT))
	ended := n.ended
	n.mu.Unlock()
	if err != nil {
		return err
	}
	<-ended
	return nil
}

// Pause stops dockerd and its containerd, and waits until they have stopped: on a busy machine, threads may run on for
// a while after the signal until the one chosen to handle it is scheduled.
func (n *nodeInit) Pause(_ struct{}, _ *struct{}) error {
	if err := signalEngine(unix.SIGSTOP); err != nil {
		return err
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		processes, err := engineProcesses()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(processes, goesOn) {
			return nil
		}
		<-look.C
	}
}

// Resume continues them.
func (n *nodeInit) Resume(_ struct{}, _ *struct{}) error { return signalEngine(unix.SIGCONT) }

// goesOn reports whether a thread of a process runs, or will run when what it waits for arrives.
func goesOn(pid int) bool {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is well-formed
	return slices.ContainsFunc(names, func(name string) bool {
		stat, err := os.ReadFile(name)
		_, state, found := bytes.Cut(stat, []byte(") "))
		return err == nil && found && bytes.ContainsRune([]byte("RSD"), rune(state[0]))
	})
}

// signalEngine sends a signal to the engine's processes.
func signalEngine(signal syscall.Signal) error {
	processes, err := engineProcesses()
	if err != nil {
		return err
	}
	for _, pid := range processes {
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signal %v to process %d: %w", signal, pid, err)
		}
	}
	return nil
}

// engineProcesses returns the engine's processes, without containers and their shims.
func engineProcesses() ([]int, error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	var processes []int
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if !slices.Contains([]string{"dockerd", "containerd"}, strings.TrimSpace(string(comm))) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			return nil, err
		}
		processes = append(processes, pid)
	}
	return processes, nil
}

// reap reaps processes that ended: dockerd, and orphans whose parent this process has become.
func (n *nodeInit) reap() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	for range children {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
			n.mu.Lock()
			if pid == n.dockerd {
				close(n.ended)
				n.dockerd = 0
			}
			n.mu.Unlock()
		}
	}
}
