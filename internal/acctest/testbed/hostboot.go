//go:build linux

package testbed

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// boot is the period from power-on to power-off of a host.
type boot struct {
	init   *exec.Cmd     // the process that has become systemd
	ended  chan struct{} // closed when it and everything else on the host has ended
	killed bool          // the power was cut, or is about to be
}

// root is the folder of a running host's file system.
func (b *boot) root() string { return fmt.Sprintf("/proc/%d/root", b.init.Process.Pid) }

// powerOn starts the host's systemd. The caller holds the lock.
func (h *Host) powerOn() error {
	if h.closed {
		return net.ErrClosed
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	bootID := fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	path := filepath.Join(h.folder, bootIDName)
	if err := os.WriteFile(path, []byte(bootID), 0o644); err != nil { //nolint:gosec // as on any host
		return err
	}
	group := filepath.Join(h.bed.folder.name(), h.Name)
	if err := newControlGroups(group, h.bed.hierarchies); err != nil {
		return err
	}
	if err := limitProcessors(group, h.bed.hierarchies, h.bed.options.CPUs); err != nil {
		return err
	}
	ours, theirs, err := connected()
	if err != nil {
		return err
	}
	defer ours.Close()
	started := &boot{ended: make(chan struct{})}
	started.init, err = h.launch(theirs)
	if err := errors.Join(err, theirs.Close()); err != nil {
		return fmt.Errorf("starting a process in namespaces of its own: %w", err)
	}
	if err := h.become(ours, group, started.init.Process.Pid); err != nil {
		_ = started.init.Process.Kill() // it may already have ended
		_ = started.init.Wait()         // fails in any case
		return err
	}
	h.boot = started
	go h.watch(started)
	return nil
}

// launch starts the process that will become systemd, with one end of a connection.
func (h *Host) launch(connection *os.File) (*exec.Cmd, error) {
	console, err := os.OpenFile(filepath.Join(h.folder, consoleName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer console.Close()
	init := exec.Command("/proc/self/exe")
	init.Args = []string{hostInitName}
	init.Stdin, init.Stdout, init.Stderr = connection, console, console
	init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Setsid:     true,
		Pdeathsig:  unix.SIGKILL,
	}
	return init, startLasting(init)
}

// become gives that process what it needs, and returns when it has become systemd. Until then it sees this machine's
// files, so nothing may run in it as if on the host.
func (h *Host) become(connection net.Conn, group string, process int) error {
	if err := joinControlGroups(group, h.bed.hierarchies, process); err != nil {
		return err
	}
	if err := h.bed.network.plug(h.Name, process, h.Address, h.cut); err != nil {
		return err
	}
	if err := connection.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		return err
	}
	err := json.NewEncoder(connection).Encode(hostBoot{
		Hostname: h.Name, System: h.bed.system, Folder: h.folder,
		Mounts: h.bed.options.Mounts, Hierarchies: h.bed.hierarchies, Docker: h.bed.options.Docker,
	})
	if err != nil {
		return err
	}
	wrong, err := io.ReadAll(connection)
	if err == nil && len(wrong) > 0 {
		err = errors.New(string(wrong))
	}
	return err
}

// watch waits for the host to end, and boots it again if it ended for a reboot.
func (h *Host) watch(b *boot) {
	_ = b.init.Wait() // how it ended is checked below
	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(b.ended)
	h.boot = nil
	// SIGHUP is how the kernel ends a PID namespace in which a process called for a reboot.
	status, known := b.init.ProcessState.Sys().(syscall.WaitStatus)
	if b.killed || !known || status.Signal() != unix.SIGHUP {
		return
	}
	if err := h.powerOn(); err != nil && !h.closed {
		h.say(fmt.Sprintf("booting again: %v", err))
	}
}

// await waits until users can log in on the host.
func (h *Host) await(ctx context.Context, started *boot) error {
	look := time.NewTicker(poll)
	defer look.Stop()
	for {
		err := started.up()
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-started.ended:
			return fmt.Errorf("%s ended while it booted (%s):\n%s", h.Name, started.init.ProcessState, h.console())
		case <-ctx.Done():
			return fmt.Errorf("%s does not come up: %w: %w\n%s", h.Name, ctx.Err(), err, h.console())
		}
	}
}

// up returns why users can't log in yet. It checks from within, since the host may be cut off.
func (b *boot) up() error {
	sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", b.init.Process.Pid))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(strings.Split(string(sockets), "\n"), listensForSSH) {
		return errors.New("the SSH server does not listen yet")
	}
	// While this file exists, only root may log in.
	if _, err := os.Lstat(b.root() + "/run/nologin"); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errors.New("users other than root are not let in yet"), err)
	}
	return nil
}

// listensForSSH reports whether a line of /proc/net/tcp is the SSH server's.
func listensForSSH(line string) bool {
	const listens = "0A"
	fields := strings.Fields(line) // such as 0: 00000000:0016 00000000:0000 0A …
	return len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", sshPort)) && fields[3] == listens
}

// console returns the last lines of the host's first process, and of what systemd logged before there was a journal.
func (h *Host) console() string {
	var lines []string
	for _, name := range []string{consoleName, kmsgName} {
		content, err := os.ReadFile(filepath.Join(h.folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err.Error()
		}
		all := strings.Split(strings.TrimSpace(string(content)), "\n")
		lines = append(lines, all[max(0, len(all)-logTail):]...)
	}
	return strings.Join(lines, "\n")
}

// say appends a line to the output of the host's first process.
func (h *Host) say(line string) {
	console, err := os.OpenFile(filepath.Join(h.folder, consoleName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer console.Close()
	_, _ = fmt.Fprintln(console, line)
}
