//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/docker/docker/client"
)

// Host is a machine with systemd and an SSH server. Its methods may be called concurrently.
type Host struct {
	// Name is the host's hostname: host1, host2, ….
	Name string
	// Address is the host's address in the bed's network, at which hosts reach each other.
	Address netip.Addr
	// SSH is a port of this machine, as 127.0.0.1:PORT, that leads to the host's SSH server through the bed's network,
	// so Cut affects it.
	SSH string

	bed     *Hosts
	folder  string
	forward *forward
	client  *client.Client // nil without an engine

	mu     sync.Mutex
	boot   *boot // nil while the host is powered off
	cut    bool
	closed bool
}

// hostName returns the name of a host, given its number from 1.
func hostName(number int) string { return "host" + strconv.Itoa(number) }

// newHost prepares a host, powered off and with an empty disk.
func newHost(bed *Hosts, number int) (*Host, error) {
	h := &Host{Name: hostName(number), Address: machineAddress(number), bed: bed}
	h.folder = filepath.Join(bed.folder.path, h.Name)
	for _, name := range []string{diskName, workName, rootName} {
		if err := os.MkdirAll(filepath.Join(h.folder, name), 0o755); err != nil { //nolint:gosec // as on any host
			return nil, err
		}
	}
	var err error
	if h.forward, err = bed.network.forward(netip.AddrPortFrom(h.Address, sshPort)); err != nil {
		return nil, err
	}
	h.SSH = h.forward.String()
	if bed.options.Docker {
		err = h.addEngine()
	}
	return h, err
}

// Start powers the host on, if it is off, and waits until users can log in and, unless it is disabled or masked, until
// its Docker Engine answers.
func (h *Host) Start(ctx context.Context) error {
	h.mu.Lock()
	if ending := h.boot; ending != nil && ending.killed {
		h.mu.Unlock()
		<-ending.ended // the power is being cut
		h.mu.Lock()
	}
	if h.boot == nil {
		if err := h.powerOn(); err != nil {
			h.mu.Unlock()
			return fmt.Errorf("starting %s: %w", h.Name, err)
		}
	}
	started := h.boot
	h.mu.Unlock()
	if err := h.await(ctx, started); err != nil {
		return err
	}
	return h.awaitEngine(ctx, started)
}

// Kill cuts the host's power: everything on it ends at once, without notice. Its disk stays.
func (h *Host) Kill() error {
	h.mu.Lock()
	running := h.boot
	if running == nil {
		h.mu.Unlock()
		return nil
	}
	running.killed = true
	h.mu.Unlock()
	if err := running.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cutting the power of %s: %w", h.Name, err)
	}
	<-running.ended
	return nil
}

// Reboot reboots the host as its administrator would, and waits until users can log in again.
func (h *Host) Reboot(ctx context.Context) error {
	before, err := h.running()
	if err != nil {
		return err
	}
	_, err = h.Run(ctx, "systemctl reboot")
	select {
	case <-before.ended:
	case <-ctx.Done():
		return fmt.Errorf("%s does not reboot: %w\n%s", h.Name, errors.Join(ctx.Err(), err), h.console())
	}
	return h.Start(ctx)
}

// Cut takes the host off the bed's network: everything sent to it or by it is lost silently.
func (h *Host) Cut() error { return h.plug(true) }

// Heal undoes Cut.
func (h *Host) Heal() error { return h.plug(false) }

// plug unplugs the host's cable, or plugs it in.
func (h *Host) plug(cut bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut = cut
	if h.boot == nil {
		return nil // takes effect at the next boot
	}
	return h.bed.network.connect(h.Name, !cut)
}

// Root is the folder of the host's file system as seen from this machine; it exists only while the host is powered on.
// An absolute symbolic link in it leads to that path on this machine.
func (h *Host) Root() string {
	running, err := h.running()
	if err != nil {
		return filepath.Join(h.folder, "off")
	}
	return running.root()
}

// running returns the host's boot, or an error if it is powered off.
func (h *Host) running() (*boot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.boot == nil {
		return nil, fmt.Errorf("%s is powered off; Start boots it:\n%s", h.Name, h.console())
	}
	return h.boot, nil
}

// close powers the host off for good.
func (h *Host) close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	err := errors.Join(h.Kill(), h.forward.close())
	if h.client != nil {
		err = errors.Join(err, h.client.Close())
	}
	return err
}
