//go:build linux

package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

const (
	// logName is the file in a node's folder with its engine's log.
	logName = "dockerd.log"
	// logTail is how many lines of it errors show.
	logTail = 20
	// errorTail is how many of its errors a failed test shows.
	errorTail = 3
	// tlsPort is Docker's port for TLS.
	tlsPort = 2376
	// poll is the polling interval for what no event reports.
	poll = 50 * time.Millisecond
)

// Node is a machine with a Docker Engine. Its methods may be called concurrently.
type Node struct {
	// Name is the node's hostname: node1, node2, ….
	Name string
	// Address is the node's address in the bed's network, which other nodes and containers can reach.
	Address netip.Addr
	// Socket is the path of the Unix socket at which this machine can reach the engine.
	Socket string
	// Engine is the node's Docker Engine.
	Engine Engine

	bed     *Bed
	folder  string
	client  *client.Client
	forward *forward // of the TLS port; nil without TLS

	mu      sync.Mutex
	init    *exec.Cmd   // nil while the node is powered off
	control *rpc.Client // of the init
	cut     bool
	silent  time.Time // when the engine stopped; zero while one runs
}

// Host is the engine's endpoint, as in DOCKER_HOST.
func (n *Node) Host() string { return "unix://" + n.Socket }

// TLSHost is the engine's endpoint with TLS, for the certificates in Bed.Certificates. It leads through the bed's
// network, so Cut affects it. Without Options.TLS it is empty.
func (n *Node) TLSHost() string {
	if n.forward == nil {
		return ""
	}
	return "tcp://" + n.forward.String()
}

// Client is a client of the engine with the newest API version that both support. It is closed with the bed.
func (n *Node) Client() *client.Client { return n.client }

// newNode prepares a node, powered off.
func newNode(bed *Bed, number int) (*Node, error) {
	n := &Node{
		Name: "node" + strconv.Itoa(number), Address: machineAddress(number),
		bed: bed, Engine: bed.options.engineOf(number, bed.engine),
	}
	n.folder = filepath.Join(bed.folder.path, n.Name)
	n.Socket = filepath.Join(n.folder, "docker.sock")
	if err := os.Mkdir(n.folder, 0o755); err != nil { //nolint:gosec // tests may open the socket as other users
		return nil, err
	}
	if err := n.configure(); err != nil {
		return nil, err
	}
	var err error
	n.client, err = client.NewClientWithOpts(client.WithHost(n.Host()), client.WithAPIVersionNegotiation())
	return n, err
}

// configure writes the engine's configuration.
func (n *Node) configure() error {
	hosts := []string{n.Host()}
	if !n.bed.options.Rootless {
		hosts = append(hosts, "unix:///run/docker.sock")
	}
	configuration := map[string]any{
		"data-root":           filepath.Join(n.folder, "data"),
		"features":            map[string]bool{"containerd-snapshotter": n.Engine.Containerd},
		"exec-opts":           []string{"native.cgroupdriver=cgroupfs"},
		"cgroup-parent":       "/" + n.bed.folder.name(),
		"insecure-registries": []string{netip.PrefixFrom(gateway, gateway.BitLen()).String()},
	}
	if !n.Engine.Containerd {
		configuration["storage-driver"] = "overlay2"
	}
	if n.bed.authority != nil {
		certificates := filepath.Join(n.folder, "tls")
		if err := n.bed.authority.issueServer(certificates, n.Name, n.Address,
			netip.MustParseAddr("127.0.0.1")); err != nil {
			return err
		}
		configuration["tlsverify"] = true
		configuration["tlscacert"] = filepath.Join(certificates, "ca.pem")
		configuration["tlscert"] = filepath.Join(certificates, "cert.pem")
		configuration["tlskey"] = filepath.Join(certificates, "key.pem")
		hosts = append(hosts, "tcp://"+netip.AddrPortFrom(n.Address, tlsPort).String())
	}
	configuration["hosts"] = hosts
	encoded, err := json.MarshalIndent(configuration, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.configuration(), encoded, 0o600)
}

// configuration is the path of the engine's configuration.
func (n *Node) configuration() string { return filepath.Join(n.folder, "daemon.json") }

// Pause stops the engine's processes where they are, as on a machine that hangs; containers keep running.
func (n *Node) Pause() error { return n.call("Pause", struct{}{}, nil) }

// Resume continues them.
func (n *Node) Resume() error { return n.call("Resume", struct{}{}, nil) }

// Kill kills dockerd. Containers keep running until it is started again.
func (n *Node) Kill() error { return n.end(unix.SIGKILL) }

// Restart starts the engine with its existing data, and waits until it answers. A running engine is first stopped; a
// crashed node boots. By then the Swarm has noticed that the node was down.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.boot(); err != nil {
		return err
	}
	if err := n.end(unix.SIGTERM); err != nil {
		return err
	}
	if err := n.bed.outlastHeartbeats(ctx, n.silence()); err != nil {
		return err
	}
	return n.start(ctx)
}

// end ends the engine with a signal, and waits for that.
func (n *Node) end(signal syscall.Signal) error {
	if err := n.call("End", signal, nil); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fallSilent()
	return nil
}

// fallSilent records that no engine runs. The caller holds the lock.
func (n *Node) fallSilent() {
	if n.silent.IsZero() {
		n.silent = time.Now()
	}
}

// silence is how long no engine has run.
func (n *Node) silence() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.silent)
}

// Crash powers the node off: everything on it ends without notice.
func (n *Node) Crash() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.powerOff()
}

// powerOff ends the node's init, and so all its processes. The caller holds the lock.
func (n *Node) powerOff() error {
	if n.init == nil {
		return nil
	}
	defer n.fallSilent()
	err := n.init.Process.Kill()
	// It ends by a signal, which is an ExitError. When it has ended, so has everything else on the node.
	if ended := n.init.Wait(); n.init.ProcessState == nil {
		err = errors.Join(err, ended)
	}
	_ = n.control.Close() // it may have noticed by itself
	n.init, n.control = nil, nil
	return err
}

// Cut takes the node off the bed's network. This machine can still reach its Unix socket.
func (n *Node) Cut() error { return n.plug(true) }

// Reconnect undoes Cut.
func (n *Node) Reconnect() error { return n.plug(false) }

// plug unplugs the node's cable, or plugs it in.
func (n *Node) plug(cut bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
	if n.init == nil {
		return nil // takes effect at the next boot
	}
	return n.bed.network.connect(n.Name, !cut)
}

// boot creates the node's namespaces and its init, if it is powered off.
func (n *Node) boot() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.init != nil {
		return nil
	}
	if err := n.launch(); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	err := n.control.Call("Node.Boot", struct{}{}, nil)
	if err == nil {
		err = n.bed.network.plug(n.Name, n.init.Process.Pid, n.Address, n.cut)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("booting %s: %w", n.Name, err), n.powerOff())
	}
	return nil
}

// system is the folder of the node's system; "" for this machine's.
func (n *Node) system() string {
	if n.Engine.Debian13 {
		return n.bed.debian
	}
	return ""
}

// launch starts the node's init. The caller holds the lock.
func (n *Node) launch() error {
	connection, theirs, err := connected()
	if err != nil {
		return err
	}
	defer theirs.Close()
	init := exec.Command("/proc/self/exe")
	init.Args = []string{initName, n.Name, n.folder, n.system()}
	// An engine re-executes itself several times per container, and would collect garbage each time.
	init.Env = []string{"PATH=" + searchPath, "GOGC=400"}
	init.Stdin, init.Stderr = theirs, os.Stderr
	init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Setsid:     true, // the bed handles interrupts from the terminal
	}
	if err := init.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting a process in namespaces of its own: %w", err), connection.Close())
	}
	n.init, n.control = init, rpc.NewClient(connection)
	return nil
}

// connected returns the ends of a connection, the second one for another process.
func connected() (ours net.Conn, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	end := os.NewFile(uintptr(ends[0]), "bed")
	defer end.Close() // the connection has a copy
	theirs = os.NewFile(uintptr(ends[1]), "machine")
	if ours, err = net.FileConn(end); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// call calls the node's init.
func (n *Node) call(what string, argument, result any) error {
	n.mu.Lock()
	control := n.control
	n.mu.Unlock()
	if control == nil {
		return fmt.Errorf("%s is powered off; Restart boots it", n.Name)
	}
	if err := control.Call("Node."+what, argument, result); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

// lateContainerd is dockerd's error if its containerd is not up within 15 s, as may happen on a busy machine.
const lateContainerd = "timeout waiting for containerd to start"

// start starts dockerd, again if its containerd was late, and waits until it answers.
func (n *Node) start(ctx context.Context) error {
	command := []string{"dockerd", "--config-file", n.configuration()}
	if err := n.call("Start", command, nil); err != nil {
		return err
	}
	n.mu.Lock()
	n.silent = time.Time{}
	n.mu.Unlock()
	look := time.NewTicker(poll)
	defer look.Stop()
	for {
		_, err := n.client.Ping(ctx)
		if err == nil {
			return nil
		}
		var running bool
		if err := n.call("Running", struct{}{}, &running); err != nil {
			return err
		}
		if !running && !strings.Contains(n.lastLines(errorTail, anyLine), lateContainerd) {
			return fmt.Errorf("the engine of %s ended:\n%s", n.Name, n.log())
		}
		if !running {
			if err := n.call("Start", command, nil); err != nil {
				return err
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("the engine of %s does not answer: %w: %w\n%s", n.Name, ctx.Err(), err, n.log())
		}
	}
}

// log returns the last lines of the engine's log.
func (n *Node) log() string { return n.lastLines(logTail, anyLine) }

func anyLine(string) bool { return true }

// errors returns the last errors in the engine's log, except what managers log every second while another one is down.
func (n *Node) errors() string {
	return n.lastLines(errorTail, func(line string) bool {
		wrong := strings.Contains(line, "level=error") || strings.Contains(line, "level=fatal")
		return wrong && !strings.Contains(line, `msg="error sending message to peer"`)
	})
}

// lastLines returns the last lines of the engine's log that count, up to a limit.
func (n *Node) lastLines(limit int, counts func(line string) bool) string {
	content, err := os.ReadFile(filepath.Join(n.folder, logName))
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(content)), "\n"),
		func(line string) bool { return !counts(line) })
	return strings.Join(lines[max(0, len(lines)-limit):], "\n")
}

// close powers the node off for good.
func (n *Node) close() error {
	err := n.Crash()
	if n.forward != nil {
		err = errors.Join(err, n.forward.close())
	}
	if n.client != nil {
		err = errors.Join(err, n.client.Close())
	}
	return err
}
