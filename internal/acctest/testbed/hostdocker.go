//go:build linux

package testbed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

const (
	// engineSocket is the socket of a host's engine.
	engineSocket = "/run/docker.sock"
	// engineJournal prints the last log lines of a host's engine.
	engineJournal = "journalctl --quiet --boot --unit=docker --lines=10 --output=cat"
)

// engineFolders map the folders of a host's folder to those where its engine keeps images and containers. Containers'
// file systems are overlays, and the kernel limits stacking those.
var engineFolders = map[string]string{"docker": "var/lib/docker", "containerd": "var/lib/containerd"}

// Client is a client of the host's Docker Engine, through its socket, so it works even if the host is cut off. It
// survives reboots of the host, and is closed with the bed. It is nil without HostOptions.Docker.
func (h *Host) Client() *client.Client { return h.client }

// Load loads an image, given as a docker-archive, onto all hosts in parallel, and checks that they have it under this
// reference.
func (b *Hosts) Load(ctx context.Context, ref string, archive []byte) error {
	return b.each(func(host *Host) error { return host.Load(ctx, ref, archive) })
}

// Load is Hosts.Load for this host only.
func (h *Host) Load(ctx context.Context, ref string, archive []byte) error {
	if err := load(ctx, h.client, ref, archive); err != nil {
		return fmt.Errorf("loading %s onto %s: %w", ref, h.Name, err)
	}
	return nil
}

// addEngine prepares the host's folders for an engine, and its client.
func (h *Host) addEngine() (err error) {
	for name := range engineFolders {
		if err := os.Mkdir(filepath.Join(h.folder, name), 0o711); err != nil { //nolint:gosec // as Docker creates it
			return err
		}
	}
	h.client, err = client.NewClientWithOpts(
		client.WithHost("unix://"+engineSocket), client.WithAPIVersionNegotiation(),
		client.WithDialContext(func(ctx context.Context, _, _ string) (net.Conn, error) {
			running, err := h.running()
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "unix", running.root()+engineSocket)
		}),
	)
	return err
}

// engineMounts give the engine folders that are not on an overlay.
func (b hostBoot) engineMounts() []mounting {
	var mounts []mounting
	for name, folder := range engineFolders {
		mounts = append(mounts, mounting{source: filepath.Join(b.Folder, name), target: folder, flags: unix.MS_BIND})
	}
	return mounts
}

// engineFiles are the additional files of a host with an engine.
func (h *Host) engineFiles() []file {
	if !h.bed.options.Docker {
		return nil
	}
	return []file{
		// The systemd driver is the default with version 2 of control groups, as on users' hosts, but not with version
		// 1.
		{
			path: "etc/docker/daemon.json",
			content: fmt.Sprintf(`{"exec-opts": ["native.cgroupdriver=systemd"], "insecure-registries": ["%s/%d"]}`+
				"\n",
				gateway, gateway.BitLen()),
		},
		{
			path: "etc/systemd/system/docker.service.d/bed.conf",
			content: "[Unit]\n# Tests restart it more often than three times a minute.\nStartLimitIntervalSec=0\n" +
				"# When the host goes down, ending a container takes the bus: without it that waits for 90 " +
				"s.\nAfter=dbus.service\n",
		},
		{
			path: "etc/systemd/system/docker-.scope.d/bed.conf",
			content: "[Scope]\n# Else version 1 of control groups leaves a slice's first container without its " +
				"limits on devices:\n" +
				"# systemd makes that group when the engine sets them, and moves the container out of " +
				"it.\nDevicePolicy=closed\n",
		},
	}
}

// runsEngine reports whether systemd starts the engine when the host boots.
func (b *boot) runsEngine() (bool, error) {
	units := b.root() + "/etc/systemd/system/"
	if mask, err := os.Readlink(units + "docker.service"); err == nil && mask == os.DevNull {
		return false, nil
	}
	_, err := os.Lstat(units + "multi-user.target.wants/docker.service")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// awaitEngine waits until the host's engine answers, if it starts at boot.
func (h *Host) awaitEngine(ctx context.Context, started *boot) error {
	if runs, err := started.runsEngine(); !runs {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-started.ended:
			stop(errors.New("the host ended while it booted"))
		case <-ctx.Done():
		}
	}()
	look := time.NewTicker(poll)
	defer look.Stop()
	for {
		// systemd opens the socket early, and clients block until the engine runs.
		_, err := h.client.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			journal, _ := h.Run(context.WithoutCancel(ctx), engineJournal) // it may have ended
			return fmt.Errorf("the engine of %s does not answer: %w: %w\n%s", h.Name, context.Cause(ctx), err, journal)
		}
	}
}
